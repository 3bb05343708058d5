"""The built-in model for photographs, adapted to a camera that it has never seen by 20 pairs of that camera.

    python experiments/fine_tuning.py PROXLIFT POLYU [CAMERA [MODEL]]

The pairs of the camera (NikonD800) are split by scenes: at least 20 crops to adapt to, the others to test. The model that comes
out is compared on those with the one that it started from: `photo`, or MODEL, which should not know the camera either. Needs numpy and pillow.
"""

import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image

SETTINGS = "--channels 3 --patch 72 --count 2000 --epochs 4 --batch 4 --rate 8e-4 --metric kronecker --fresh-places".split()
PAIRS = 20


def load(path):
    return np.asarray(Image.open(path).convert("RGB")).astype(np.float64)


def psnr(a, b):
    return 10 * np.log10(255**2 / ((a - b) ** 2).mean())


def main():
    program, data = sys.argv[1], pathlib.Path(sys.argv[2])
    camera = sys.argv[3] if len(sys.argv) > 3 else "NikonD800"
    model = str(pathlib.Path(sys.argv[4]).resolve()) if len(sys.argv) > 4 else "photo"
    names = sorted(path.stem for path in (data / "noisy").iterdir() if path.stem.startswith(camera))
    scenes = sorted({name.rsplit("_", 1)[0] for name in names})
    train = []
    for scene in scenes:
        if len(train) < PAIRS:
            train += [name for name in names if name.rsplit("_", 1)[0] == scene]
    test = [name for name in names if name not in train]
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for part in ("noisy", "mean", "test"):
            (work / part).mkdir()
        for name in train:
            for part in ("noisy", "mean"):
                Image.open(data / part / f"{name}.jpg").save(work / part / f"{name}.png")
        for name in test:
            Image.open(data / "noisy" / f"{name}.jpg").save(work / "test" / f"{name}.png")
        start = time.time()
        command = [program, "train", "--noisy", "noisy", "--data", "mean", "--from", model, *SETTINGS, "--out", "run", "--quiet"]
        subprocess.run(command, check=True, cwd=work, stdout=subprocess.DEVNULL)
        minutes = (time.time() - start) / 60
        clean = [load(data / "mean" / f"{name}.jpg") for name in test]
        print(f"{camera}: {len(train)} pairs to adapt to, {minutes:.1f} minutes; PSNR of the {len(test)} others")
        print(f"noisy      {np.mean([psnr(load(work / 'test' / f'{n}.png'), x) for n, x in zip(test, clean)]):.2f}")
        for title, flags in (("before", ["--model", model]), ("adapted", ["--model", "run/model.safetensors"])):
            subprocess.run([program, "denoise", "test", "-o", title, "--quiet", *flags], check=True, cwd=work)
            scores = [psnr(load(work / title / f"{name}.png"), x) for name, x in zip(test, clean)]
            print(f"{title:10} {np.mean(scores):.2f}")


if __name__ == "__main__":
    main()
