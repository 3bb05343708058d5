# %% [markdown]
# # A stack of photon counts
#
# A detector counts photons. Where the sample sends $x$ of them on average, a pixel shows
#
# $$z = g\, p + o + r, \qquad p \sim \mathrm{Poisson}(x), \quad r \sim \mathcal N(0, \rho^2),$$
#
# with the gain $g$, the offset $o$ and the read noise $\rho$. The variance of $z$ grows with its mean, along a straight
# line:
#
# $$\operatorname{Var} z = g\,(\operatorname{E} z - o) + \rho^2 .$$
#
# A denoiser for one level of noise is wrong nearly everywhere in such a picture: too strong in the dark, too weak in the
# light. The generalised Anscombe transform makes the noise the same everywhere,
#
# $$f(z) = \frac2g \sqrt{g\,(z - o) + \tfrac38 g^2 + \rho^2}, \qquad \operatorname{Var} f(z) \approx 1,$$
#
# since $f'(m)^2 \operatorname{Var} z \approx 1$ at the mean $m$. So: transform, denoise at level 1, and go back. The way
# back is not $f^{-1}$, because $\operatorname{E} f(z) \ne f(\operatorname{E} z)$; the exact unbiased inverse maps
# $\operatorname{E} f(z)$ to $\operatorname{E} z$.

# %%
import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import skimage as ski
from scipy.ndimage import gaussian_filter

import proxlift

SHORT = os.environ.get("PROXLIFT_SHORT") == "1"
OUTPUT = Path(os.environ.get("PROXLIFT_OUTPUT", "."))

# %% [markdown]
# ## The stack
#
# Stained tissue that goes out of focus, page by page, with at most 30 photons in a pixel, as a 16-bit camera stores it.

# %%
GAIN, OFFSET, READ_NOISE = 2.0, 100.0, 2.0
PHOTONS = 30
tissue = ski.data.immunohistochemistry()[:260, :260, 1].astype(float)
if SHORT:
    tissue = tissue[:160, :160]
tissue = (tissue.max() - tissue) / (tissue.max() - tissue.min())
blurs = [0.5, 1.5] if SHORT else [0.5, 1.0, 1.5, 2.0, 3.0]
photons = PHOTONS * np.stack([gaussian_filter(tissue, blur) for blur in blurs])
expected = GAIN * photons + OFFSET

rng = np.random.default_rng(1)
stack = GAIN * rng.poisson(photons) + OFFSET + READ_NOISE * rng.standard_normal(photons.shape)
stack = np.round(stack).astype(np.uint16)
print(f"{len(stack)} pages of {stack.shape[1]} x {stack.shape[2]}, values from {stack.min()} to {stack.max()}")

# %% [markdown]
# ## Which noise is it?
#
# The estimate finds the straight line in a page: `variances` has $a + b x$ for each channel, where values are divided by
# 65535, as all 16-bit values are. So $b$ is the gain, and $a = \rho^2 - g\, o$.

# %%
WHITE = 65535
noise = proxlift.estimate_noise(stack[0])
(variance,) = noise.variances
print(f"{noise}; gain {WHITE * variance.b:.2f}, true {GAIN}")
read_noise = WHITE * np.sqrt(max(variance.a + variance.b * OFFSET / WHITE, 0))
print(f"with the offset known, read noise {read_noise:.1f}, true {READ_NOISE}")

# %% [markdown]
# ## Denoise
#
# Pages are the leading axis. The result is a float array where white is 1; times 65535 it is back in the units of the
# camera. What is known of the camera may be given, in these units too; the rest is found in each page.
#
# For comparison, the noise is taken to be the same everywhere: at the level that is found, which is that of the quietest
# places, and at the true mean level, which nobody knows.

# %%
results = {
    "noisy": stack.astype(float),
    "one level, that of quiet places": WHITE * proxlift.denoise(stack, noise="gaussian"),
    "one level, the true mean": WHITE * proxlift.denoise(stack, np.std(stack - expected) / WHITE),
    "as counts, all found": WHITE * proxlift.denoise(stack, noise="poisson-gaussian"),
    "as counts, camera known": WHITE
    * proxlift.denoise(stack, noise="poisson-gaussian", gain=GAIN, offset=OFFSET, read_noise=READ_NOISE),
}


def score(pages: np.ndarray) -> float:
    return proxlift.psnr(expected, pages, data_range=GAIN * PHOTONS)


for name, pages in results.items():
    print(f"{name:32} {score(pages):.2f} dB")

# %% [markdown]
# Where they differ:

# %%
dark, light = photons < np.quantile(photons, 0.2), photons > np.quantile(photons, 0.8)
for name, pages in results.items():
    errors = [np.sqrt(np.mean((pages - expected)[where] ** 2)) / GAIN for where in (dark, light)]
    print(f"{name:32} root mean square error in photons: dark {errors[0]:.2f}, light {errors[1]:.2f}")

# %%
figure, axes = plt.subplots(2, 4, figsize=(14, 7), layout="constrained")
names = ["noisy", "one level, the true mean", "as counts, all found"]
shown = {"expected": expected, **{name: results[name] for name in names}}
for row, page in zip(axes, (0, -1)):
    for axis, (name, pages) in zip(row, shown.items()):
        axis.imshow(pages[page], cmap="magma", vmin=OFFSET, vmax=OFFSET + GAIN * PHOTONS)
        axis.set_title(f"{name}, page {page % len(stack)}", fontsize=8)
        axis.axis("off")
figure.savefig(OUTPUT / "microscopy_stack.png", dpi=120)

# %% [markdown]
# ## More than fits into memory
#
# `proxlift.dask.denoise` takes the same arguments, and a Zarr file in place of the stack.

# %%
try:
    import dask.array as da

    import proxlift.dask
except ImportError:
    print("install dask to see this")
else:
    lazy = proxlift.dask.denoise(da.from_array(stack, chunks=(1, 100, 100)), noise="poisson-gaussian")
    same = np.array_equal(WHITE * lazy.compute(), results["as counts, all found"])
    print(f"{lazy.npartitions} chunks, the same bits: {same}")
