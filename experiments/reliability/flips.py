"""Flipped bits in checkpoints and models with a checksum: none may be accepted.

    python3 experiments/reliability/flips.py FOLDER [COUNT]     10,000 unless said; goes on where it was stopped
"""

import random
import shutil
import sys

from common import Tally, arguments, png, run


def main():
    folder, count = arguments(10_000)
    tally = Tally(folder, "flips")
    place = folder / "run"
    if not (place / "checkpoint/latest.safetensors").exists():
        shutil.rmtree(place, ignore_errors=True)
        words = "train -q --depth 3 --features 4 --patch 16 --count 40 --epochs 8 --stop-after 2 --out".split()
        run(*words, place, check=True)
    png(folder / "a.png", 16, 16)
    model = (place / "last.safetensors").read_bytes()
    checkpoint = (place / "checkpoint/latest.safetensors").read_bytes()
    while tally["flips"] < count:
        draw = random.Random(tally["flips"])
        kind = draw.choice(["model", "checkpoint"])
        data = bytearray(model if kind == "model" else checkpoint)
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        if kind == "model":
            (folder / "damaged.safetensors").write_bytes(data)
            words = ["denoise", "-q", folder / "a.png", "--overwrite", "--model", folder / "damaged.safetensors"]
        else:
            (place / "checkpoint/latest.safetensors").write_bytes(data)
            words = ["train", "-q", "--resume", place]
        code = run(*words).returncode
        if kind == "checkpoint":
            # Where it was accepted, the run has gone on: the next has to start from the same.
            (place / "checkpoint/latest.safetensors").write_bytes(checkpoint)
            if code == 0:
                sys.exit(f"flip {tally['flips']} was accepted, see {place}")
        tally.add(f"{kind}: " + {0: "ACCEPTED", 2: "refused"}.get(code, f"CODE {code}"))
        tally.add("flips")
    tally.table()


main()
