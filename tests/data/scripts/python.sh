#!/usr/bin/env python3
#SBATCH --job-name=py
#SBATCH --time=5
#SBATCH --ntasks=2
#SBATCH --output=py.out
import os
import statistics

values = [int(os.environ["SLURM_NTASKS"]) * k for k in range(1, 6)]
print(f"mean {statistics.mean(values)} of {len(values)}")
