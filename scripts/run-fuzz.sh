#!/usr/bin/env bash
# Runs every target of fuzz/ for a while, with cargo-fuzz; stops at the first that finds something.
#
# usage: run-fuzz.sh [SECONDS for each target, default 60]
#
# The sanitizer needs unstable compiler flags; RUSTC_BOOTSTRAP lets the stable compiler take them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly seconds=${1:-60}
readonly cargo_fuzz_version=0.13.2
readonly tools=$PWD/target/tools
export PATH=$tools/bin:$PATH RUSTC_BOOTSTRAP=1

if [ ! -f fuzz/Cargo.toml ]; then
  echo "fuzz: there is no fuzz/Cargo.toml" >&2
  exit 1
fi
if ! cargo fuzz --version >/dev/null 2>&1; then
  echo "fuzz: building cargo-fuzz $cargo_fuzz_version"
  env -u CARGO_TARGET_DIR cargo install --quiet --locked --debug --root "$tools" \
    --version "$cargo_fuzz_version" cargo-fuzz
fi

# New inputs and findings go to target/; inputs that are kept in fuzz/corpus are only read.
for target in $(cargo fuzz list); do
  echo "fuzz: $target for $seconds s"
  corpus=("$PWD/target/fuzz/corpus/$target")
  mkdir -p "${corpus[0]}" target/fuzz/artifacts
  if [ -d "fuzz/corpus/$target" ]; then corpus+=("$PWD/fuzz/corpus/$target"); fi
  cargo fuzz run --target-dir target/fuzz "$target" "${corpus[@]}" -- \
    -max_total_time="$seconds" -timeout=10 -artifact_prefix="$PWD/target/fuzz/artifacts/$target-"
done
