#!/bin/sh
# What other ingredients bring to networks of the shipped kind: short trainings that differ in one setting each.
#
#   experiments/photographs.sh PHOTOS cbsd432 imagenet-half
#   experiments/ingredients.sh PHOTOS OUT [ROW...]
#
# Trains on PHOTOS/train, 12,000 patches of 60x60 per row (about a minute on one thread), and prints PSNR in dB at sigma 25/255 on
# every third photograph of PHOTOS/held-out, in grey. Run folders go to OUT; rows that are there already are not trained again.
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
    score=$("$proxlift" evaluate --quiet --json --grey --model "$out/$name/last.safetensors" --data "$held" --sigma 25/255 |
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
