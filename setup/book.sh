#!/bin/sh
# Makes the book of docs/ in target/book, with mdbook, which it gets if it is not there.
#
# mdbook takes one folder. The pages lead out of theirs (../README.md), so they are put beside what they lead to first.
set -eu

cd "$(dirname "$0")/.."
. setup/packages.sh

if ! have mdbook; then
    say "building mdbook (a few minutes, once)"
    env -u RUSTFLAGS cargo install --quiet --locked mdbook@^0.5 --config profile.release.lto=false
fi

target=${CARGO_TARGET_DIR:-$PWD/target}
stage=$target/book.source
rm -rf "$stage" "$target/book"
mkdir -p "$stage/src/fixtures"
sed 's/^src = .*/src = "src"/' docs/book.toml > "$stage/book.toml"
cp -R docs ops ./*.md headwater.example.toml Containerfile LICENSE-MIT LICENSE-APACHE "$stage/src/"
cp -R fixtures/sql "$stage/src/fixtures/"
# Its own table of contents speaks from docs/.
sed -e 's#](#](docs/#' -e 's#](docs/\.\./#](#' docs/SUMMARY.md > "$stage/src/SUMMARY.md"
rm "$stage/src/docs/SUMMARY.md" "$stage/src/docs/book.toml"
# In a site the first page of a folder is its index.
for page in "$stage/src" "$stage/src/docs"; do mv "$page/README.md" "$page/index.md"; done
find "$stage/src" -name '*.md' -exec sed -i 's#\(]([^)]*\)README\.md#\1index.md#g' {} +
mdbook build "$stage" --dest-dir "$target/book"
say "$target/book/index.html"
