#!/usr/bin/env bash
# The choice of hyper-parameters on the digits benchmarks: the grid of bcl/suites/grid.yaml, on the tuning tasks alone.
#
#     bench/tune_digits.sh [PROCESSES] > bench/records/tune-digits.txt      # default: one per core
#
# Every method and scenario is a process of its own; the winners are then entered into bcl/suites/hyper.yaml.
set -euo pipefail
cd "$(dirname "$0")/.."
processes="${1:-$(nproc)}"
export PYTHONPATH="$PWD"
mkdir -p runs/tuned
tune() {
    name="${1//\//-}-$2-${3//+/p}"
    python3 -m bcl tune "$1" "$3" --scenario "$2" --workers 1 --finalists 3 --device cpu --out "runs/tune/$name" \
        --save "runs/tuned/$name.yaml" > "runs/tuned/$name.txt" 2> "runs/tuned/$name.err" || tail -n 1 "runs/tuned/$name.err"
}
export -f tune
methods=$(python3 -c 'import yaml; print(*reversed(list(yaml.safe_load(open("bcl/suites/grid.yaml")))))')
for method in $methods; do
    [ "$method" = icarl ] || echo permuted-digits domain "$method"
    echo split-digits task "$method"
    echo split-digits class "$method"
done | xargs -P "$processes" -L 1 bash -c 'tune "$@"' _
cat runs/tuned/*.txt
python3 - <<'END'
import glob
from pathlib import Path

import yaml

from bcl.studies.tuning import save_winner

for path in sorted(glob.glob("runs/tuned/*.yaml")):
    for benchmark, scenarios in yaml.safe_load(Path(path).read_text()).items():
        for scenario, methods in scenarios.items():
            for method, values in methods.items():
                save_winner(Path("bcl/suites/hyper.yaml"), benchmark, scenario, method, values)
END
