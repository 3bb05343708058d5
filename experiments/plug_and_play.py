"""Deblurring with the denoiser as a prior: DPIR, a plug-and-play method of deepinv.

    python experiments/plug_and_play.py PHOTOGRAPHS PICTURES KERNELS [--noise 2.55 ...]

PICTURES (set3c) are blurred with circular borders by two Gaussians, a box and all KERNELS (Levin's, .npy), get white
noise of the given levels (where white is 255), and are restored:

- by total variation, min_x 1/2 ||A x - y||^2 + weight TV(x), over all channels jointly;
- by DPIR as deepinv has it, its schedule and lambda unchanged, with the built-in models `small` and `best`.

The weight of total variation is chosen for each noise level on three of PHOTOGRAPHS (the training pictures of BSDS500),
of every tenth by name, which no built-in model was trained on, blurred by other kernels; nothing is chosen on PICTURES.
PSNR is that of results clipped and rounded to 8 bits, the mean over pictures; seconds are those of a picture. Prints a
table in Markdown. Needs proxlift, deepinv, scipy and pillow.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from deepinv.optim import DPIR
from deepinv.physics import BlurFFT
from PIL import Image
from scipy.ndimage import convolve

from proxlift.deepinv import Denoiser

SIDE = 256  # pixels of a picture, its middle
WEIGHTS = np.geomspace(0.04, 0.64, 9)  # of total variation, times sigma
TUNED_ON = 3  # photographs

# Published PSNR on set3c (blur, noise): DPIR with DRUNet, and IRCNN+, in the protocol of Gradient-Step plug-and-play.
PUBLISHED = {("Gaussian 1.6", 2.55): (29.53, 28.14), ("Gaussian 2.0", 2.55): (27.52, None)}


def gaussian(deviation, size=25):
    x = np.arange(size) - size // 2
    kernel = np.exp(-(x[:, None] ** 2 + x**2) / (2 * deviation**2))
    return kernel / kernel.sum()


def test_kernels(folder):
    """Rows of the table, each with the kernels that it is the mean of."""
    levin = [np.load(path) for path in sorted(folder.glob("*.npy"))]
    box = np.full((9, 9), 1 / 81)
    return {"Gaussian 1.6": [gaussian(1.6)], "Gaussian 2.0": [gaussian(2.0)], "box 9x9": [box],
            f"{len(levin)} of Levin": levin}  # fmt: skip


def tuning_kernels():
    """A Gaussian and a bent line: blurs of the same kinds, but none of those that are tested."""
    t = np.linspace(0, 1, 1000)
    line, _, _ = np.histogram2d(8 + 6 * np.sin(3 * t), 3 + 11 * t, bins=17, range=((0, 17), (0, 17)))
    return [gaussian(1.8), line / line.sum()]


class Problem:
    """y = k * x + noise with circular borders, for one picture [channel][row][column]."""

    def __init__(self, x, kernel, sigma):
        blurred = np.stack([convolve(channel, kernel, mode="wrap") for channel in x.astype(np.float64)])
        noisy = blurred + np.random.RandomState(0).normal(0, sigma, x.shape)
        self.x, self.sigma = x, sigma
        self.y = torch.from_numpy(noisy).float()[None]
        self.physics = BlurFFT(x.shape, torch.from_numpy(kernel).float()[None, None])
        same = self.physics.A(torch.from_numpy(x).float()[None])[0].numpy()
        assert np.abs(same - blurred).max() < 1e-5, "deepinv blurs otherwise"

    def psnr(self, estimate):
        image = np.round(255 * np.clip(estimate[0].numpy().astype(np.float64), 0, 1)) / 255
        return -10 * np.log10(np.mean((image - self.x) ** 2))


def read(path):
    image = np.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1) / 255
    top, left = ((n - SIDE) // 2 if n > SIDE else 0 for n in image.shape[1:])
    return image[:, top : top + SIDE, left : left + SIDE]


# --- The methods ---------------------------------------------------------------------------------------------------


def gradient(x):
    return torch.stack([x.roll(-1, axis) - x for axis in (-2, -1)])


def gradient_adjoint(p):
    return sum(p[i].roll(1, axis) - p[i] for i, axis in enumerate((-2, -1)))


def total_variation(problem, weight, iterations=200, tau=4.0):
    """Chambolle and Pock (2011), algorithm 1, with the data term in the prox of x: ||gradient||^2 <= 8."""
    x = ahead = problem.y
    p = torch.zeros_like(gradient(x))
    for _ in range(iterations):
        p = p + gradient(ahead) / (8 * tau)
        p = p / (p.square().sum((0, 2), keepdim=True).sqrt() / weight).clamp(min=1)
        before, x = x, problem.physics.prox_l2(x - tau * gradient_adjoint(p), problem.y, tau)
        ahead = 2 * x - before
    return x


def plug_and_play(problem, denoiser):
    """x_k = prox(z_{k-1}) for the data, z_k = D(x_k, sigma_k), with sigma_k falling from 49/255 to sigma in 8 steps."""
    return DPIR(problem.sigma, denoiser)(problem.y, problem.physics)


# --- The table -----------------------------------------------------------------------------------------------------


def mean_psnr(problems, method):
    """And the seconds that a picture takes."""
    start = time.perf_counter()
    scores = [problem.psnr(method(problem)) for problem in problems]
    return np.mean(scores), (time.perf_counter() - start) / len(scores)


def chosen(problems, sigma):
    """The weight of total variation that is best for these problems."""
    scores = {c: mean_psnr(problems, lambda p: total_variation(p, c * sigma))[0] for c in WEIGHTS}
    return max(scores, key=scores.get) * sigma


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for folder in ("photographs", "pictures", "kernels"):
        parser.add_argument(folder, type=Path)
    parser.add_argument("--noise", type=float, nargs="+", default=[2.55, 7.65, 12.75])
    arguments = parser.parse_args()
    held_out = sorted(arguments.photographs.iterdir())[::10]
    photographs = [read(path) for path in held_out[:: len(held_out) // TUNED_ON][:TUNED_ON]]
    pictures = [read(path) for path in sorted(arguments.pictures.iterdir())]
    small, best = Denoiser("small"), Denoiser("best")
    print("| blur | noise | blurred | total variation | DPIR with `small` | DPIR with `best` | "
          "published: with DRUNet | published: IRCNN+ |\n" + "|---" * 8 + "|")  # fmt: skip
    notes = []
    for level in arguments.noise:
        sigma = level / 255
        weight = chosen([Problem(x, k, sigma) for x in photographs for k in tuning_kernels()], sigma)
        notes.append(f"{weight:.2g} at {level}/255")
        for name, kernels in test_kernels(arguments.kernels).items():
            problems = [Problem(x, kernel, sigma) for kernel in kernels for x in pictures]
            cells = [f"{mean_psnr(problems, lambda p: p.y)[0]:.2f}"]
            for method in (
                lambda p: total_variation(p, weight),
                lambda p: plug_and_play(p, small),
                lambda p: plug_and_play(p, best),
            ):
                cells.append("{:.2f} ({:.1f} s)".format(*mean_psnr(problems, method)))
            cells += [f"{value:.2f}" if value else "" for value in PUBLISHED.get((name, level), (None, None))]
            print(f"| {name} | {level} | " + " | ".join(cells) + " |", flush=True)
    print("\nWeights of total variation: " + ", ".join(notes) + ".")


if __name__ == "__main__":
    with torch.no_grad():
        main()
