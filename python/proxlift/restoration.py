"""Inverse problems with a denoiser as the prior: plug-and-play with any linear operator.

>>> import numpy as np
>>> from proxlift import restoration
>>> rng = np.random.default_rng(0)
>>> x = np.kron(rng.uniform(size=(4, 4)), np.ones((8, 8)))
>>> known = rng.uniform(size=x.shape) < 0.5
>>> class Mask:
...     def apply(self, x): return known * x
...     def adjoint(self, y): return known * y
>>> found = restoration.restore(known * x, Mask(), sigma=0.01, start=np.full(x.shape, 0.5), prior="small")
>>> bool(np.abs(found.x - x).mean() < 0.1), len(found.residuals)
(True, 8)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._denoise import denoise

__all__ = ["Restored", "restore"]

Floats = NDArray[np.float64]
Map = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Restored:
    """A restored image.

    Attributes
    ----------
    x : ndarray
        The estimate.
    residuals : list of float
        How far each iteration moved it, relative to its norm.
    settled : bool
        Whether the last iterations moved it less and less.
    """

    x: Floats
    residuals: list[float]
    settled: bool


def restore(
    y: ArrayLike,
    operator: Any,
    sigma: float,
    *,
    start: ArrayLike | None = None,
    shape: tuple[int, ...] | None = None,
    prior: Any = "best",
    steps: int = 8,
    first: float = 49 / 255,
    last: float | None = None,
    weight: float = 0.23,
    remembers: bool = False,
) -> Restored:
    """Estimate ``x`` from ``y = A x`` with white noise of the level ``sigma``, by half-quadratic splitting (DPIR).

    Each iteration solves ``min_x ||A x - y||^2 / (2 sigma^2) + weight / (2 sigma_k^2) ||x - z||^2`` by conjugate
    gradients, and denoises the result for ``sigma_k``, which falls from ``first`` to ``last`` by equal factors. Where
    pixels were not seen, ``steps=40, last=4 / 255, remembers=True`` is better: what the two steps disagree by is then
    remembered (the method of multipliers).

    Parameters
    ----------
    y : array_like
        What was seen, of whatever shape the operator gives.
    operator
        ``A``: anything with ``apply`` and ``adjoint``; a ``LinearOperator`` of SciPy or pylops (``matvec``, ``rmatvec`` on
        flat arrays); or a physics of deepinv (``A``, ``A_adjoint``).
    sigma : float
        The level of the noise, where white is 1; above 0.
    start : array_like, optional
        The image to begin with, else ``A* y``.
    shape : tuple of int, optional
        Of the image: (rows, columns) or (channels, rows, columns). Needed for operators on flat arrays without ``start``.
    prior : str, path or proxlift.Model
        The denoiser, as :func:`proxlift.denoise` takes it.
    steps, first, last, weight : int, float, float, float
        The schedule; ``last`` is ``sigma`` unless it is given.
    remembers : bool
        The method of multipliers in place of half-quadratic splitting.

    Returns
    -------
    Restored
    """
    if not (np.isfinite(sigma) and sigma > 0):
        raise ValueError(f"sigma is {sigma}, but it must be above 0")
    last = sigma if last is None else last
    if steps < 1 or not first > 0 or not last > 0 or not weight > 0:
        raise ValueError("a schedule needs steps, a first level and a weight above zero")
    y = np.asarray(y, np.float64)
    if not np.isfinite(y).all():
        raise ValueError("y holds values that are not finite: replace them first")
    if start is not None:
        shape = np.shape(start)
    apply, adjoint = _maps(operator, shape, y.shape)
    back = adjoint(y)
    if back.ndim not in (2, 3):
        raise ValueError(f"the images of the operator have the shape {back.shape}: give shape=(rows, columns)")
    z = back if start is None else np.asarray(start, np.float64)
    levels = max(first, last) * min(last / first, 1.0) ** (np.arange(steps) / max(steps - 1, 1))
    residuals: list[float] = []
    apart = np.zeros_like(z)
    for k, level in enumerate(levels):
        tau = level**2 / (weight * sigma**2)
        near = z - apart  # the solution where nothing was seen, which a large tau leaves to the start
        x = _solve(apply, adjoint, tau, near + tau * back, near)
        before, z = z, _denoised(x + apart, float(level), prior)
        if remembers:
            apart = (levels[min(k + 1, steps - 1)] / level) ** 2 * (apart + x - z)
        residuals.append(float(np.linalg.norm(z - before)) / max(float(np.linalg.norm(z)), 1e-30))
    settled = len(residuals) < 4 or residuals[-1] < residuals[-4]
    if not settled:
        warnings.warn("the last iterations did not move the estimate less and less", stacklevel=2)
    return Restored(z, residuals, settled)


def _maps(operator: Any, shape: tuple[int, ...] | None, seen: tuple[int, ...]) -> tuple[Map, Map]:
    """``A`` and ``A*`` on arrays of their own shapes."""
    if hasattr(operator, "apply") and hasattr(operator, "adjoint"):
        return lambda x: np.asarray(operator.apply(x), np.float64), lambda y: np.asarray(operator.adjoint(y), np.float64)
    if hasattr(operator, "A") and hasattr(operator, "A_adjoint"):
        return _of_physics(operator.A), _of_physics(operator.A_adjoint)
    if hasattr(operator, "matvec") and hasattr(operator, "rmatvec"):
        if shape is None:
            raise ValueError("the operator takes flat arrays: give the shape of the image")
        return (
            lambda x: np.asarray(operator.matvec(x.reshape(-1)), np.float64).reshape(seen),
            lambda y: np.asarray(operator.rmatvec(y.reshape(-1)), np.float64).reshape(shape),
        )
    raise TypeError("the operator has neither apply and adjoint, nor matvec and rmatvec, nor A and A_adjoint")


def _of_physics(f: Callable[[Any], Any]) -> Map:
    import torch

    def on_arrays(x: Floats) -> Floats:
        # deepinv takes batches of images with channels.
        planes = x.reshape((1,) * (4 - x.ndim) + x.shape)
        with torch.no_grad():
            image = f(torch.from_numpy(planes).float())
        result: Floats = image[0].double().cpu().numpy()
        return result.reshape(image.shape[1:] if x.ndim == 3 else image.shape[-2:])

    return on_arrays


def _solve(apply: Map, adjoint: Map, tau: float, b: Floats, x: Floats) -> Floats:
    """``(I + tau A* A)^-1 b`` by conjugate gradients, from ``x``."""

    def normal(x: Floats) -> Floats:
        return x + tau * adjoint(apply(x))

    r = b - normal(x)
    p, square = r, float(np.vdot(r, r))
    enough = 1e-8 * float(np.vdot(b, b))
    for _ in range(200):
        if square <= enough:
            break
        q = normal(p)
        step = square / float(np.vdot(p, q))
        x, r = x + step * p, r - step * q
        before, square = square, float(np.vdot(r, r))
        p = r + square / before * p
    return x


def _denoised(x: Floats, level: float, prior: Any) -> Floats:
    axis = 0 if x.ndim == 3 else None
    return np.asarray(denoise(x.astype(np.float32), level, model=prior, channel_axis=axis), np.float64)
