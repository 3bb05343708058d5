# %% [markdown]
# # Train a network, and look inside
#
# The network of Wang, Benning and Repetti (MLSP 2024) unrolls dual forward-backward: from $u_0 = L_0 z$,
#
# $$v_k = u_{k-1} - \tau_k L_k (L_k^* u_{k-1} - z), \qquad u_k = s(v_k), \qquad \hat x = z - L_K^* u_{K-1},$$
#
# for $k = 1, \dots, K - 1$, where $s$ clips to $[-\lambda, \lambda]$. The filters $\theta_k$ of the convolutions $L_k$ are
# learned. *Lifted Bregman* training makes the $u_k$ variables of their own and minimises
#
# $$E(\theta, u) = \mu\, \tfrac12 \|\hat x - x\|^2 + \sum_{k=1}^{K-1} B(u_k, v_k), \qquad
#   B(u, v) = \tfrac12 \|u\|^2 + q^*(v) - \langle u, v \rangle \ge 0,$$
#
# for $\|u\|_\infty \le \lambda$. Here $q^*$ is the antiderivative of $s$, Huber's function. $B$ vanishes exactly where
# $u = s(v)$, and $\nabla_v B = s(v) - u$ needs no derivative of $s$.

# %%
import os
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import skimage as ski

import proxlift
from proxlift.energy import LiftedEnergy

SHORT = os.environ.get("PROXLIFT_SHORT") == "1"
OUTPUT = Path(os.environ.get("PROXLIFT_OUTPUT", "."))

# %% [markdown]
# ## Train
#
# A few grey pictures are enough to see it learn. One more is kept for the end.

# %%
SIGMA = 0.1
names = ["brick", "coins", "grass", "gravel", "moon"]
images = [ski.util.img_as_float32(getattr(ski.data, name)()) for name in names]
settings = {"sigma": SIGMA, "seed": 1, "preset": "lifted"}
settings |= {"depth": 5, "epochs": 4, "count": 300} if SHORT else {"epochs": 30, "count": 1000}


def tell(record: dict, model: proxlift.Model) -> None:
    scored = f", held out {record['psnr']:.2f} dB" if record.get("psnr") else ""
    print(f"epoch {record['epoch']:3}: loss {record['loss']:.4f}{scored}")


training = proxlift.train(images, callback=tell, progress=False, **settings)
model = training.model

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.plot([record["epoch"] for record in training.history], [record["loss"] for record in training.history])
left.set(xlabel="epoch", ylabel="loss")
scored = [record for record in training.history if record.get("psnr")]
right.plot([record["epoch"] for record in scored], [record["psnr"] for record in scored], marker=".")
right.set(xlabel="epoch", ylabel="PSNR of held-out pictures in dB")
figure.savefig(OUTPUT / "training.png", dpi=120)

# %% [markdown]
# ## What was learned
#
# All parameters are NumPy arrays: `theta` has the shape $(K + 1, J, C, k, k)$.

# %%
print(f"K = {model.depth}, J = {model.features}, {model.kernel} x {model.kernel}, {model.parameters} parameters")
print(f"an output pixel sees {model.receptive_radius} pixels to each side")
print(f"steps tau from {model.tau.min():.3f} to {model.tau.max():.3f}, lambda {model.knots[0, 0, 0]:.3f}")

