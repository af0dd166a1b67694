#!/bin/bash
#SBATCH --job-name=primes
#SBATCH --output=%x-%j.out
#SBATCH --time=00:05:00
#SBATCH --mem=200M
#SBATCH --mail-type=END,FAIL
#SBATCH --mail-user=someone@example.org
# The largest prime below a bound.
set -euo pipefail
BOUND=10000
cd "$SLURM_SUBMIT_DIR"
python3 - "$BOUND" <<'EOF'
import sys
n = int(sys.argv[1])
print(max(p for p in range(2, n) if all(p % d for d in range(2, int(p ** .5) + 1))))
EOF
echo "job $SLURM_JOB_NAME is done"
