#!/bin/sh
# What each ingredient of the built-in models contributes: short trainings that differ in one setting each.
#
#   experiments/ablation.sh PHOTOGRAPHS OUT [ROW...]
#
# Trains on PHOTOGRAPHS (the 200 training pictures of BSDS500), 16,000 patches per row, and prints PSNR and SSIM on the
# held-out pictures, uncropped, at sigma 25/255. Run folders go to OUT; rows already there are not trained again.
# OTHER=FOLDER (Tiny ImageNet) enables the two rows that train on other pictures.
set -eu
here=$(dirname "$0") data=$(cd "$1" && pwd) out=$2
shift 2
proxlift=${PROXLIFT:-target/release/proxlift}
wanted=${*:-}

# `proxlift train` holds out every tenth picture by name.
held=$out/held-out
mkdir -p "$held"
ls "$data" | awk 'NR % 10 == 1' | while read -r name; do ln -sf "$data/$name" "$held/$name"; done

row() {
    name=$1
    shift
    case " $wanted " in "  " | *" $name "*) ;; *) return 0 ;; esac
    folder=$out/$name
    if [ ! -f "$folder/training.svg" ]; then
        rm -rf "$folder"
        "$proxlift" train --config "$here/ablation.toml" --data "$data" "$@" --out "$folder" >/dev/null 2>&1
    fi
    seconds=$(tail -n 1 "$folder/history.jsonl" | sed 's/.*"seconds":\([0-9.]*\).*/\1/')
    score=$("$proxlift" evaluate --quiet --json --model "$folder/last.safetensors" --data "$held" --sigma 25/255)
    of() { echo "$score" | sed -n "s/^ *\"$1\": \([0-9.]*\),*/\1/p"; }
    printf '%-28s %7.3f dB %7.4f %6.0f s   %s\n' "$name" "$(of psnr)" "$(of ssim)" "$seconds" "$*"
}

row base
row adam --trainer backprop --beta2 0.999
row adam-1e-3 --trainer backprop --beta2 0.999 --rate 1e-3
row kronecker --metric kronecker
row border --border 6
row kronecker-border --metric kronecker --border 6
row kronecker-border-features-64 --metric kronecker --border 6 --features 64
long="--metric kronecker --border 6 --step-scale 6"
row overstep-2 --metric kronecker --border 6 --step-scale 2
row overstep-6 $long
row overstep-16 --metric kronecker --border 6 --step-scale 16
row overstep-diagonal --border 6 --step-scale 6
row overstep-adam --border 6 --step-scale 6 --trainer backprop --beta2 0.999
row overstep-adam-1e-3 --border 6 --step-scale 6 --trainer backprop --beta2 0.999 --rate 1e-3
row overstep-dual-fb $long --unrolling dual-forward-backward
row overstep-depth-12 $long --depth 12
row overstep-11x24 $long --depth 11 --features 24
row overstep-14x18 $long --depth 14 --features 18
row overstep-14x36-kernel-5 $long --depth 14 --features 36 --kernel 5
row overstep-20x24-kernel-5 $long --depth 20 --features 24 --kernel 5
row overstep-range $long --sigma-range 0.02,0.3
row stride-2 $long --stride 2 --kernel 3 --features 64
row stride-2-depth-16 $long --stride 2 --kernel 3 --features 64 --depth 16
row stride-2-kernel-5 $long --stride 2 --kernel 5 --features 64
row own-synthesis $long --own-synthesis
row own-synthesis-mu-1 $long --own-synthesis --mu 1
row own-synthesis-14x36-kernel-5 $long --own-synthesis --mu 1 --depth 14 --features 36 --kernel 5
row adjoint-14x36-kernel-5 $long --mu 1 --depth 14 --features 36 --kernel 5
row own-synthesis-stride-2-depth-16 $long --own-synthesis --mu 1 --stride 2 --kernel 3 --features 64 --depth 16
row mu-0.03 --mu 0.03
row mu-0.3 --mu 0.3
row inertial --unrolling inertial
row chambolle-pock --unrolling chambolle-pock
row dual-fb --unrolling dual-forward-backward
row dual-fb-rate-1e-3 --unrolling dual-forward-backward --rate 1e-3
row dual-fb-rate-6e-3 --unrolling dual-forward-backward --rate 6e-3
row dual-fb-clip-rate-1e-3 --unrolling dual-forward-backward --rate 1e-3 --knots 0
row dual-fb-depth-12 --unrolling dual-forward-backward --depth 12 --features 24
row dual-fb-depth-6 --unrolling dual-forward-backward --depth 6 --features 48
row dual-fb-cosines --unrolling dual-forward-backward --start cosines --lambda 0.035
row bounded --bounded
row tied --tied
row two-knots --knots 2
row kernel-3 --kernel 3
row kernel-5 --kernel 5
row features-16 --features 16
row range --sigma-range 0.02,0.3
row patch-64 --patch 64 --count 1126 --batch 2
row same-noise --fresh-noise false
row same-places --fresh-places false --augment false

# Other pictures: Tiny ImageNet alone, and the photographs plus as many of it, so that each gives half the patches.
if [ -n "${OTHER:-}" ]; then
    other=$(cd "$OTHER" && pwd) mixed=$out/mixed-pictures
    mkdir -p "$mixed"
    find "$data" -type f | sort | awk 'NR % 10 != 1' | while read -r file; do ln -sf "$file" "$mixed/"; done
    find "$other" -type f | sort | head -n 180 | while read -r file; do ln -sf "$file" "$mixed/"; done
    data=$other
    row tiny-imagenet
    data=$mixed
    row mixed
fi
