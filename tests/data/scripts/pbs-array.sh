#!/bin/bash
#PBS -N frames
#PBS -t 1-3
#PBS -l nodes=1,walltime=0:05:00
FRAME=$(printf "%04d" "$PBS_ARRAYID")
echo "rendered frame $FRAME"
