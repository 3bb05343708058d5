# %% [markdown]
# # Deblurring with a denoiser
#
# A picture $x$ is blurred, $y = A x + \varepsilon$ with white noise $\varepsilon$ of deviation $\sigma$. Most of its
# details are still there, but dividing by $A$ would bring up the noise with them. So one looks for a picture that
# explains $y$ and is a likely one,
#
# $$\min_x \; \tfrac12 \|A x - y\|^2 + R(x).$$
#
# *Half-quadratic splitting* takes turns between the two terms, with a $z$ that is held close to $x$:
#
# $$x_k = \operatorname*{arg\,min}_x \; \tfrac12 \|A x - y\|^2 + \tfrac1{2 \gamma_k} \|x - z_{k-1}\|^2,
# \qquad z_k = \operatorname*{arg\,min}_z \; R(z) + \tfrac1{2 \gamma_k} \|z - x_k\|^2.$$
#
# The first is a division by $A^* A + 1/\gamma_k$, which the Fourier transform does at once. The second is a denoising
# problem: $z_k = \operatorname{prox}_{\gamma_k R}(x_k)$ is the most likely picture if $x_k$ has white noise of variance
# proportional to $\gamma_k$. *Plug-and-play* methods put a denoiser there, $z_k = D(x_k, \sigma_k)$, and need no
# formula for $R$. The networks of proxlift suit them: each is unrolled from the computation of such a prox, one model
# serves all levels $\sigma_k$, and it is fast on a CPU.

# %%
import os
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import skimage.data
import torch
from deepinv.optim import DPIR, HQS, L2
from deepinv.optim.prior import PnP
from deepinv.physics import BlurFFT, GaussianNoise
from deepinv.physics.functional import gaussian_blur

import proxlift
from proxlift.deepinv import Denoiser

SHORT = os.environ.get("PROXLIFT_SHORT") == "1"
OUTPUT = Path(os.environ.get("PROXLIFT_OUTPUT", "."))
MODEL = "small" if SHORT else "best"

# %% [markdown]
# ## The problem
#
# A part of a photograph that comes with scikit-image, a Gaussian blur, and noise of 2 % of white.

# %%
side, sigma = 128 if SHORT else 256, 0.02
photograph = skimage.data.astronaut()[:side, 130 : 130 + side] / 255
x = torch.from_numpy(photograph).permute(2, 0, 1)[None].float()

noise = GaussianNoise(sigma, rng=torch.Generator().manual_seed(0))
physics = BlurFFT(x.shape[1:], filter=gaussian_blur(sigma=(2.0, 2.0)), noise_model=noise)
y = physics(x)


def psnr(estimate):
    return proxlift.psnr(x.numpy(), estimate.numpy(), data_range=1)


print(f"blurred                      {psnr(y):.2f} dB")

# %% [markdown]
# ## One line
#
# `proxlift.deepinv.Denoiser` takes the place of any denoiser of deepinv. DPIR is half-quadratic splitting in eight
# steps, in which $\sigma_k$ falls from 49/255 to the level of the noise.

# %%
denoiser = Denoiser(MODEL)
with torch.no_grad():
    start = time.perf_counter()
    restored = DPIR(sigma, denoiser)(y, physics)
    seconds = time.perf_counter() - start
print(f"DPIR with proxlift           {psnr(restored):.2f} dB, {seconds:.1f} s")

# %% [markdown]
# ## The same by hand
#
# Two lines an iteration. Here $\gamma_k = \sigma_k^2 / (\lambda \sigma^2)$, with DPIR's $\lambda = 0.23$. `prox_l2` is
# the first of the two problems above.

# %%
steps, balance = 8, 0.23
levels = np.geomspace(49 / 255, sigma, steps)
z, trace = physics.A_adjoint(y), []
with torch.no_grad():
    for level in levels:
        estimate = physics.prox_l2(z, y, gamma=level**2 / (balance * sigma**2))
        z = denoiser(estimate, level)
        trace.append((psnr(estimate), psnr(z)))
for level, (before, after) in zip(levels, trace):
    print(f"sigma_k = {level:.3f}   x_k {before:.2f} dB   z_k {after:.2f} dB")
assert torch.allclose(z, restored, atol=1e-3)

# %% [markdown]
# ## What the schedule brings
#
# With a constant $\sigma_k$ the result depends on the level, and after as many steps it is worse at all of these.

# %%
for level in (0.02, 0.04) if SHORT else (0.01, 0.02, 0.04, 0.08):
    gamma = level**2 / (balance * sigma**2)
    method = HQS(prior=PnP(denoiser), data_fidelity=L2(), stepsize=gamma, sigma_denoiser=level, max_iter=steps)
    with torch.no_grad():
        print(f"constant sigma_k = {level:.2f}     {psnr(method(y, physics)):.2f} dB")

# %% [markdown]
# ## Learning the schedule
#
# The engine tells autograd its derivatives in the picture and in sigma, so that deepinv can unfold the method and train
# $\sigma_k$ and $\gamma_k$. A few steps on this one picture show that it works; for a method to keep, train on many
# others. `Denoiser(MODEL, backend="torch")` would train the filters as well.

# %%
gammas = [float(level) ** 2 / (balance * sigma**2) for level in levels]
unfolded = HQS(
    prior=PnP(denoiser), data_fidelity=L2(), stepsize=gammas, sigma_denoiser=[float(level) for level in levels],
    max_iter=steps, unfold=True, trainable_params=["g_param"],
)  # fmt: skip
optimiser = torch.optim.Adam(unfolded.parameters(), lr=2e-3)
for _ in range(2 if SHORT else 6):
    optimiser.zero_grad()
    loss = (unfolded(y, physics) - x).square().mean()
    loss.backward()
    optimiser.step()
with torch.no_grad():
    print(f"DPIR with learned levels     {psnr(unfolded(y, physics)):.2f} dB")
print("levels, times 255:", ", ".join(f"{255 * float(level.detach()):.1f}" for level in unfolded.parameters()))

# %%
figure, axes = plt.subplots(1, 3, figsize=(12, 4.3))
for axis, (title, image) in zip(axes, [("blurred", y), ("restored", restored), ("original", x)]):
    axis.imshow(image[0].permute(1, 2, 0).clamp(0, 1).numpy(), interpolation="nearest")
    axis.set_title(title if image is x else f"{title}, {psnr(image):.2f} dB")
    axis.set_axis_off()
figure.tight_layout()
figure.savefig(OUTPUT / "plug_and_play.png", dpi=120)
