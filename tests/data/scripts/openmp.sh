#!/bin/bash
#SBATCH -J threads
#SBATCH -N 1
#SBATCH -n 1
#SBATCH --cpus-per-task=4
#SBATCH --time=5
#SBATCH --hint=nomultithread
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
export OMP_PROC_BIND=close OMP_PLACES=cores
python3 -c '
import os
from multiprocessing import Pool
with Pool(int(os.environ["OMP_NUM_THREADS"])) as pool:
    print(os.environ["OMP_NUM_THREADS"], "threads:", sum(pool.map(abs, range(-100, 100))))
'
