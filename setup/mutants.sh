#!/bin/sh
# Gets the tool of `make mutants`: cargo-mutants.
#
# Says what it does, and nothing when there is nothing to do.
set -eu

if ! cargo mutants --version >/dev/null 2>&1; then
    echo "setup: building cargo-mutants (a few minutes, once)" >&2
    cargo install --quiet --locked cargo-mutants
fi
