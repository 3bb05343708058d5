#!/bin/sh
# What other ingredients bring to networks of the shipped kind: short trainings that differ in one setting each.
#
#   experiments/photographs.sh PHOTOS cbsd432 imagenet-half
#   experiments/ingredients.sh PHOTOS OUT [ROW...]
#
# Trains on PHOTOS/train, 12,000 patches of 60x60 per row (about a minute on one thread), and prints PSNR in dB at sigma 25/255 on
# every third photograph of PHOTOS/held-out, in grey; rows named `colour` are of the kind of `small` in colour. Run folders go to OUT; rows that are there already are not trained again.
set -eu
here=$(dirname "$0") photos=$(cd "$1" && pwd) out=$2
shift 2
proxlift=${PROXLIFT:-target/release/proxlift}
wanted=${*:-}

held=$out/held-out
mkdir -p "$held"
ls "$photos/held-out" | awk 'NR % 3 == 1' | while read -r name; do ln -sf "$photos/held-out/$name" "$held/$name"; done

row() {
    name=$1
    shift
    case " $wanted " in "  " | *" $name "*) ;; *) return 0 ;; esac
    if [ ! -f "$out/$name/result.json" ]; then
        rm -rf "${out:?}/$name"
        "$proxlift" train --config "$here/ingredients.toml" --data "$photos/train" --threads 1 "$@" --out "$out/$name" \
            > /dev/null 2>&1
    fi
    case $name in colour*) grey= ;; *) grey=--grey ;; esac
    score=$("$proxlift" evaluate --quiet --json $grey --model "$out/$name/last.safetensors" --data "$held" --sigma 25/255 |
        sed -n 's/^ *"psnr": \([0-9.]*\),*/\1/p' | head -n 1)
    printf '%-16s %.3f dB   %s\n' "$name" "$score" "$*"
}

row squared
row norm --loss norm
row norm-mu-0.1 --loss norm --mu 0.1
row norm-mu-0.3 --loss norm --mu 0.3
row norm-mu-3 --loss norm --mu 3
row norm-rate-2e-3 --loss norm --rate 2e-3
row norm-rate-5e-3 --loss norm --rate 5e-3
row norm-centred --loss norm --secant centred --mu 10
row norm-steps-12 --loss norm --step-scale 12
row norm-knots-8 --loss norm --knots 8
row norm-7x7 --loss norm --kernel 7 --depth 10 --features 26
row norm-deep --loss norm --depth 20 --features 25
row norm-knots-3 --loss norm --knots 3
row norm-knots-2 --loss norm --knots 2
row norm-3x3 --loss norm --kernel 3 --depth 20 --features 70
row norm-batch-8 --loss norm --batch 8 --rate 4e-3
row norm-wide --loss norm --knots 2 --features 50
row norm-long --loss norm --knots 2 --epochs 8
row norm-long-wide --loss norm --knots 2 --features 50 --epochs 8
row norm-long-teacher --loss norm --knots 2 --epochs 8 --teacher best

colour='--channels 3 --loss norm --count 1600 --epochs 8 --stride 2 --kernel 3 --depth 8 --features 36'
row colour $colour --knots 2
row colour-teacher $colour --knots 2 --teacher best
row colour-range $colour --knots 2 --sigma-range 0.01,0.35
row colour-range-teacher $colour --knots 2 --sigma-range 0.01,0.35 --teacher best
row colour-range-knots-4 $colour --knots 4 --sigma-range 0.01,0.35
