#!/bin/bash
#SBATCH -J nf-align_1
#SBATCH -o command.log
#SBATCH --no-requeue
#SBATCH -t 00:10:00
#SBATCH --mem 200M
#SBATCH -c 1
# NEXTFLOW TASK: align (1), as its wrapper is laid out
set -e
set -u
NXF_ENTRYPOINT=${1:-nxf_main}
nxf_mktemp() {
    mktemp -d "${1:-${TMPDIR:-/tmp}}/nxf.XXXXXXXXXX"
}
on_exit() {
    exit_status=$?
    printf -- "$exit_status" > exitcode
    [ -n "${NXF_SCRATCH:-}" ] && rm -rf "$NXF_SCRATCH"
    exit $exit_status
}
on_term() {
    exit 143
}
nxf_stage() {
    printf 'ACGTACGT\n' > reads.fa
}
nxf_launch() {
    /bin/bash -ue -c 'tr ACGT TGCA < reads.fa | rev'
}
nxf_main() {
    trap on_exit EXIT
    trap on_term TERM INT USR1 USR2
    NXF_SCRATCH=$(nxf_mktemp)
    cd "$NXF_SCRATCH"
    nxf_stage
    nxf_launch
    cd "$OLDPWD"
}
$NXF_ENTRYPOINT
