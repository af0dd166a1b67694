#!/bin/bash
#SBATCH --job-name=notebook
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --time=00:10:00
#SBATCH --output=notebook.log
# A server on the compute node, and how to get to it. The first thing that is asked for ends it here.
PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
TOKEN=$(python3 -c 'import secrets; print(secrets.token_hex(8))')
mkdir -p notebooks && echo "cell of $USER" > "notebooks/$TOKEN.txt"
cat > connect.txt <<EOF
ssh -N -L 8888:$(hostname):$PORT $USER@login
http://127.0.0.1:8888/?token=$TOKEN
EOF
python3 -m http.server --directory notebooks "$PORT" > /dev/null 2>&1 &
SERVER=$!
trap 'kill $SERVER' EXIT
python3 - "$PORT" "$TOKEN" <<'EOF'
import sys, time, urllib.request
for _ in range(200):
    try:
        text = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/{sys.argv[2]}.txt").read().decode()
        break
    except OSError:
        time.sleep(.1)
print("served:", text.split()[0])
EOF
