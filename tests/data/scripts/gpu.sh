#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --gres=gpu:1
#SBATCH --time=0-00:05:00
echo "epoch 1 on $SLURM_JOB_NUM_NODES node with $SLURM_CPUS_PER_TASK processors"
