#!/bin/bash
#SBATCH --job-name=sweep
#SBATCH --array=1-4%2
#SBATCH --output=sweep_%A_%a.out
#SBATCH --time=5
#SBATCH --export=NONE
# One line of parameters for each task.
PARAMETERS=$(sed -n "${SLURM_ARRAY_TASK_ID}p" <<'EOF'
0.1 cold
0.5 warm
0.9 hot
1.5 melted
EOF
)
read -r T NAME <<< "$PARAMETERS"
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT: T=$T is $NAME"
