#!/bin/bash
#SBATCH -J simulate -t 5 -n 1
set -e
cd "$1"
awk -v f="$2" '{s += f * $1} END {print s}' input.dat > "result.$2"
echo "simulated with $2"
