"""The lifted Bregman energy of a network, and its gradients, in double precision.

.. math::

    E(\\theta, u | z, x) = \\mu \\tfrac12 \\|\\hat x(u_{K-1}) - x\\|^2 + \\sum_{k=1}^{K-1} B(u_k, F_k(u_{k-1})),
    \\qquad f = E - \\sum_k \\psi(u_k)

>>> import numpy as np, proxlift
>>> from proxlift.energy import LiftedEnergy
>>> rng = np.random.default_rng(0)
>>> x = rng.random((2, 1, 16, 16))
>>> energy = LiftedEnergy(proxlift.Model.load("small"), x + rng.normal(0, 0.1, x.shape), x, sigma=0.1)
>>> bool(energy.penalties.max() < 1e-12 * energy.value)  # at the forward pass all penalties vanish
True
>>> energy.theta_gradients().shape
(9, 27, 4, 3, 3)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _proxlift
from ._model import Model

__all__ = ["LiftedEnergy"]

Floats = NDArray[np.float64]


class LiftedEnergy:
    """The energy of a batch with its auxiliary variables ``u_1 .. u_{K-1}``, which start at the forward pass.

    Parameters
    ----------
    model : Model
        The network.
    z, x : array_like, (samples, channels, rows, columns)
        Noisy and clean images.
    mu : float
        The weight of the loss.
    sigma : float, optional
        The noise level that thresholds are scaled to; by default they are as trained.

    Notes
    -----
    A border is part of the images: the error within ``model.border`` pixels of the edge does not count, as in training.
    """

    def __init__(
        self, model: Model, z: ArrayLike, x: ArrayLike, *, mu: float = 1.0, sigma: float | None = None
    ) -> None:
        if sigma is not None and model.sigma == 0:
            raise ValueError("the model does not say which noise level it was trained for: leave sigma out")
        scale = 1.0 if sigma is None else float(sigma) / model.sigma
        if not (np.isfinite(scale) and scale > 0):
            raise ValueError(f"sigma is {sigma}, but it must be positive")
        self.model = model
        self.mu = float(mu)
        self._native = _proxlift.Energy(model._native, _batch(z, "z"), _batch(x, "x"), self.mu, scale)

    def anchor(self) -> None:
        """Put ``u`` back at the forward pass."""
        self._native.anchor()

    @property
    def u(self) -> list[Floats]:
        """``u_0 .. u_{K-1}``, each (samples, J, rows, columns); ``u_0 = L_0 z``."""
        return [self._native.u(k) for k in range(self.model.depth)]

    def set_u(self, k: int, u: ArrayLike) -> None:
        """Replace ``u_k``, ``k = 1 .. K-1``; the others are held."""
        self._native.set_u(k, _batch(u, "u"))

    @property
    def theta(self) -> Floats:
        """The filters, (K + 1, J, C, k, k)."""
        return self._native.theta()

    @theta.setter
    def theta(self, theta: ArrayLike) -> None:
        theta = np.ascontiguousarray(theta, np.float64)
        if theta.ndim != 5:
            raise ValueError(f"theta has the shape {theta.shape}, but it must be (K + 1, J, C, k, k)")
        self._native.set_theta(theta)

    @property
    def estimate(self) -> Floats:
        """``x^ = z - L_K* u_{K-1}``, or what the unrolling makes of it."""
        return self._native.estimate()

    @property
    def penalties(self) -> Floats:
        """``B(u_k, v_k)``, (K - 1, samples)."""
        return np.array(self._native.blocks()[:-1])

    @property
    def loss(self) -> Floats:
        """``mu 1/2 ||x^ - x||^2`` of each sample."""
        return np.array(self._native.blocks()[-1])

    def __float__(self) -> float:
        return float(np.sum(self._native.blocks()))

    @property
    def value(self) -> float:
        """``E``, summed over the batch."""
        return float(self)

    def theta_gradients(self) -> Floats:
        """``dE/dtheta``, of the shape of `theta`, summed over the batch; ``u`` is held."""
        return self._native.theta_gradients()[: self.model.depth + 1]

    def synthesis_gradients(self) -> Floats:
        """``dE/dM_k`` for ``k = 1 .. K-1`` where the layers have a synthesis of their own, (K - 1, J, C, k, k), else empty."""
        return self._native.theta_gradients()[self.model.depth + 1 :]

    def u_gradients(self) -> list[Floats]:
        """``df/du_k`` for ``k = 1 .. K-1``, where ``f`` is the smooth part of ``E``."""
        return self._native.u_gradients()

    def activation_gradients(self) -> tuple[Floats, Floats]:
        """``dE`` by knots and slopes, (K - 1, J, M) and (K - 1, J, M + 1), summed over the batch; ``u`` is held."""
        return self._native.activation_gradients()


def _batch(array: ArrayLike, name: str) -> Floats:
    batch = np.ascontiguousarray(array, np.float64)
    if batch.ndim != 4:
        raise ValueError(f"{name} has the shape {batch.shape}, but it must be (samples, channels, rows, columns)")
    return batch
