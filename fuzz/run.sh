#!/bin/sh
# Runs each fuzz target for as many seconds (600 unless told: fuzz/run.sh 60), as many at a time as there are processors.
# Guided by coverage, with any compiler: what cargo-fuzz asks a nightly one for, the stable one's LLVM does when told.
# A crash leaves its input in fuzz/artifacts, and this fails.
set -eu
seconds=${1:-600}
cd "$(dirname "$0")"
cargo=${CARGO:-cargo}
host=$(rustc -vV | sed -n 's/^host: //p')
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cdebug-assertions -Coverflow-checks -Ccodegen-units=1"
# For a named host: build scripts are not fuzzed.
RUSTFLAGS="$coverage" "$cargo" build --release --locked --target "$host" --bins

targets=$(for file in fuzz_targets/*.rs; do basename "$file" .rs; done)
echo "fuzz: $(echo "$targets" | wc -l) targets, $seconds s each, $(nproc) at a time"
run() {
    target=$1
    mkdir -p "corpus/$target" "artifacts/$target"
    # What is found goes into the first folder; seeds are read from the second one.
    seeds=
    if [ -d "seeds/$target" ]; then seeds="seeds/$target"; fi
    # shellcheck disable=SC2086
    if "target/$host/release/$target" "corpus/$target" $seeds "-max_total_time=$seconds" -rss_limit_mb=1024 -timeout=10 \
        "-artifact_prefix=artifacts/$target/" >"artifacts/$target.log" 2>&1; then
        # Such as: Done 1234567 runs in 601 second(s)
        echo "fuzz: $target: $(tail -n 1 "artifacts/$target.log")"
    else
        tail -n 30 "artifacts/$target.log" >&2
        echo "fuzz: $target FAILED; its input is in fuzz/artifacts/$target" >&2
        return 1
    fi
}

# As many rows as processors; each does what is left over by the count of them.
rows=$(nproc)
row=0
pids=
while [ "$row" -lt "$rows" ]; do
    (
        failed=0
        number=0
        for target in $targets; do
            if [ $((number % rows)) -eq "$row" ]; then run "$target" || failed=1; fi
            number=$((number + 1))
        done
        exit "$failed"
    ) &
    pids="$pids $!"
    row=$((row + 1))
done
failed=0
for pid in $pids; do wait "$pid" || failed=1; done
[ "$failed" -eq 0 ] && echo "fuzz: no target crashed"
exit "$failed"
