#!/bin/sh
# The pictures of README and docs that the program makes by itself; docs/quality-time.svg is by peers/quality.py --plot.
#
#   experiments/pictures.sh
set -eu
cd "$(dirname "$0")/.."
cargo run --release --example before_after -- docs/before-after.png
cargo run --release -- compare --model small --model best --sigma 25/255 --show 3 -o docs/quality.svg --overwrite
noisy=$(mktemp -d)
cargo run --release --example noise_kinds -- docs/noise-kinds.png "$noisy"
for kind in white counts camera; do
    cargo run --release -- denoise "$noisy/$kind.png" -o "$noisy/$kind-out.png" --plot "docs/noise-$kind.svg" --overwrite
done
