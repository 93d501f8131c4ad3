#!/usr/bin/env bash
# The tables of docs/speed.md, on a machine with a GPU: bash bench/gpu_speed.sh > gpu-speed.txt
# Takes a while: kernels are compiled, and every method also takes eager steps.
set -u
speed() {
    echo "\$ bcl speed $*"
    python -m bcl speed "$@" 2>&1
    echo
}
for precision in tf32 fp32; do
    speed bcl-dual --benchmark split-cifar100 --members 1,5,10,20 --precision $precision --repeats 40
    speed bcl-dual --benchmark permuted-mnist --members 1,5,10,20 --precision $precision --repeats 100
done
speed --benchmark split-cifar100 --members 1,10 --precision tf32 --repeats 10
speed --benchmark permuted-mnist --members 1,10 --precision tf32 --repeats 30
speed er bcl-dual gem --benchmark permuted-mnist --members 1 --tasks 5 --precision tf32 --repeats 30
speed er icarl gem --benchmark split-cifar100 --members 1 --tasks 5 --precision tf32 --repeats 10
speed er bcl-dual --benchmark split-cub --members 1,5 --precision tf32 --repeats 10
python bench/network_pass.py
