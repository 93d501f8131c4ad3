#!/usr/bin/env bash
# The choice of hyper-parameters on the digits benchmarks: the grid of bcl/suites/grid.yaml, on the tuning tasks alone.
# Usage: bench/tune_digits.sh [METHOD...]    The record is bench/records/tune-digits.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
methods=("$@")
[ ${#methods[@]} -gt 0 ] || mapfile -t methods < <(python3 -c 'import yaml; print(*yaml.safe_load(open("bcl/suites/grid.yaml")), sep="\n")')
for scenario in domain; do
    bcl tune permuted-digits "${methods[@]}" --scenario "$scenario" --save bcl/suites/hyper.yaml
done
for scenario in task class; do
    bcl tune split-digits "${methods[@]}" --scenario "$scenario" --save bcl/suites/hyper.yaml
done
