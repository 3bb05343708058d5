"""What the default command changes in pictures that have no noise.

    python experiments/clean_pictures.py PROXLIFT FOLDER [EVERY]

Every EVERY-th picture of FOLDER (all of them) is denoised as 8-bit PNG; PSNR of the output against the input, 99 where nothing
has changed. Needs numpy and pillow.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image


def load(path):
    return np.asarray(Image.open(path).convert("RGB")).astype(np.float64)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    paths = sorted(folder.iterdir())[:: int(sys.argv[3]) if len(sys.argv) > 3 else 1]
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        (work / "in").mkdir()
        for path in paths:
            Image.open(path).convert("RGB").save(work / "in" / f"{path.stem}.png")
        command = [program, "denoise", str(work / "in"), "-o", str(work / "out"), "--quiet", "--json"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        found = {pathlib.Path(done["input"]).stem: done for done in map(json.loads, lines)}
        scores = []
        for path in paths:
            error = ((load(work / "in" / f"{path.stem}.png") - load(work / "out" / f"{path.stem}.png")) ** 2).mean()
            scores.append((min(99.0, 10 * np.log10(255**2 / max(error, 1e-9))), path.stem))
    values = np.array([score for score, _ in scores])
    print(f"{len(values)} pictures: mean {values.mean():.1f} dB, {100 * (values < 45).mean():.0f} % below 45 dB; the worst:")
    for score, name in sorted(scores)[:5]:
        noise = found[name]["noise"]
        print(f"{score:6.2f}  {noise['kind']} {255 * found[name]['sigma']:.2f}/255  {name}")


if __name__ == "__main__":
    main()
