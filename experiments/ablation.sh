#!/bin/sh
# What each ingredient of the built-in models brings: short trainings that differ in one setting each.
#
#   experiments/ablation.sh PHOTOGRAPHS OUT [ROW...]
#
# trains on PHOTOGRAPHS (the 200 training pictures of BSDS500), 16,000 patches a row, and prints the PSNR on the held-out
# pictures at sigma 25/255; the run folders go to OUT, and a row that is there already is not trained again.
set -eu
here=$(dirname "$0") data=$1 out=$2
shift 2
proxlift=${PROXLIFT:-target/release/proxlift}
wanted=${*:-}

row() {
    name=$1
    shift
    case " $wanted " in "  " | *" $name "*) ;; *) return 0 ;; esac
    folder=$out/$name
    if [ ! -f "$folder/training.svg" ]; then
        rm -rf "$folder"
        "$proxlift" train --config "$here/ablation.toml" --data "$data" "$@" --out "$folder" >/dev/null 2>&1
    fi
    psnr=$(tail -n 1 "$folder/history.jsonl" | sed 's/.*"psnr":\([0-9.]*\).*/\1/')
    seconds=$(tail -n 1 "$folder/history.jsonl" | sed 's/.*"seconds":\([0-9.]*\).*/\1/')
    printf '%-24s %8.3f dB %6.0f s   %s\n' "$name" "$psnr" "$seconds" "$*"
}

row base
row adam --trainer adam --rate 3e-3
row adam-1e-3 --trainer adam --rate 1e-3
row rate-1e-3 --rate 1e-3
row rate-6e-3 --rate 6e-3
row mu-0.03 --mu 0.03
row mu-0.3 --mu 0.3
row dual-fb --unrolling dual-forward-backward
row inertial --unrolling inertial
row chambolle-pock --unrolling chambolle-pock
row bounded --bounded
row tied --tied
row two-knots --knots 2
row eight-knots --knots 8
row kernel-3 --kernel 3
row kernel-5 --kernel 5
row depth-4 --depth 4
row depth-12-features-24 --depth 12 --features 24
row depth-6-features-48 --depth 6 --features 48
row features-16 --features 16
row cosines --start cosines --lambda 0.035
row range --sigma-range 0.02,0.3
row patch-32 --patch 32 --count 4500
row same-noise --fresh-noise false
row same-places --fresh-places false --augment false
