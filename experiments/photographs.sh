#!/bin/sh
# The photographs that the built-in models are trained on, and those that choose between trainings: links to the pictures of several
# folders in OUT/train and OUT/held-out, every tenth of each folder by name in the latter.
#
#   experiments/photographs.sh OUT FOLDER...
#
# The models of crates/proxlift/models had BSDS500 without the 68 test pictures (cbsd432) and 903 photographs of ImageNet, one a
# class, scaled down by 2 or 3 (imagenet-half).
set -eu
out=$1
shift
mkdir -p "$out/train" "$out/held-out"
for folder; do
    folder=$(cd "$folder" && pwd)
    ls "$folder" | LC_ALL=C sort | awk -v folder="$folder" -v name="$(basename "$folder")" -v out="$out" '{
        part = NR % 10 == 1 ? "held-out" : "train"
        printf "%s/%s\n%s/%s/%s-%s\n", folder, $0, out, part, name, $0
    }' | while read -r from && read -r to; do ln -sf "$from" "$to"; done
done
