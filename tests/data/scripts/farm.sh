#!/bin/bash
#SBATCH --job-name=farm
#SBATCH --ntasks=4
#SBATCH --nodes=1
#SBATCH --time=10
# Many short commands on the job's processors, through a directory of its own.
SCRATCH=$(mktemp -d)
trap 'rm -rf "$SCRATCH"' EXIT
seq 1 20 | xargs -P "$SLURM_NTASKS" -I{} sh -c 'echo $(({} * {})) > "$0/{}"' "$SCRATCH"
cat "$SCRATCH"/* | awk '{s += $1} END {print NR " results, sum " s}'
