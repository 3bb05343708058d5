"""Training without clean pictures, measured against training with them, on white noise and on photon counts.

    python experiments/self_supervised.py PROXLIFT PHOTOS

60 pictures of PHOTOS, evenly spaced, grey, 256 x 256 pixels: 48 to train on, 12 to test. The same small network is trained
from scratch in three ways, with the same settings: from noisy pictures and clean ones, from two noisy pictures of each
scene (Noise2Noise), and from noisy pictures alone. Needs numpy, pillow and tifffile.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tifffile
from PIL import Image

SIDE, TRAIN, TEST = 256, 48, 12
SETTINGS = "--sigma 25/255 --patch 48 --count 2000 --epochs 12 --metric kronecker --rate 2e-3 --fresh-places --knots 4".split()
PEAK = 20


def crop(path):
    image = Image.open(path).convert("L").resize((SIDE, SIDE), Image.LANCZOS)
    return np.asarray(image).astype(np.float64) / 255


NOISES = {
    "white noise, 25/255": (lambda x, rng: x + rng.normal(0, 25 / 255, x.shape), np.float32, 1),
    f"counts, peak {PEAK}": (lambda x, rng: rng.poisson(PEAK * x), np.uint16, PEAK),
}


def psnr(a, b):
    return 10 * np.log10(1 / ((a - b) ** 2).mean())


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    paths = sorted(folder.iterdir())
    paths = paths[:: len(paths) // (TRAIN + TEST)][: TRAIN + TEST]
    rng = np.random.default_rng(0)
    print(f"{'':22} {'noisy':>7} {'clean':>7} {'noise2noise':>12} {'noisy alone':>12}")
    for name, (add, kind, peak) in NOISES.items():
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            for part in ("noisy", "other", "clean", "test"):
                (work / part).mkdir()
            tests = []
            for i, path in enumerate(paths):
                x = crop(path)
                if i % 5 == 0:
                    z = add(x, rng)
                    tests.append((x, z))
                    tifffile.imwrite(work / "test" / f"{i:03}.tif", z.astype(kind))
                    continue
                tifffile.imwrite(work / "noisy" / f"{i:03}.tif", add(x, rng).astype(kind))
                tifffile.imwrite(work / "other" / f"{i:03}.tif", add(x, rng).astype(kind))
                clean = (peak * x).astype(np.float32) / (65535 if kind == np.uint16 else 1)
                tifffile.imwrite(work / "clean" / f"{i:03}.tif", clean)
            scores = [np.mean([psnr(x, z / peak) for x, z in tests])]
            for run, data in (("with", ["--data", "clean"]), ("pairs", ["--data", "other"]), ("alone", [])):
                command = [program, "train", "--noisy", "noisy", *data, *SETTINGS, "--out", run, "--quiet"]
                subprocess.run(command, check=True, cwd=work, stdout=subprocess.DEVNULL)
                command = [program, "denoise", "test", "-o", f"{run}-out", "--model", f"{run}/model.safetensors", "--quiet", "--float"]
                subprocess.run(command, check=True, cwd=work)
                results = [tifffile.imread(path) / peak for path in sorted((work / f"{run}-out").iterdir())]
                scores.append(np.mean([psnr(x, r) for (x, _), r in zip(tests, results)]))
            print(f"{name:22} {scores[0]:7.2f} {scores[1]:7.2f} {scores[2]:12.2f} {scores[3]:12.2f}", flush=True)


if __name__ == "__main__":
    main()
