#!/bin/sh
# Gets the tools of `make check`: rustfmt, clippy and cargo-deny.
#
# Says what it does, and nothing when there is nothing to do.
set -eu

say() { echo "setup: $*" >&2; }

for tool in fmt clippy; do
    cargo "$tool" --version >/dev/null 2>&1 && continue
    component=$tool
    [ "$tool" = fmt ] && component=rustfmt
    if ! command -v rustup >/dev/null 2>&1; then
        say "cargo $tool is missing: install the $component that belongs to this Rust"
        exit 1
    fi
    say "adding $component to this Rust"
    rustup component add "$component"
done

if ! cargo deny --version >/dev/null 2>&1; then
    say "building cargo-deny (a few minutes, once)"
    cargo install --quiet --locked cargo-deny
fi
