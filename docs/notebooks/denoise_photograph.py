# %% [markdown]
# # A photograph
#
# A camera gives $z = x + n$: the scene $x$, and noise $n$ whose level differs with light, colour and camera. We look for
# $x$. Classically one minimises
#
# $$\hat x = \arg\min_x \tfrac12 \|x - z\|^2 + \lambda \|L x\|_1,$$
#
# where $L$ is chosen so that $L x$ has few large entries for pictures, but not for noise. The dual forward-backward
# algorithm solves it by iterating
#
# $$u_k = \mathrm{clip}_\lambda\bigl(u_{k-1} - \tau L (L^* u_{k-1} - z)\bigr), \qquad \hat x = z - L^* u_K.$$
#
# proxlift stops after $K$ iterations and learns an operator $L_k$ and an activation for each: a network $G$. Trained for
# one level $\sigma_0$, it serves all of them, because with its thresholds multiplied by $s = \sigma / \sigma_0$ it is
# $z \mapsto s\, G(z / s)$.

# %%
import io
import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import skimage as ski
from PIL import Image
from scipy.ndimage import convolve

import proxlift

SHORT = os.environ.get("PROXLIFT_SHORT") == "1"
OUTPUT = Path(os.environ.get("PROXLIFT_OUTPUT", "."))

# %% [markdown]
# ## A noisy one
#
# What is between the light and the file makes the noise of a camera soft: photons are counted in linear light behind a
# mosaic of colour filters, the missing colours are interpolated, and the result goes through a tone curve and JPEG.


# %%
def camera(clean: np.ndarray, photons: float, read_noise: float, seed: int) -> np.ndarray:
    """Photograph a picture, with so many photons at white; both are 8 bits in sRGB."""
    rng = np.random.default_rng(seed)
    linear = (clean / 255.0) ** 2.2
    counts = rng.poisson(photons * linear) + read_noise * rng.standard_normal(clean.shape)
    rows, columns = np.indices(clean.shape[:2]) % 2
    colour = np.stack([(rows == 0) & (columns == 0), rows != columns, (rows == 1) & (columns == 1)], axis=-1)
    kernel = np.array([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]])
    demosaiced = np.empty_like(counts)
    for c in range(3):
        seen = convolve(counts[..., c] * colour[..., c], kernel, mode="mirror")
        demosaiced[..., c] = seen / convolve(colour[..., c].astype(float), kernel, mode="mirror")
    toned = 255 * np.clip(demosaiced / photons, 0, 1) ** (1 / 2.2)
    file = io.BytesIO()
    Image.fromarray(np.round(toned).astype(np.uint8)).save(file, "jpeg", quality=92)
    return np.asarray(Image.open(file))


original = ski.data.chelsea()
if SHORT:
    original = original[40:200, 90:290]
noisy = camera(original, photons=150, read_noise=4, seed=1)
# The sharpest picture that this camera can take: the same without noise, as far as it can be had.
clean = camera(original, photons=1e7, read_noise=0, seed=1)

# %% [markdown]
# ## The default
#
# One call finds out which noise it is, chooses the network for it, and sets it to the level.

# %%
denoised = proxlift.denoise(noisy, channel_axis=-1)

# %% [markdown]
# What did it find? `spectrum` is the level of the noise by frequency: that of white noise would be flat.

# %%
noise = proxlift.estimate_noise(noisy, channel_axis=-1)
print(f"noise of the kind {noise.kind}, levels {255 * np.asarray(noise.levels)} of 255, whiteness {noise.whiteness:.2f}")

# %% [markdown]
# ## How well did it do?
#
# $\mathrm{PSNR} = -10 \log_{10} \mathrm{MSE}$, where white is 1. For comparison: the network for white noise, set to the
# true level, which nobody knows. It takes soft grain for structure.

# %%
reference = clean / 255.0


def score(picture: np.ndarray) -> str:
    psnr = proxlift.psnr(reference, picture, data_range=1.0)
    return f"{psnr:.2f} dB, SSIM {proxlift.ssim(reference, picture, data_range=1.0, channel_axis=-1):.3f}"


sigma = float(np.std(noisy / 255.0 - reference))
white = proxlift.denoise(noisy, sigma, noise="gaussian", channel_axis=-1)
results = {"noisy": noisy / 255.0, "for white noise, sigma known": white, "default": denoised}
for name, picture in results.items():
    print(f"{name:30} {score(picture)}")

# %% [markdown]
# ## Before and after

# %%
rows, columns = slice(20, 140), slice(40, 190)
if not SHORT:
    rows, columns = slice(60, 180), slice(130, 280)
figure, axes = plt.subplots(1, 4, figsize=(14, 3.4), layout="constrained")
for axis, (name, picture) in zip(axes, (results | {"without noise": reference}).items()):
    axis.imshow(np.clip(picture[rows, columns], 0, 1))
    axis.set_title(name if name == "without noise" else f"{name}\n{score(picture)}", fontsize=9)
    axis.axis("off")
figure.savefig(OUTPUT / "denoise_photograph.png", dpi=120)

# %% [markdown]
# ## Less noise
#
# `strength` is there for taste: below 1 some grain stays, above 1 less does. In a picture with little noise, fur is hard
# to tell from grain, and less is more.

# %%
brighter = camera(original, photons=600, read_noise=4, seed=1)
print(f"{'photons at white':18} {'noisy':>26}" + "".join(f"{f'strength {s}':>26}" for s in (0.5, 1.0, 1.5)))
for photons, picture in [(150, noisy), (600, brighter)]:
    tried = [proxlift.denoise(picture, channel_axis=-1, strength=s) for s in (0.5, 1.0, 1.5)]
    print(f"{photons:<18}" + "".join(f"{score(result):>26}" for result in [picture / 255.0, *tried]))
