#!/bin/sh
# Checks a model of the co-allocation protocol (meta/core/*.pml) in every state it can reach, and that it
# finds each of the errors that can be put into it.
#   model.sh MODEL
set -eu
model=${1:?which model?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$model" "$work/model.pml"
cd "$work"

# found FLAGS…: prints the number of errors in all states; fails when not all were seen.
found() {
    rm -f pan* ./*.trail
    spin -a "$@" model.pml
    cc -O1 -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -w -o pan pan.c
    ./pan -m4000000 > out
    if grep -q 'Search not completed' out && ! grep -q 'pan:1:' out; then
        cat out >&2
        exit 1
    fi
    sed -n 's/.*errors: \([0-9]*\)$/\1/p' out
}

whole() {
    errors=$(found "$@")
    if [ "$errors" != 0 ]; then
        echo "$*: $errors error" >&2
        cat out >&2
        spin -t -p "$@" model.pml | tail -60 >&2
        exit 1
    fi
    echo "$*: $(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' out) states, none wrong"
}

broken() {
    errors=$(found "$@")
    [ "$errors" = 1 ] || { echo "$*: the model does not see it" >&2; exit 1; }
    echo "$*: seen ($(sed -n 's/^pan:1: //p' out))"
}

case $(basename "$model") in
coalloc.pml)
    whole -DSITES=2 -DTRIES=1 -DATTEMPTS=2
    whole -DSITES=2 -DTRIES=2 -DATTEMPTS=1
    whole -DSITES=3 -DTRIES=1 -DATTEMPTS=1
    whole -DREPAIR -DSITES=2 -DTRIES=1 -DATTEMPTS=1
    broken -DBUG_KEPT -DREPAIR -DTRIES=1 -DATTEMPTS=1
    broken -DBUG_EARLY -DTRIES=1 -DATTEMPTS=1
    broken -DBUG_LEASE -DTRIES=1 -DATTEMPTS=1
    broken -DBUG_UNDECIDED -DTRIES=1 -DATTEMPTS=1
    broken -DBUG_ROOM -DTRIES=2 -DATTEMPTS=1
    ;;
quorum.pml)
    whole -DBALLOTS=3
    whole -DBALLOTS=4
    broken -DBUG_FREE
    broken -DBUG_FEW
    broken -DBUG_FORGET
    broken -DBUG_OLD
    broken -DBUG_STALE
    broken -DBUG_TWICE
    ;;
*)
    echo "$model: nobody has said what to check" >&2
    exit 2
    ;;
esac