figure, axes = plt.subplots(3, model.features, figsize=(model.features * 0.6, 2.2), layout="constrained")
for row, k in zip(axes, (0, model.depth // 2, model.depth)):
    limit = np.abs(model.theta[k]).max()
    for j, axis in enumerate(row):
        axis.imshow(model.theta[k, j, 0], cmap="RdBu", vmin=-limit, vmax=limit)
        axis.set(xticks=[], yticks=[])
    row[0].set_ylabel(f"$\\theta_{{{k}}}$")
figure.savefig(OUTPUT / "filters.png", dpi=120)

# %% [markdown]
# ## The network in NumPy
#
# The formulas above in fifteen lines, with the arrays of the model, give what the model gives.


# %%
def analyse(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    """L x: the correlation with each filter, with zeros around the picture."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, theta.shape[-1] // 2), theta.shape[-2:])
    return np.einsum("jab,yxab->jyx", theta[:, 0], windows)


def adjoint(theta: np.ndarray, u: np.ndarray) -> np.ndarray:
    """L* u: the convolution with each filter, summed."""
    return sum(analyse(theta[j : j + 1, :, ::-1, ::-1], u[j])[0] for j in range(len(u)))


def forward(model: proxlift.Model, z: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """The features u_0 .. u_{K-1}, and the denoised picture."""
    theta, lam = model.theta.astype(float), model.knots.astype(float)
    u = [analyse(theta[0], z)]
    for k in range(1, model.depth):
        v = u[-1] - model.tau[k - 1] * analyse(theta[k], adjoint(theta[k], u[-1]) - z)
        u.append(np.clip(v, -lam[k - 1, :, :, None], lam[k - 1, :, :, None]))
    return u, z - adjoint(theta[-1], u[-1])


clean = ski.util.img_as_float32(ski.data.camera())[100:260, 150:310]
noisy = clean + SIGMA * np.random.default_rng(2).standard_normal(clean.shape).astype(np.float32)
u, x = forward(model, noisy.astype(float))
denoised = model.denoise(noisy, SIGMA)
print(f"largest difference: {np.abs(x - denoised).max():.1e}")
print(f"noisy {proxlift.psnr(clean, noisy, data_range=1):.2f} dB, "
      f"denoised {proxlift.psnr(clean, denoised, data_range=1):.2f} dB")

# %% [markdown]
# ## The lifted energy
#
# With $u$ at the forward pass every $B$ is zero, so the energy is the loss. It is not the least for these filters: a step
# of $u_{K-1}$ towards a better output, $u_{K-1} + t\, L_K (\hat x - x)$ clipped, costs some $B$ but saves more loss.


# %%
def energy(model: proxlift.Model, u: list[np.ndarray], z: np.ndarray, clean: np.ndarray) -> tuple[float, list[float]]:
    """The loss, and B of each layer, for mu = 1."""
    theta, knots = model.theta.astype(float), model.knots.astype(float)
    penalties = []
    for k in range(1, model.depth):
        v = u[k - 1] - model.tau[k - 1] * analyse(theta[k], adjoint(theta[k], u[k - 1]) - z)
        lam = knots[k - 1, :, :, None]
        huber = np.where(np.abs(v) <= lam, v**2 / 2, lam * np.abs(v) - lam**2 / 2)
        penalties.append(float(np.sum(u[k] ** 2 / 2 + huber - u[k] * v)))
    loss = 0.5 * np.sum((z - adjoint(theta[-1], u[-1]) - clean) ** 2)
    return float(loss), penalties


def moved(t: float) -> list[np.ndarray]:
    lam = model.knots[-1].astype(float)[:, :, None]
    last = u[-1] + t * analyse(model.theta[-1].astype(float), x - clean)
    return [*u[:-1], np.clip(last, -lam, lam)]


steps = np.linspace(0, 1.0, 5 if SHORT else 21)
losses, penalties = zip(*(energy(model, moved(t), noisy.astype(float), clean) for t in steps))
sums = np.array([sum(layers) for layers in penalties])
print(f"at the forward pass: loss {losses[0]:.4f}, penalties {sums[0]:.1e}")
print(f"least energy along the step: {min(losses + sums):.4f}")

figure, axis = plt.subplots(figsize=(5, 3), layout="constrained")
axis.plot(steps, losses, label="loss")
axis.plot(steps, sums, label="sum of B")
axis.plot(steps, losses + sums, label="E")
axis.set(xlabel="step t of the last features")
axis.legend()
figure.savefig(OUTPUT / "energy.png", dpi=120)

# %% [markdown]
# `proxlift.energy.LiftedEnergy` is the same in the engine, for every kind of network, with all gradients.

# %%
lifted = LiftedEnergy(model, noisy[None, None], clean[None, None])
lifted.set_u(model.depth - 1, moved(steps[1])[-1][None])
print(f"E after the first step: {lifted.value:.6f} in the engine, {losses[1] + sums[1]:.6f} in NumPy")

# %% [markdown]
# A model is a file of a few kilobytes, or a pickle.

# %%
model.save(OUTPUT / "own.safetensors")
again = proxlift.Model.load(OUTPUT / "own.safetensors")
print("the same after saving:", np.array_equal(again.denoise(noisy, SIGMA), denoised))
