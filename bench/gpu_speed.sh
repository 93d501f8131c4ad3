#!/usr/bin/env bash
# The tables of docs/speed.md, on a machine with a GPU: bash bench/gpu_speed.sh > gpu-speed.txt
# Takes a quarter of an hour: kernels are compiled, and every method also takes eager steps. Parts of it by name:
#     bash bench/gpu_speed.sh steps methods growth networks
set -u
python=${PYTHON:-python}
speed() {
    echo "\$ bcl speed $*"
    "$python" -m bcl speed "$@" 2>&1
    echo
}
bench() {
    echo "\$ python $*"
    "$python" "$@" 2>&1
    echo
}
steps() {
    for precision in tf32 fp32; do
        speed bcl-dual --benchmark split-cifar100 --members 1,5,10,20 --precision $precision --repeats 40
        speed bcl-dual --benchmark permuted-mnist --members 1,5,10,20 --precision $precision --repeats 100
    done
}
methods() {
    speed --benchmark split-cifar100 --members 1,10 --precision tf32 --repeats 10
    speed --benchmark permuted-mnist --members 1,10 --precision tf32 --repeats 30
}
growth() {
    speed er bcl-dual gem --benchmark permuted-mnist --members 1 --tasks 5 --precision tf32 --repeats 30
    speed er bcl-dual gem icarl --benchmark split-cifar100 --members 1 --tasks 5 --precision tf32 --repeats 10
}
networks() {
    speed er bcl-dual --benchmark split-cub --members 1,5 --precision tf32 --repeats 10
    speed er --benchmark split-cub --members 1,5 --precision fp32 --repeats 10
    for precision in tf32 fp32; do
        bench bench/convolutions.py --precision $precision
    done
    bench bench/network_pass.py
    bench bench/network_pass.py --full --samples 60
}
[ $# -gt 0 ] || set -- steps methods growth networks
for part in "$@"; do
    case $part in
    steps | methods | growth | networks) $part ;;
    *)
        echo "no part '$part': steps, methods, growth, networks" >&2
        exit 2
        ;;
    esac
done
