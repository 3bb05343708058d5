"""Filling in, enlarging and deblurring with deepinv: total variation, and DPIR where the weights of its denoiser are at hand.

    cargo run --release -p proxlift --example restoration -- TRAINING --task inpaint --noise 0 --export tuning   # and the same for x2, x3
    cargo run --release -p proxlift --example restoration -- PICTURES --task inpaint --noise 0 --export pictures
    python peers/restoration.py inpaint tuning pictures [MORE ...] [--sigma 0] [--threads 1] [--drunet FILE]

Both programs get the same numbers: the folders hold the pictures, what became of them in floating point, and masks. deepinv
minimises 1/2 ||A x - y||^2 + weight TV(x), channel by channel as it defines it, by its own FISTA with its own prox; the weight is
the best of a list on the pictures of the first folder, and what is printed is the mean PSNR on the others of results that are clipped
and rounded to 8 bits. `--drunet` is a file of weights for deepinv's DRUNet, and adds DPIR. Needs deepinv, pillow and tifffile.
"""

import argparse
import time
from pathlib import Path

import deepinv as dinv
import numpy as np
import tifffile
import torch
from PIL import Image

WEIGHTS = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2]  # of total variation
ITERATIONS, INNER = 150, 10  # of FISTA, and at most of the prox within each, which starts where the last one ended


def cubic(factor):
    """The kernel of `Kernel::cubic`, for a convolution around its middle of which every factor-th pixel is kept."""

    def at(t):
        t = np.abs(t)
        near, far = (1.5 * t - 2.5) * t * t + 1, ((-0.5 * t + 2.5) * t - 4) * t + 2
        return np.where(t <= 1, near, np.where(t < 2, far, 0))

    line = at((-np.arange(-2 * factor, 2 * factor + 1) - (factor - 1) / 2) / factor)
    return np.outer(line, line) / line.sum() ** 2


def physics(task, shape, mask):
    """The operator as deepinv takes it: two functions."""
    if task == "inpaint":
        return dinv.physics.LinearPhysics(A=lambda x, **_: mask * x, A_adjoint=lambda y, **_: mask * y)
    factor = int(task[1:])
    kernel, plane = cubic(factor), np.zeros(shape[-2:])
    rows, columns = np.indices(kernel.shape) - kernel.shape[0] // 2
    np.add.at(plane, (rows % shape[-2], columns % shape[-1]), kernel)
    spectrum = torch.fft.rfft2(torch.from_numpy(plane))

    def blur(x, k):
        return torch.fft.irfft2(torch.fft.rfft2(x.double()) * k, s=shape[-2:]).float()

    def small(x, **_):
        return blur(x, spectrum)[..., ::factor, ::factor]

    def large(y, **_):
        zeros = torch.zeros((*y.shape[:2], *shape[-2:]))
        zeros[..., ::factor, ::factor] = y
        return blur(zeros, spectrum.conj())

    return dinv.physics.LinearPhysics(A=small, A_adjoint=large)


def problems(folder, task, sigma=0.0):
    for path in sorted(folder.glob("*-clean.png")):
        clean = np.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1) / 255
        seen = tifffile.imread(str(path).replace("clean.png", "seen.tif"))
        seen = torch.from_numpy(np.ascontiguousarray(np.moveaxis(seen, -1, 0) if seen.shape[-1] == 3 else seen)).float()[None]
        mask = None
        if task == "inpaint":
            known = np.asarray(Image.open(str(path).replace("clean.png", "known.png")).convert("L")) > 127
            mask = torch.from_numpy(known).float()[None, None]
        degraded = physics(task, clean.shape, mask)
        again = degraded.A(torch.from_numpy(clean).float()[None])
        assert (again - seen).abs().max() < 1e-4 + 6 * sigma / 255, "the operators differ"
        yield clean, seen, degraded


def psnr(clean, estimate):
    image = np.round(255 * np.clip(estimate[0].numpy().astype(np.float64), 0, 1)) / 255
    return -10 * np.log10(np.mean((image - clean) ** 2))


def start(clean, seen, task):
    """Nearest known pixels, or a cubic enlargement: where FISTA begins."""
    if task == "inpaint":
        from scipy.ndimage import distance_transform_edt

        known = (seen[0] != 0).any(0).numpy()
        _, (y, x) = distance_transform_edt(~known, return_indices=True)
        return seen[..., y, x]
    return torch.nn.functional.interpolate(seen, size=clean.shape[1:], mode="bicubic")


def total_variation(problem, task, weight):
    clean, seen, degraded = problem
    prior, fidelity = dinv.optim.TVPrior(n_it_max=INNER), dinv.optim.L2()
    x = start(clean, seen, task)
    z, t = x, 1.0
    with torch.no_grad():
        for _ in range(ITERATIONS):
            before = x
            x = prior.prox(z - fidelity.grad(z, seen, degraded), gamma=weight)
            after = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
            z, t = x + (t - 1) / after * (x - before), after
    return psnr(clean, x)


def dpir(problem, sigma, weights):
    clean, seen, degraded = problem
    denoiser = dinv.models.DRUNet(in_channels=3, out_channels=3, pretrained=weights)
    with torch.no_grad():
        return psnr(clean, dinv.optim.DPIR(sigma=max(sigma, 0.5) / 255, denoiser=denoiser)(seen, degraded))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=["inpaint", "x2", "x3", "x4"])
    parser.add_argument("tuning", type=Path)
    parser.add_argument("pictures", type=Path, nargs="+")
    parser.add_argument("--sigma", type=float, default=0.0, help="of the noise, where white is 255")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--weights", type=float, nargs="+", default=WEIGHTS)
    parser.add_argument("--drunet", help="weights of DRUNet")
    told = parser.parse_args()
    torch.set_num_threads(told.threads)
    tuning, task = list(problems(told.tuning, told.task, told.sigma)), told.task
    scores = {w: float(np.mean([total_variation(p, task, w) for p in tuning])) for w in told.weights}
    print(" ".join(f"{w:g}: {score:.2f}" for w, score in scores.items()), flush=True)
    weight = max(scores, key=scores.get)
    for folder in told.pictures:
        pictures = list(problems(folder, task, told.sigma))
        began = time.perf_counter()
        score = np.mean([total_variation(p, task, weight) for p in pictures])
        seconds = (time.perf_counter() - began) / len(pictures)
        name = f"{folder.name}, {task}"
        print(f"{name}: total variation of deepinv {dinv.__version__}, weight {weight:g}: {score:.2f} dB, {seconds:.1f} s each", flush=True)
        if told.drunet:
            print(f"{name}: DPIR with DRUNet: {np.mean([dpir(p, told.sigma, told.drunet) for p in pictures]):.2f} dB")


if __name__ == "__main__":
    main()
