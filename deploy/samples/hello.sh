#!/bin/sh
#NUI --name hello
#NUI -n 2 -t 1:00
# A small job: says where it runs and as whom.
echo "hello from job $NUI_JOBID at site $NUI_SITE, $NUI_TASKS tasks, as $(id -un)"
echo "nodes: $(sort -u "$NUI_NODEFILE" | tr '\n' ' ')"
sum=0 i=0
while [ $i -lt 20000 ]; do
    i=$((i + 1))
    sum=$((sum + i))
done
echo "1 + 2 + ... + $i = $sum"
