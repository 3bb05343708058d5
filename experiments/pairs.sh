#!/bin/sh
# What lifting brings and what the metric brings: trainings that differ in one thing only, over several seeds.
#
#   experiments/pairs.sh PHOTOGRAPHS OUT [SEED...]
#
# trains the network of ablation.toml with long steps and a border on PHOTOGRAPHS (the 200 training pictures of BSDS500),
# with the same rate, momentum, beta2, data and noise in every row, and prints a table of PSNR on the held-out pictures,
# whole, at sigma 25/255: one column for each seed (default 0, 1, 2), then the mean. The run folders go to OUT; a run
# that is there already is not repeated.
set -eu
here=$(dirname "$0") data=$(cd "$1" && pwd) out=$2
shift 2
seeds=${*:-0 1 2}
proxlift=${PROXLIFT:-target/release/proxlift}

# The pictures that `proxlift train` holds out: every tenth by name.
held=$out/held-out
mkdir -p "$held"
ls "$data" | awk 'NR % 10 == 1' | while read -r name; do ln -sf "$data/$name" "$held/$name"; done

row() {
    name=$1
    shift
    scores=
    for seed in $seeds; do
        folder=$out/$name-seed-$seed
        if [ ! -f "$folder/result.json" ]; then
            rm -rf "$folder"
            "$proxlift" train --config "$here/ablation.toml" --data "$data" --border 6 --step-scale 6 --momentum 0.9 \
                --beta2 0.99 --schedule cosine --seed "$seed" "$@" --out "$folder" >/dev/null 2>&1
        fi
        score=$("$proxlift" evaluate --quiet --json --model "$folder/last.safetensors" --data "$held" --sigma 25/255 |
            sed -n 's/^ *"psnr": \([0-9.]*\),*/\1/p' | head -n 1)
        scores="$scores $score"
    done
    echo "$scores" | awk -v name="$name" '{
        for (i = 1; i <= NF; i++) { sum += $i; line = line sprintf(" %8.3f", $i) }
        printf "%-34s%s   mean %.3f\n", name, line, sum / NF
    }'
}

row backprop-diagonal --trainer backprop --metric diagonal
row lifted-diagonal-mu-0.1 --trainer lb --metric diagonal --mu 0.1
row lifted-diagonal-mu-1 --trainer lb --metric diagonal --mu 1
row backprop-kronecker --trainer backprop --metric kronecker
row lifted-kronecker-mu-0.1 --trainer lb --metric kronecker --mu 0.1
row lifted-kronecker-mu-1 --trainer lb --metric kronecker --mu 1
