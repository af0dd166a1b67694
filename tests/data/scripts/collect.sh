#!/bin/bash
#SBATCH -J collect
#SBATCH -t 5
#SBATCH -n 1
set -e
cd "$1"
cat result.* | paste -sd+ | bc 2>/dev/null || cat result.* | paste -sd+ | python3 -c 'print(eval(input()))'
