"""Photon counts: the default command, the known model, and BM3D between the Anscombe transform and its exact inverse.

    python experiments/poisson.py PROXLIFT FOLDER [EVERY [FIRST]]

Every EVERY-th picture of FOLDER from number FIRST on (all of them) is turned grey and scaled so that white is a mean of 5,
20, 50 and 200 counts; Poisson counts are stored in 16 bits. PSNR is relative to that peak. Needs numpy, pillow, tifffile
and bm3d.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import bm3d
import numpy as np
import tifffile
from PIL import Image

SIDE = 256


def crop(path):
    image = Image.open(path).convert("L")
    left, top = (image.width - min(image.width, SIDE)) // 2, (image.height - min(image.height, SIDE)) // 2
    return np.asarray(image.crop((left, top, left + min(image.width, SIDE), top + min(image.height, SIDE)))) / 255


def exact_inverse(d):
    """The closed form of Makitalo and Foi (2011) for the exact unbiased inverse without read noise."""
    d = np.maximum(d, 2 * np.sqrt(3 / 8))
    return np.maximum(d**2 / 4 + np.sqrt(1.5) / 4 / d - 11 / 8 / d**2 + 5 * np.sqrt(1.5) / 8 / d**3 - 1 / 8, 0)


def with_bm3d(counts):
    d = 2 * np.sqrt(counts + 3 / 8)
    low, high = d.min(), d.max()
    return exact_inverse(bm3d.bm3d((d - low) / (high - low), 1 / (high - low)) * (high - low) + low)


def psnr(a, b, peak):
    return 10 * np.log10(peak**2 / ((a - b) ** 2).mean())


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    every, first = (int(v) for v in (sys.argv[3:] + ["1", "0"][len(sys.argv) - 3 :]))
    paths = sorted(path for path in folder.iterdir())[first::every]
    rng = np.random.default_rng(0)
    print("peak   noisy  default  known gain    BM3D  kinds found")
    for peak in (5, 20, 50, 200):
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            (work / "in").mkdir()
            clean, noisy = [], []
            for i, path in enumerate(paths):
                clean.append(peak * crop(path))
                noisy.append(rng.poisson(clean[-1]))
                tifffile.imwrite(work / "in" / f"{i:04}.tif", noisy[-1].astype(np.uint16))
            scores, kinds = [], {}
            for name, flags in (("default", []), ("known", ["--noise", "poisson", "--gain", "1", "--offset", "0", "--read-noise", "0"])):
                command = [program, "denoise", str(work / "in"), "-o", str(work / name), "--quiet", "--json", "--float", *flags]
                run = subprocess.run(command, check=True, capture_output=True, text=True)
                if name == "default":
                    for line in run.stdout.splitlines():
                        kind = json.loads(line)["noise"]["kind"]
                        kinds[kind] = kinds.get(kind, 0) + 1
                results = [tifffile.imread(path).astype(float) for path in sorted((work / name).iterdir())]
                results = [r * 65535 if r.max() < 1 else r for r in results]
                scores.append(np.mean([psnr(a, b, peak) for a, b in zip(clean, results)]))
            others = np.mean([psnr(a, with_bm3d(b), peak) for a, b in zip(clean, noisy)])
            before = np.mean([psnr(a, b, peak) for a, b in zip(clean, noisy)])
            print(f"{peak:4} {before:7.2f} {scores[0]:8.2f} {scores[1]:11.2f} {others:7.2f}  {kinds}", flush=True)


if __name__ == "__main__":
    main()
