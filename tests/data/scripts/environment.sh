#!/bin/bash -l
#SBATCH --job-name=env
#SBATCH --time=5
#SBATCH --ntasks=1
#SBATCH --export=ALL,MODEL=small
set -o pipefail
# What a module or an environment of conda does.
prepend() { export "$1=$2${!1:+:${!1}}"; }
prepend PATH "$HOME/.local/bin"
prepend PYTHONPATH "$PWD/lib"
mkdir -p lib && echo 'NAME = "my own"' > lib/mymodule.py
python3 -c 'import mymodule, os; print(mymodule.NAME, "module, model", os.environ["MODEL"])' | tee log.txt
