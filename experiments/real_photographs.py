"""PSNR of the default command on pairs of real photographs, and of fixed levels.

    python experiments/real_photographs.py PROXLIFT POLYU [FLAGS...]

POLYU has the folders `noisy` and `mean` with files of the same names; the first half by name is for development, the
second for testing. Results are written as PNG into a temporary folder and compared in 8 bits. Needs numpy and pillow.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image


def load(path):
    return np.asarray(Image.open(path).convert("RGB")).astype(np.float64)


def psnr(a, b):
    return 10 * np.log10(255**2 / ((a - b) ** 2).mean())


def main():
    program, data, flags = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    names = sorted(path.stem for path in (data / "noisy").iterdir())
    clean = {path.stem: load(path) for path in (data / "mean").iterdir()}
    # Decoded once, so that all programs see the same pixels.
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = pathlib.Path(folder, "in"), pathlib.Path(folder, "out")
        inputs.mkdir()
        for path in (data / "noisy").iterdir():
            Image.open(path).convert("RGB").save(inputs / f"{path.stem}.png")
        subprocess.run([program, "denoise", str(inputs), "-o", str(outputs), "--quiet", *flags], check=True)
        noisy = [psnr(load(inputs / f"{name}.png"), clean[name]) for name in names]
        result = [psnr(load(outputs / f"{name}.png"), clean[name]) for name in names]
    half = len(names) // 2
    for title, part in (("development", slice(0, half)), ("test", slice(half, None)), ("all", slice(None))):
        print(f"{title:12} noisy {np.mean(noisy[part]):.2f}  result {np.mean(result[part]):.2f}")


if __name__ == "__main__":
    main()
