#!/usr/bin/env python3
"""What calling proxlift from Python costs: against the program on the same pictures, and for a call.

    python experiments/python_speed.py target/release/proxlift

The program denoises pages of floats, which need no conversion, and says how long that took without reading and writing;
Python takes the same arrays. Both take turns, and medians over the rounds are compared. The overhead of a call is its time less that of the engine inside.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tifffile

import proxlift
from proxlift import _denoise, _proxlift
from proxlift._arrays import Pages

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("program", type=Path)
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--model", default="best")
arguments = parser.parse_args()


def against_the_program(height: int, width: int, pages: int, rounds: int) -> None:
    z = np.random.default_rng(0).random((height, width), np.float32)
    times: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "noisy.tif"
        tifffile.imwrite(path, np.broadcast_to(z, (pages, height, width)))
        command = [arguments.program, "denoise", path, "-o", Path(folder) / "clean.tif", "--overwrite", "--json"]
        command += ["--model", arguments.model, "--sigma", "0.1"]

        def program() -> float:
            told = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout
            return float(json.loads(told.splitlines()[-1])["seconds"]) / pages

        def python() -> float:
            start = time.perf_counter()
            for _ in range(pages):
                proxlift.denoise(z, 0.1, model=arguments.model)
            return (time.perf_counter() - start) / pages

        for i in range(rounds):
            # Now one first, now the other.
            first, second = (program, python) if i % 2 == 0 else (python, program)
            one, other = first(), second()
            times.append((one, other) if first is program else (other, one))
    ours, theirs = np.median(times, axis=0)[::-1]
    ratio = np.median([b / a for a, b in times])
    print(f"| {width} x {height} | {1e3 * theirs:.1f} | {1e3 * ours:.1f} | {ratio:.3f} |")


def overhead(model: str, calls: int = 1000) -> None:
    z = np.random.default_rng(0).random((64, 64), np.float32)
    times, inside = np.empty(calls), []

    def run(denoiser: _proxlift.Denoiser, picture: np.ndarray, pages: Pages, sigma: float, dtype: np.dtype) -> np.ndarray:
        """As `_denoise._run`, keeping the time that the engine took."""
        return pages.fill(
            picture.shape, dtype, lambda output: inside.append(denoiser.denoise(pages.array, output, sigma))
        )

    usual, _denoise._run = _denoise._run, run
    for i in range(calls):
        start = time.perf_counter()
        proxlift.denoise(z, 0.1, model=model)
        times[i] = time.perf_counter() - start
    _denoise._run = usual
    over = 1e6 * (times - np.array(inside))
    print(f"| {model} | {1e6 * np.median(inside):.0f} | {np.median(over):.0f} | {np.min(over):.0f} |")


def imports() -> None:
    code = "import time; start = time.perf_counter(); import proxlift; print(time.perf_counter() - start)"
    took = min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5))
    print(f"\nimport proxlift: {1e3 * took:.1f} ms")


print(f"{proxlift.threads()} threads, {os.cpu_count()} cores, model {arguments.model}\n")
print("| picture | program, ms | Python, ms | ratio |\n|---|---|---|---|")
against_the_program(321, 481, 25, arguments.rounds)
against_the_program(4000, 4000, 1, arguments.rounds)
print("\n| 64 x 64, model | engine, us | overhead, us (median) | least |\n|---|---|---|---|")
for name in ("small", "best"):
    overhead(name)
imports()
