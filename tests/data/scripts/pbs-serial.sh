#!/bin/bash
#PBS -N serial
#PBS -l nodes=1:ppn=2
#PBS -l walltime=00:05:00
#PBS -l mem=200mb
#PBS -j oe
#PBS -m ae
#PBS -M someone@example.org
cd $PBS_O_WORKDIR
NPROCS=$(wc -l < $PBS_NODEFILE)
echo "$PBS_JOBNAME on $NPROCS processors"
echo "both streams here" >&2
