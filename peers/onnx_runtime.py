#!/usr/bin/env python3
"""Compare proxlift with ONNX Runtime: the same models, exported by `proxlift export`, on the same noisy picture.

The work, on the CPU in single precision: one picture of 481x321 pixels, grey and colour, through the built-in models
`small` and `best` at a given noise level, from array to array. Both run in this process, on the same number of threads.
They take turns, so that other load on the machine affects both, and each counts with its fastest repetition.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import numpy as np
    import onnxruntime
    import proxlift
except ImportError as error:
    print(f"error: {error}; install the packages of peers/requirements.txt and proxlift itself", file=sys.stderr)
    sys.exit(2)

HEIGHT, WIDTH, SIGMA = 321, 481, 25 / 255
WORK = [("small", 1), ("best", 1), ("small", 3), ("best", 3)]
TOLERANCE = 1e-5


class Failure(Exception):
    """Ends the program with one sentence and exit code 2."""


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="threads of both (default 2)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of the two (default 5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="time of each turn (default 1)")
    parser.add_argument("--proxlift", default="target/release/proxlift", metavar="PATH", help="the proxlift program")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    arguments = parser.parse_args()
    if arguments.threads < 1 or arguments.rounds < 1 or arguments.seconds <= 0:
        parser.error("threads, rounds and seconds must be positive")
    return arguments


def export(program, model, channels, path):
    command = [program, "export", path, "--model", model, "--channels", str(channels)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except OSError as error:
        raise Failure(f"cannot run {program} ({error.strerror}): run cargo build --release first") from error
    if done.returncode != 0:
        raise Failure(f"proxlift export failed: {done.stderr.strip()}")


def fastest(run, seconds):
    """The least time of a call, after one that is not counted."""
    run()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def noisy_picture(channels):
    generator = np.random.default_rng(0)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    clean = 0.5 + 0.25 * np.sin(x / 17) * np.cos(y / 23) + 0.2 * ((x // 40 + y // 40) % 2 - 0.5)
    return (clean + generator.normal(0, SIGMA, (channels, HEIGHT, WIDTH))).astype(np.float32)


def compare(model, channels, path, arguments):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    network = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    picture = noisy_picture(channels)
    inputs = {"image": picture[None], "sigma": np.array([SIGMA], np.float32)}
    axis = {"channel_axis": 0} if channels == 3 else {}
    image = picture if channels == 3 else picture[0]
    programs = {
        "onnxruntime": lambda: network.run(None, inputs)[0][0],
        "proxlift": lambda: proxlift.denoise(image, SIGMA, model=model, clip=False, **axis),
    }
    gap = float(np.abs(programs["onnxruntime"]() - programs["proxlift"]()).max())
    if not gap <= TOLERANCE:
        raise Failure(f"the results of {model} differ by {gap:.1e}, more than {TOLERANCE:.0e}")
    seconds = dict.fromkeys(programs, float("inf"))
    for _ in range(arguments.rounds):
        for name, run in programs.items():
            seconds[name] = min(seconds[name], fastest(run, arguments.seconds))
    return {"model": model, "channels": channels, "difference": gap, "seconds": seconds}


def main():
    arguments = parse()
    os.environ["RAYON_NUM_THREADS"] = str(arguments.threads)  # proxlift starts its threads with its first picture
    results = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for model, channels in WORK:
                path = str(Path(folder) / f"{model}-{channels}.onnx")
                export(arguments.proxlift, model, channels, path)
                results.append(compare(model, channels, path, arguments))
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 2
    if arguments.json:
        print(json.dumps({"onnxruntime": onnxruntime.__version__, "threads": arguments.threads, "results": results}))
        return 0
    print(f"ONNX Runtime {onnxruntime.__version__}, {arguments.threads} threads, {WIDTH}x{HEIGHT} pixels, fastest run of many")
    print(f"{'model':<16}{'ONNX Runtime':>14}{'proxlift':>12}{'ratio':>9}{'difference':>13}")
    for result in results:
        name = f"{result['model']}, {'grey' if result['channels'] == 1 else 'colour'}"
        theirs, ours = (1e3 * result["seconds"][program] for program in ("onnxruntime", "proxlift"))
        gap = result["difference"]
        print(f"{name:<16}{theirs:11.1f} ms{ours:9.1f} ms{theirs / ours:7.1f} x{gap:13.1e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
