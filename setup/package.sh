#!/bin/sh
# Gets what `make package` and the package's story need: cargo-deb.
#
# Says what it does, and nothing when there is nothing to do.
set -eu

here=$(dirname "$0")
. "$here/packages.sh"

if ! cargo deb --version >/dev/null 2>&1; then
    say "building cargo-deb (a minute or two, once)"
    # A small program that runs for seconds: how fast it is does not matter, how fast it is built does.
    env -u RUSTFLAGS cargo install --quiet --locked cargo-deb@^3 --config profile.release.lto=false
fi
