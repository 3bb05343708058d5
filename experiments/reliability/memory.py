"""The largest memory of `proxlift denoise` for a large grey picture with the model `small`.

    python3 experiments/reliability/memory.py FOLDER [SIDE]     20,000 pixels unless said
"""

import os
import resource
import subprocess
import time

from common import PROGRAM, arguments


def main():
    folder, side = arguments(20_000)
    path = folder / f"{side}.pgm"
    if not path.exists():
        with open(path, "wb") as file:
            file.write(b"P5\n%d %d\n255\n" % (side, side))
            row = bytes((x * 7919 >> 5) & 255 for x in range(side))
            for y in range(side):
                file.write(row[y % 997 :] + row[: y % 997])
    words = [PROGRAM, "denoise", "-q", path, "--model", "small", "--sigma", "0.1", "--overwrite", "-o", folder / "out.pgm"]
    start = time.time()
    subprocess.run(words, check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
    print(f"{'side':<24} {side:>10}\n{'largest memory in MB':<24} {peak:>10.0f}")
    print(f"{'seconds':<24} {time.time() - start:>10.0f}\n{'threads':<24} {os.cpu_count():>10}")


main()
