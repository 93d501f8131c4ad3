#!/usr/bin/env bash
# What each choice between the paper and its released code is worth, on permuted digits: BCL-Dual, one option flipped at a
# time. Options that concern batch norm alone are flipped with a network that has it (bench/normed.py).
# Usage: bench/fidelity_digits.sh [SEEDS] [OUT]    The record is bench/records/fidelity-digits.txt.
set -euo pipefail
cd "$(dirname "$0")"
seeds=${1:-3} out=${2:-../runs/fidelity-digits}
flip() {
    bcl run permuted-digits bcl-dual --set inner_lr=0.1 --set outer_lr=0.3 --set inner_steps=2 --set outer_steps=2 --seeds "$seeds" --device cpu --out "$out" --resume --json "$@" 2>/dev/null |
        python -c '
import json, sys

line = json.load(sys.stdin)["summary"][0]
figures = ["{} {:5.2f} ± {:.2f}".format(m.upper(), line[m]["mean"], line[m]["std"]) for m in ("acc", "fm", "la")]
print("   ".join(figures), "  ", " ".join(sys.argv[1:]) or "(the defaults)", flush=True)' "$@"
}
flip
for option in carry_gradients=false kl_reduction=batch redraw=false evicted=drop prefill=false overflow=wrap; do
    flip --set "$option"
done
flip --net normed:mlp
for option in joint_forward=true target_mode=eval interpolate=parameters; do
    flip --net normed:mlp --set "$option"
done
