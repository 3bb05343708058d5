#!/usr/bin/env python3
"""Compare denoisers that are called from Python: how good and how fast, in one run, on the same pictures.

proxlift, its models in ONNX Runtime and as a PyTorch module, BM3D, scikit-image (total variation, non-local means,
wavelets) and OpenCV (non-local means, which takes 8 bits). White Gaussian noise; every method is told the level; results
are clipped to [0, 1] before they are scored. Methods take turns on every picture, and each counts with its fastest
repetition. Threads: at most --threads each; how many a method uses is its own choice (BM3D and scikit-image use one).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder", type=Path, help="grey pictures")
parser.add_argument("--sigma", type=float, default=25, help="noise level in grey levels of 8 bits")
parser.add_argument("--limit", type=int, default=10, help="pictures, evenly spaced by name")
parser.add_argument("--repetitions", type=int, default=3)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--skip", nargs="*", default=[], help="methods to leave out")
parser.add_argument("--plot", type=Path, help="draw PSNR over speed, SVG or PNG")
arguments = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = str(arguments.threads)

import cv2  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import torch  # noqa: E402
from bm3d import bm3d  # noqa: E402
from skimage import io, restoration  # noqa: E402

import proxlift  # noqa: E402
import proxlift.torch  # noqa: E402

Method = Callable[[np.ndarray, float], np.ndarray]
# `weight / sigma` of total variation: the best on pictures of the BSDS500 training folder (`peers/quality.py --tune`).
TV_WEIGHT = 0.7
RUNTIMES = ("ONNX Runtime", "PyTorch")


def through_onnx(name: str) -> Method:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        proxlift.Model.load(name).to_onnx(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = arguments.threads
        session = onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])

    def run(z: np.ndarray, sigma: float) -> np.ndarray:
        level = np.array([sigma], np.float32)
        return session.run(None, {"image": z[np.newaxis, np.newaxis], "sigma": level})[0][0, 0]

    return run


def through_torch(name: str) -> Method:
    torch.set_num_threads(arguments.threads)
    network = proxlift.torch.Network.load(name).eval()

    def run(z: np.ndarray, sigma: float) -> np.ndarray:
        with torch.inference_mode():
            return network(torch.from_numpy(z)[None, None], sigma)[0, 0].numpy()

    return run


def opencv(z: np.ndarray, sigma: float) -> np.ndarray:
    eight = np.round(255 * z.clip(0, 1)).astype(np.uint8)
    return cv2.fastNlMeansDenoising(eight, None, h=255 * sigma, templateWindowSize=7, searchWindowSize=21) / 255


def non_local_means(z: np.ndarray, sigma: float) -> np.ndarray:
    return restoration.denoise_nl_means(z, patch_size=5, patch_distance=6, h=0.8 * sigma, sigma=sigma, fast_mode=True)


METHODS: dict[str, Method] = {
    "proxlift best": lambda z, sigma: proxlift.denoise(z, sigma),
    "proxlift small": lambda z, sigma: proxlift.denoise(z, sigma, model="small"),
    "best in ONNX Runtime": through_onnx("best"),
    "small in ONNX Runtime": through_onnx("small"),
    "best in PyTorch": through_torch("best"),
    "small in PyTorch": through_torch("small"),
    "BM3D": lambda z, sigma: bm3d(z, sigma),
    "scikit-image TV": lambda z, sigma: restoration.denoise_tv_chambolle(z, weight=TV_WEIGHT * sigma),
    "scikit-image NLM": non_local_means,
    "scikit-image wavelet": lambda z, sigma: restoration.denoise_wavelet(z, sigma=sigma, method="BayesShrink"),
    "OpenCV NLM": opencv,
}


def main() -> None:
    paths = sorted(path for path in arguments.folder.iterdir() if path.suffix.lower() in (".png", ".jpg", ".tif"))
    if not paths:
        sys.exit(f"{arguments.folder}: there are no pictures here")
    count = min(arguments.limit, len(paths))
    paths = [paths[i * len(paths) // count] for i in range(count)]
    sigma = arguments.sigma / 255
    methods = {name: method for name, method in METHODS.items() if name not in arguments.skip}
    scores: dict[str, list[float]] = {name: [] for name in ["noisy", *methods]}
    seconds = dict.fromkeys(methods, 0.0)
    pixels = 0
    for index, path in enumerate(paths):
        clean = io.imread(path, as_gray=True)
        clean = (clean / 255 if clean.dtype == np.uint8 else clean).astype(np.float32)
        noisy = (clean + np.random.default_rng(index).normal(0, sigma, clean.shape)).astype(np.float32)
        scores["noisy"].append(proxlift.psnr(clean, noisy.clip(0, 1), data_range=1))
        pixels += clean.size
        fastest = dict.fromkeys(methods, float("inf"))
        for _ in range(arguments.repetitions):
            for name, method in methods.items():
                start = time.perf_counter()
                result = method(noisy, sigma)
                fastest[name] = min(fastest[name], time.perf_counter() - start)
                if len(scores[name]) == index:
                    scores[name].append(proxlift.psnr(clean, np.clip(result, 0, 1).astype(np.float32), data_range=1))
        for name in methods:
            seconds[name] += fastest[name]
        print(f"{path.name}", file=sys.stderr)
    print(f"{count} pictures of {arguments.folder.name}, sigma {arguments.sigma:g}/255, {arguments.threads} threads\n")
    print("| method | PSNR | megapixels/s | time against `proxlift best` |\n|---|---|---|---|")
    print(f"| noisy | {np.mean(scores['noisy']):.2f} | | |")
    for name in sorted(methods, key=lambda name: -float(np.mean(scores[name]))):
        rate, ratio = pixels / seconds[name] / 1e6, seconds[name] / seconds.get("proxlift best", seconds[name])
        print(f"| {name} | {np.mean(scores[name]):.2f} | {rate:.3g} | {ratio:.2g} |")
    if arguments.plot:
        plot({name: (pixels / seconds[name] / 1e6, float(np.mean(scores[name]))) for name in methods})


def plot(points: dict[str, tuple[float, float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "proxlift"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
    for model in ("best", "small"):
        # One network in three programs: the same results, at other speeds.
        line = [point for name, point in points.items() if name in (f"proxlift {model}", *(f"{model} in {r}" for r in RUNTIMES))]
        axes.plot(*zip(*sorted(line)), color="#c1432e", alpha=0.35, zorder=2)
    for name, (rate, psnr) in points.items():
        ours = name.startswith("proxlift")
        axes.scatter(rate, psnr, s=70 if ours else 40, color="#c1432e" if ours else "#5b6b7a", zorder=3)
        runtime = name.partition(" in ")[2]
        axes.annotate(
            runtime or name, (rate, psnr), xytext=(0, -15 if runtime else 9), textcoords="offset points",
            ha={"PyTorch": "right", "ONNX Runtime": "left", "scikit-image NLM": "right"}.get(runtime or name, "center"),
            fontsize=8 if runtime else 9, weight="bold" if ours else None,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.margins(x=0.22, y=0.12)
    axes.set_xlabel("megapixels a second (further right is faster)")
    axes.set_ylabel("PSNR in dB")
    axes.set_title(f"Grey pictures, white noise of {arguments.sigma:g}/255, {arguments.threads} threads", fontsize=11)
    axes.grid(alpha=0.3, which="both")
    figure.savefig(arguments.plot, metadata={"Date": None} if arguments.plot.suffix == ".svg" else None, dpi=150)


if __name__ == "__main__":
    main()
