#!/bin/bash
#SBATCH --job-name=allreduce
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --time=00:05:00
#SBATCH --exclusive=user
mpiexec /usr/bin/python3 -c '
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(world.rank + 1)
if world.rank == 0:
    print(world.size, "ranks, sum", total)
'
