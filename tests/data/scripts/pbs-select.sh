#!/bin/bash
#PBS -l select=2:ncpus=2:mpiprocs=1:ompthreads=2:mem=100mb
#PBS -l place=scatter
#PBS -l walltime=00:05:00
#PBS -N hybrid
echo "$(sort -u "$PBS_NODEFILE" | wc -l) chunks of $OMP_NUM_THREADS threads"
