#!/bin/sh
# Trains `photo`, the built-in model for the noise of cameras, and the estimator of noise levels: about an hour on two cores.
#
#   experiments/photo.sh PHOTOS BSDS POLYU WORK
#
# PHOTOS and BSDS are folders of clean photographs (903 of ImageNet scaled down by two or three; the 200 of the BSDS500
# training set), POLYU has the folders `noisy` and `mean`, of which the first 50 pictures by name are used. The estimator needs
# Python with numpy and safetensors.
set -eu
photos=$1 bsds=$2 polyu=$3 work=$4
cd "$(dirname "$0")/.."
mkdir -p "$work/clean" "$work/noisy" "$work/mean"
for part in noisy mean; do
    find "$(realpath "$polyu")/$part" -name '*.jpg' | sort | head -50 | xargs -I{} ln -sf {} "$work/$part/"
done
# Clean photographs, and those of cameras six times.
find "$(realpath "$photos")" -type f | xargs -I{} ln -sf {} "$work/clean/"
for copy in 1 2 3 4 5 6; do
    for file in "$work"/mean/*.jpg; do ln -sf "$(realpath "$file")" "$work/clean/p${copy}_$(basename "$file")"; done
done

# The levels come first: pairs are brought to them. (For the shipped files the estimator was trained once more after `photo`, with
# counts among its examples.)
cargo build --release --example noise_features
features=target/release/examples/noise_features
$features "$work/grey.csv" grey 9 "$photos" "$bsds"
$features "$work/grey-real.csv" grey 24 "$work/noisy=$work/mean"
$features "$work/colour.csv" colour 12 "$photos" "$bsds"
$features "$work/colour-real.csv" colour 24 "$work/noisy=$work/mean"
for kind in grey colour; do
    awk -F, -v OFS=, '{ $2 += 20000; print }' "$work/$kind-real.csv" | cat "$work/$kind.csv" - > "$work/$kind-all.csv"
done
python3 experiments/noise_estimator.py "$work/grey-all.csv" "$work/colour-all.csv" crates/proxlift/models/noise.safetensors

# Simulated cameras, then real pairs.
common="--preset lifted --metric kronecker --channels 3 --sigma 25/255 --border 6 --batch 4 --rate 8e-4 --epochs 8"
cargo run --release -- train $common --from best --noise camera --data "$work/clean" --patch 64 --count 3000 \
    --out "$work/simulated"
cargo run --release -- train $common --from "$work/simulated/model.safetensors" --noisy "$work/noisy" --data "$work/mean" \
    --patch 72 --count 2500 --fresh-places --out "$work/photo"
cp "$work/photo/model.safetensors" crates/proxlift/models/colour-photo.safetensors
