#!/bin/bash
#SBATCH -J prepare -t 5 -n 1
# First of a chain, in the project's directory: prepare, simulate (twice), collect.
set -e
cd "$1"
seq 1 10 > input.dat
echo "prepared $(wc -l < input.dat) lines"
