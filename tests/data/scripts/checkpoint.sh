#!/bin/bash
#SBATCH -J steps
#SBATCH -t 10
#SBATCH --requeue
#SBATCH --open-mode=append
# Goes on where the last run stopped.
STATE=checkpoint.txt
step=$(cat $STATE 2>/dev/null || echo 0)
trap 'echo "stopped at step $step"; exit 0' TERM
while [ "$step" -lt 5 ]; do
    step=$((step + 1))
    echo "$step" > $STATE.new && mv $STATE.new $STATE
done
echo "finished at step $(cat $STATE)"
