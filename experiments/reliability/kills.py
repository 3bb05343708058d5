"""kill -9 at random moments of training, denoising and reproduction: each is started again, must come to the same bits
as one that was left alone, and must leave no partial file.

    python3 experiments/reliability/kills.py FOLDER [COUNT]     1,000 unless said; goes on where it was stopped
"""

import pathlib
import random
import shutil
import subprocess
import time

from common import PROGRAM, Tally, arguments, partials, png, run

TRAIN = "train -q --depth 2 --features 2 --kernel 3 --patch 12 --count 60 --epochs 20 --out".split()
REPRODUCE = "reproduce -q --tiny --only figure1 --out".split()
KINDS = ["train", "denoise", "reproduce"]


class Kind:
    """How long a run takes, of late: the machine may be busy with other work."""

    def __init__(self):
        self.seconds = 1.0

    def whole(self, *words):
        start = time.time()
        run(*words, check=True)
        self.seconds = 0.7 * self.seconds + 0.3 * (time.time() - start)

    def killed(self, words, draw):
        """Starts the program and kills it some time before it would end; whether it was killed before its end."""
        child = subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            child.wait(draw.random() * self.seconds)
        except subprocess.TimeoutExpired:
            child.kill()
        return child.wait() < 0


def bits(folder, names):
    return [pathlib.Path(folder, name).read_bytes() for name in names]


def training(folder, whole, kind, draw, tally):
    place = folder / "train"
    shutil.rmtree(place, ignore_errors=True)
    words = [*TRAIN, place]
    for _ in range(3):
        if not kind.killed(words, draw):
            break
        tally.add("train: killed")
        if (place / "result.json").exists():
            break
        if (place / "checkpoint/latest.safetensors").exists():
            words = ["train", "-q", "--resume", place]
            tally.add("train: resumed from a checkpoint")
        else:
            shutil.rmtree(place, ignore_errors=True)
    if not (place / "result.json").exists():
        kind.whole(*words)
    same = bits(place, ["last.safetensors", "model.safetensors"]) == whole
    lines = len((place / "history.jsonl").read_text().splitlines())
    tally.add("train: same bits" if same and lines == 20 else "train: OTHER BITS")
    tally.add("train: partial files left", len(partials(place)))


def denoising(folder, whole, kind, draw, tally):
    place = folder / "denoised"
    words = ["denoise", "-q", folder / "pictures", "--model", "small", "--sigma", "0.1", "--overwrite", "-o", place]
    if kind.killed(words, draw):
        tally.add("denoise: killed")
    for path in sorted(place.glob("*.png")):
        if path.read_bytes() != whole[path.name]:
            tally.add("denoise: HALF A PICTURE")
    kind.whole(*words)
    same = all((place / name).read_bytes() == data for name, data in whole.items())
    tally.add("denoise: same bits" if same else "denoise: OTHER BITS")
    tally.add("denoise: partial files left", len(partials(place)))
    shutil.rmtree(place)


def models_below(place):
    return {path.relative_to(place): path.read_bytes() for path in place.rglob("model.safetensors")}


def reproduction(folder, whole, kind, draw, tally):
    place = folder / "reproduce"
    shutil.rmtree(place, ignore_errors=True)
    for _ in range(3):
        if not kind.killed([*REPRODUCE, place], draw):
            break
        tally.add("reproduce: killed")
    kind.whole(*REPRODUCE, place)
    tally.add("reproduce: same bits" if models_below(place) == whole else "reproduce: OTHER BITS")
    tally.add("reproduce: partial files left", len(partials(place)))


def main():
    folder, count = arguments(1000)
    tally, kinds = Tally(folder, "kills"), {name: Kind() for name in KINDS}
    whole = folder / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    kinds["train"].whole(*TRAIN, whole / "train")
    models = bits(whole / "train", ["last.safetensors", "model.safetensors"])
    (folder / "pictures").mkdir(exist_ok=True)
    for i in range(6):
        png(folder / "pictures" / f"{i}.png", 200, 150, seed=i)
    denoise = ["denoise", "-q", folder / "pictures", "--model", "small", "--sigma", "0.1", "--overwrite"]
    kinds["denoise"].whole(*denoise, "-o", whole / "denoised")
    pictures = {path.name: path.read_bytes() for path in (whole / "denoised").glob("*.png")}
    kinds["reproduce"].whole(*REPRODUCE, whole / "reproduce")
    figures = models_below(whole / "reproduce")
    attacks = {
        "train": lambda draw: training(folder, models, kinds["train"], draw, tally),
        "denoise": lambda draw: denoising(folder, pictures, kinds["denoise"], draw, tally),
        "reproduce": lambda draw: reproduction(folder, figures, kinds["reproduce"], draw, tally),
    }
    while sum(tally[f"{name}: killed"] for name in KINDS) < count:
        # Whichever has been killed least.
        name = min(KINDS, key=lambda name: tally[f"{name}: killed"])
        attacks[name](random.Random(tally["rounds"]))
        tally.add("rounds")
    tally.table()


main()
