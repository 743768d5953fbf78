#!/bin/sh
# Runs scripts of this folder by their names, one after the other: whatever one of them says, it says where in all of them it is.
# Usage: setup/all.sh NAME...
set -eu

here=$(dirname "$0")
count=$# step=0
while [ $# -gt 0 ]; do
    name=$1
    shift
    step=$((step + 1))
    left="$*"
    HEADWATER_SETUP_STEP="$step of $count${left:+, then $left}" "$here/$name.sh"
done
