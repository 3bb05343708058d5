"""Dual forward-backward, run to convergence: what the networks are unrolled from.

>>> import numpy as np
>>> from proxlift import operators, prox, solver
>>> step = np.repeat([0.0, 1.0], 8) + np.random.default_rng(0).normal(0, 0.1, (16, 16))
>>> tv = solver.dual_forward_backward(step, operators.FiniteDifferences(), prox.l2_ball(2, 2, 0.2))
>>> tv.converged, bool(tv.x[:7, :6].std() < 0.01)
(True, True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _proxlift
from .operators import Operator
from .prox import Prox

__all__ = ["Solution", "dual_forward_backward"]

Floats = NDArray[np.float64]
Map = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Solution:
    """How a solver ended.

    Attributes
    ----------
    x : ndarray
        The minimiser, of the shape of the image.
    u : ndarray
        The dual variable, to start from again.
    iterations : int
        How many were done.
    objective : float
        ``1/2 ||x - z||^2 + g(L x)``.
    gap : float
        The duality gap; ``1/2 ||x - x^||^2`` is at most this, with ``x^`` the true minimiser.
    converged : bool
        Whether the tolerance was reached.
    """

    x: Floats
    u: Floats
    iterations: int
    objective: float
    gap: float
    converged: bool


def dual_forward_backward(
    z: ArrayLike,
    operator: Operator,
    conjugate: Prox,
    *,
    tau: float | None = None,
    u: ArrayLike | None = None,
    inertia: str = "chambolle-dossal",
    tolerance: float | None = 1e-6,
    iterations: int = 2000,
) -> Solution:
    """Minimise ``1/2 ||x - z||^2 + g(L x)``.

    Parameters
    ----------
    z : array_like
        The noisy image, of any shape that the operator takes.
    operator : Operator
        ``L``: anything with ``apply`` and ``adjoint``.
    conjugate : Prox
        ``g*``; the indicator of balls or boxes where ``g`` is a norm.
    tau : float, optional
        The step: up to ``1 / ||L||^2`` with inertia, below ``2 / ||L||^2`` without. By default it follows from the norm.
    u : array_like, optional
        The dual variable to start from, else 0.
    inertia : {"chambolle-dossal", "nesterov", "none"}
        The extrapolation.
    tolerance : float, optional
        The duality gap to stop at, relative to the objective; without it all iterations are done.
    iterations : int
        The most that are done.

    Returns
    -------
    Solution
    """
    z = np.ascontiguousarray(z, np.float64)
    shape = z.shape
    first = np.asarray(operator.apply(z), np.float64)
    start = np.zeros(first.shape) if u is None else np.ascontiguousarray(u, np.float64)
    if start.shape != first.shape:
        raise ValueError(f"u has the shape {start.shape}, but the operator gives {first.shape}")

    def apply(x: Floats) -> Floats:
        return np.ascontiguousarray(operator.apply(x.reshape(shape)), np.float64).reshape(-1)

    def adjoint(y: Floats) -> Floats:
        return np.ascontiguousarray(operator.adjoint(y.reshape(first.shape)), np.float64).reshape(-1)

    if tau is None:
        tau = (1.8 if inertia == "none" else 1.0) / _norm_squared(operator, shape, apply, adjoint)
    x, dual, done, objective, gap, converged = _proxlift.dual_forward_backward(
        z.reshape(-1), apply, adjoint, conjugate._native, start.reshape(-1), tau, inertia, tolerance, iterations
    )
    return Solution(x.reshape(shape), dual.reshape(first.shape), done, objective, gap, converged)


def _norm_squared(operator: Operator, shape: tuple[int, ...], apply: Map, adjoint: Map) -> float:
    """``||L||^2``, a little above: the operator's own, or by power iteration."""
    norm = getattr(operator, "norm", None)
    if callable(norm) and len(shape) >= 2:
        return float(norm(shape[-2:])) ** 2 * 1.001
    x = np.random.default_rng(0).normal(size=int(np.prod(shape)))
    square = 0.0
    for _ in range(200):
        x /= np.linalg.norm(x)
        x = adjoint(apply(x))
        before, square = square, float(np.linalg.norm(x))
        if abs(square - before) <= 1e-6 * square:
            break
    if square == 0:
        raise ValueError("the operator gave 0 for a random image: its norm cannot be found, give tau")
    return 1.01 * square
