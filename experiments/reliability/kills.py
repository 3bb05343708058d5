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

TRAIN = "train -q --depth 3 --features 4 --patch 16 --count 200 --epochs 12 --out".split()
REPRODUCE = "reproduce -q --quick --only figure1 --out".split()


def killed(words, longest, draw):
    """Starts the program and kills it within the given seconds; whether it was killed before its end."""
    child = subprocess.Popen([PROGRAM, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(draw.random() * longest)
    child.kill()
    return child.wait() < 0


def bits(folder, names):
    return [pathlib.Path(folder, name).read_bytes() for name in names]


def training(folder, whole, seconds, draw, tally):
    place = folder / "train"
    shutil.rmtree(place, ignore_errors=True)
    words = [*TRAIN, place]
    while killed(words, seconds, draw):
        tally.add("train: killed")
        if (place / "checkpoint/latest.safetensors").exists() and not (place / "result.json").exists():
            words = ["train", "-q", "--resume", place]
        elif not (place / "result.json").exists():
            shutil.rmtree(place, ignore_errors=True)
            words = [*TRAIN, place]
        else:
            break
    if not (place / "result.json").exists():
        run(*words, check=True)
    same = bits(place, ["last.safetensors", "model.safetensors"]) == whole
    tally.add("train: same bits" if same else "train: OTHER BITS")
    tally.add("train: partial files left", len(partials(place)))


def denoising(folder, whole, seconds, draw, tally):
    place = folder / "denoise"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder / "pictures", place)
    words = ["denoise", "-q", place, "--model", "small", "--sigma", "0.1", "--overwrite", "-o", folder / "denoised"]
    if killed(words, seconds, draw):
        tally.add("denoise: killed")
    for path in sorted((folder / "denoised").glob("*.png")):
        if path.read_bytes() != whole[path.name]:
            tally.add("denoise: HALF A PICTURE")
    run(*words, check=True)
    same = all((folder / "denoised" / name).read_bytes() == data for name, data in whole.items())
    tally.add("denoise: same bits" if same else "denoise: OTHER BITS")
    tally.add("denoise: partial files left", len(partials(folder / "denoised")))


def reproduction(folder, whole, seconds, draw, tally):
    place = folder / "reproduce"
    shutil.rmtree(place, ignore_errors=True)
    for _ in range(3):
        if killed([*REPRODUCE, place], seconds, draw):
            tally.add("reproduce: killed")
    run(*REPRODUCE, place, check=True)
    models = {path.relative_to(place): path.read_bytes() for path in place.rglob("model.safetensors")}
    tally.add("reproduce: same bits" if models == whole else "reproduce: OTHER BITS")
    tally.add("reproduce: partial files left", len(partials(place)))


def timed(*words):
    start = time.time()
    run(*words, check=True)
    return time.time() - start


def main():
    folder, count = arguments(1000)
    tally = Tally(folder, "kills")
    whole = folder / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    seconds = timed(*TRAIN, whole / "train")
    models = bits(whole / "train", ["last.safetensors", "model.safetensors"])
    (folder / "pictures").mkdir(exist_ok=True)
    for i in range(6):
        png(folder / "pictures" / f"{i}.png", 400, 300, seed=i)
    denoise = ["denoise", "-q", folder / "pictures", "--model", "small", "--sigma", "0.1", "--overwrite"]
    duration = timed(*denoise, "-o", whole / "denoised")
    pictures = {path.name: path.read_bytes() for path in (whole / "denoised").glob("*.png")}
    attacks = [
        lambda draw: training(folder, models, seconds, draw, tally),
        lambda draw: denoising(folder, pictures, duration, draw, tally),
    ]
    if run(*REPRODUCE, whole / "reproduce").returncode == 0:
        found = (whole / "reproduce").rglob("model.safetensors")
        figures = {path.relative_to(whole / "reproduce"): path.read_bytes() for path in found}
        attacks.append(lambda draw: reproduction(folder, figures, 20, draw, tally))
    names = ["train: killed", "denoise: killed", "reproduce: killed"]
    while sum(tally[name] for name in names) < count:
        number = tally["rounds"]
        attacks[number % len(attacks)](random.Random(number))
        tally.add("rounds")
    tally.table()


main()
