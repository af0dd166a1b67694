#!/bin/sh
#PBS -l nodes=2:ppn=2,walltime=300
#PBS -N hosts
#PBS -V
# As a script for an MPI without the resource manager's help begins.
cd "$PBS_O_WORKDIR" || exit 1
sort -u "$PBS_NODEFILE" > machines
echo "$(wc -l < machines) machines, $(wc -l < "$PBS_NODEFILE") places, $PBS_NP"
