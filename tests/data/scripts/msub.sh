#!/bin/bash
#MSUB -N moab
#MSUB -l nodes=1:ppn=1,walltime=300
#MSUB -j oe
echo "$PBS_JOBNAME in $(basename "$PBS_O_WORKDIR")"
