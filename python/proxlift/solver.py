"""Dual forward-backward, run to convergence, which the networks are unrolled from; and other splitting algorithms.

========================== ============================= ===========================================
                           minimises                     needs
========================== ============================= ===========================================
`dual_forward_backward`    ``1/2 ||x - z||^2 + g(L x)``  the prox of ``g*``
`forward_backward`         ``f(x) + g(x)``               the gradient of ``f``, the prox of ``g``
`douglas_rachford`, `admm` ``f(x) + g(x)``               both proxes
`condat_vu`                ``f(x) + g(x) + h(L x)``      the gradient of ``f``, those of ``g`` and ``h``
========================== ============================= ===========================================

A prox is one of `proxlift.prox`, or any object with ``prox(v, tau)``; a smooth function any object with ``gradient(x)``, such as
`LeastSquares`; an operator any object with ``apply`` and ``adjoint``.

>>> import numpy as np
>>> from proxlift import operators, prox, solver
>>> step = np.repeat([0.0, 1.0], 8) + np.random.default_rng(0).normal(0, 0.1, (16, 16))
>>> tv = solver.dual_forward_backward(step, operators.FiniteDifferences(), prox.l2_ball(2, 2, 0.2))
>>> tv.converged, bool(tv.x[:7, :6].std() < 0.01)
(True, True)

With an operator in the data, total variation by Condat-Vu:

>>> class Darker:
...     def apply(self, x): return 0.5 * x
...     def adjoint(self, y): return 0.5 * y
>>> data = solver.LeastSquares(Darker(), 0.5 * step)
>>> found = solver.condat_vu(data, prox.identity(), prox.group_l2(2, 2, 0.05), operators.FiniteDifferences(), step)
>>> found.ended, bool(found.x[:7, :6].std() < 0.01)
('settled', True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _proxlift
from .operators import Operator
from .prox import Prox

__all__ = [
    "Course",
    "LeastSquares",
    "Proximable",
    "Smooth",
    "Solution",
    "admm",
    "condat_vu",
    "douglas_rachford",
    "dual_forward_backward",
    "forward_backward",
]

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

    apply, adjoint = _flat(operator, shape, first.shape)
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


def _flat(operator: Operator, shape: tuple[int, ...], seen: tuple[int, ...]) -> tuple[Map, Map]:
    """``L`` and ``L*`` on flat arrays."""

    def apply(x: Floats) -> Floats:
        return np.ascontiguousarray(operator.apply(x.reshape(shape)), np.float64).reshape(-1)

    def adjoint(y: Floats) -> Floats:
        return np.ascontiguousarray(operator.adjoint(y.reshape(seen)), np.float64).reshape(-1)

    return apply, adjoint


class Proximable(Protocol):
    """A function through its proximity operator."""

    def prox(self, v: Floats, tau: float, /) -> Floats:
        """``argmin_u 1/2 ||u - v||^2 + tau psi(u)``."""


class Smooth(Protocol):
    """A convex function with a Lipschitz gradient."""

    def gradient(self, x: Floats, /) -> Floats:
        """``grad f(x)``."""


class LeastSquares:
    """``f(x) = weight / 2 ||A x - y||^2``: smooth, and with a prox by conjugate gradients.

    Parameters
    ----------
    operator : Operator
        ``A``.
    y : array_like
        The data.
    weight : float
        ``1 / sigma^2`` for noise of that level.

    Examples
    --------
    >>> from proxlift import operators, prox, solver
    >>> data = solver.LeastSquares(operators.FiniteDifferences(), np.zeros((2, 4, 4)), weight=10)
    >>> found = solver.douglas_rachford(data, prox.squared_distance(np.eye(4)), np.zeros((4, 4)))
    >>> found.ended, bool(found.x.std() < 0.1)
    ('settled', True)
    """

    def __init__(self, operator: Operator, y: ArrayLike, weight: float = 1.0) -> None:
        if not (np.isfinite(weight) and weight > 0):
            raise ValueError(f"the weight of the data is {weight}, but it must be above 0")
        self.operator = operator
        self.y = np.ascontiguousarray(y, np.float64)
        self.weight = float(weight)

    def value(self, x: ArrayLike) -> float:
        """``f(x)``."""
        return 0.5 * self.weight * float(np.sum((self.operator.apply(np.asarray(x, np.float64)) - self.y) ** 2))

    def gradient(self, x: ArrayLike) -> Floats:
        """``weight A* (A x - y)``."""
        residual = self.operator.apply(np.asarray(x, np.float64)) - self.y
        return self.weight * np.asarray(self.operator.adjoint(residual), np.float64)

    def lipschitz(self, shape: tuple[int, ...]) -> float:
        """The Lipschitz constant of the gradient for images of this shape, ``weight ||A||^2``, a little above."""
        return self.weight * _norm_squared(self.operator, shape, *_flat(self.operator, shape, self.y.shape))

    def prox(self, v: ArrayLike, tau: float = 1.0) -> Floats:
        """``(I + tau weight A* A)^-1 (v + tau weight A* y)``."""
        v = np.ascontiguousarray(v, np.float64)
        step = tau * self.weight
        b = v + step * np.asarray(self.operator.adjoint(self.y), np.float64).reshape(v.shape)
        apply, adjoint = _flat(self.operator, v.shape, self.y.shape)
        x = _proxlift.resolve(apply, adjoint, self.y.size, step, b.reshape(-1), v.reshape(-1), 1e-10)
        return x.reshape(v.shape)


@dataclass(frozen=True)
class Course:
    """How a splitting algorithm went.

    Attributes
    ----------
    x : ndarray
        The estimate.
    u : ndarray or None
        The dual variable, where there is one.
    iterations : int
        How many there were.
    residual : float
        The last change, relative to the norm of what changed.
    ended : {"settled", "iteration limit"}
        Why it stopped: it moved no further than the tolerance, or the most iterations were done.
    """

    x: Floats
    u: Floats | None
    iterations: int
    residual: float
    ended: str


def forward_backward(
    f: Smooth,
    g: Proximable,
    x: ArrayLike,
    *,
    lipschitz: float | None = None,
    inertia: str = "nesterov",
    tolerance: float = 1e-5,
    iterations: int = 1000,
) -> Course:
    """Minimise ``f(x) + g(x)`` for a smooth ``f``; with inertia, FISTA.

    Parameters
    ----------
    f : Smooth
        With ``gradient(x)``.
    g : Prox or Proximable
        With ``prox(v, tau)``.
    x : array_like
        To start from.
    lipschitz : float, optional
        The Lipschitz constant of the gradient; that of `LeastSquares` is known.
    inertia : {"nesterov", "chambolle-dossal", "none"}
        The extrapolation.
    tolerance : float
        The change to stop at, relative to the norm of ``x``.
    iterations : int
        The most that are done.

    Returns
    -------
    Course

    Examples
    --------
    >>> from proxlift import operators, prox, solver
    >>> data = solver.LeastSquares(operators.Convolution(np.full((1, 1, 3, 3), 1 / 9)), np.ones((1, 5, 5)))
    >>> solver.forward_backward(data, prox.soft_threshold(0.01), np.zeros((1, 5, 5)), iterations=3).ended
    'iteration limit'
    """
    x = np.ascontiguousarray(x, np.float64)
    constant = _lipschitz(f, lipschitz, x.shape)
    found = _proxlift.forward_backward(
        _gradient(f, x.shape), _term(g, x.shape), x.reshape(-1), constant, inertia, tolerance, iterations
    )
    return _course(found, x.shape)


def douglas_rachford(
    f: Proximable, g: Proximable, x: ArrayLike, *, tau: float = 1.0, tolerance: float = 1e-5, iterations: int = 1000
) -> Course:
    """Minimise ``f(x) + g(x)`` by their proxes, from ``x``, with any step ``tau > 0``; the rest as for `forward_backward`.

    >>> from proxlift import prox, solver
    >>> solver.douglas_rachford(prox.squared_distance([0.5, 2.0]), prox.clip(1.0), [0.0, 0.0]).x.round(3)
    array([0.5, 1. ])
    """
    return _by_proxes(_proxlift.douglas_rachford, f, g, x, tau, tolerance, iterations)


def admm(
    f: Proximable, g: Proximable, x: ArrayLike, *, rho: float = 1.0, tolerance: float = 1e-5, iterations: int = 1000
) -> Course:
    """Minimise ``f(x) + g(x)`` by their proxes, from ``x``, with any ``rho > 0``; the rest as for `forward_backward`.

    >>> from proxlift import prox, solver
    >>> solver.admm(prox.squared_distance([0.5, 2.0]), prox.clip(1.0), [0.0, 0.0]).x.round(3)
    array([0.5, 1. ])
    """
    return _by_proxes(_proxlift.admm, f, g, x, rho, tolerance, iterations)


def condat_vu(
    f: Smooth | None,
    g: Proximable,
    h: Proximable,
    operator: Operator,
    x: ArrayLike,
    *,
    u: ArrayLike | None = None,
    lipschitz: float | None = None,
    norm: float | None = None,
    balance: float = 1.0,
    tolerance: float = 1e-5,
    iterations: int = 1000,
) -> Course:
    """Minimise ``f(x) + g(x) + h(L x)`` for a smooth ``f``, or none.

    Parameters
    ----------
    f : Smooth or None
        With ``gradient(x)``.
    g, h : Prox or Proximable
        With ``prox(v, tau)``.
    operator : Operator
        ``L``.
    x : array_like
        To start from.
    u : array_like, optional
        The dual variable to start from, else 0.
    lipschitz, norm : float, optional
        The Lipschitz constant of the gradient, and ``||L||``, which the steps follow from; found where they are not given.
    balance : float
        The dual step by the primal one: the square of by how much dual variables change where images change by 1.
    tolerance, iterations : float, int
        As for `forward_backward`.

    Returns
    -------
    Course
    """
    x = np.ascontiguousarray(x, np.float64)
    first = np.asarray(operator.apply(x), np.float64)
    dual = np.zeros(first.shape) if u is None else np.ascontiguousarray(u, np.float64)
    if dual.shape != first.shape:
        raise ValueError(f"u has the shape {dual.shape}, but the operator gives {first.shape}")
    apply, adjoint = _flat(operator, x.shape, first.shape)
    if norm is None:
        norm = _norm_squared(operator, x.shape, apply, adjoint) ** 0.5
    found, dual = _proxlift.condat_vu(
        None if f is None else _gradient(f, x.shape),
        _term(g, x.shape),
        _term(h, first.shape),
        apply,
        adjoint,
        x.reshape(-1),
        dual.reshape(-1),
        (0.0 if f is None else _lipschitz(f, lipschitz, x.shape), norm, balance),
        tolerance,
        iterations,
    )
    return _course(found, x.shape, dual.reshape(first.shape))


def _term(term: Any, shape: tuple[int, ...]) -> Any:
    """A prox as the compiled module takes it."""
    if isinstance(term, Prox):
        return term._native
    if not hasattr(term, "prox"):
        raise TypeError("a term has no prox: give one of proxlift.prox, or an object with prox(v, tau)")
    return lambda v, tau: np.ascontiguousarray(term.prox(v.reshape(shape), tau), np.float64).reshape(-1)


def _by_proxes(
    solve: Callable[..., Any], f: Proximable, g: Proximable, x: ArrayLike, step: float, tolerance: float, iterations: int
) -> Course:
    start = np.ascontiguousarray(x, np.float64)
    terms = _term(f, start.shape), _term(g, start.shape)
    return _course(solve(*terms, start.reshape(-1), step, tolerance, iterations), start.shape)


def _gradient(f: Any, shape: tuple[int, ...]) -> Map:
    if not hasattr(f, "gradient"):
        raise TypeError("f has no gradient: give a LeastSquares, or an object with gradient(x)")
    return lambda x: np.ascontiguousarray(f.gradient(x.reshape(shape)), np.float64).reshape(-1)


def _lipschitz(f: Any, given: float | None, shape: tuple[int, ...]) -> float:
    if given is not None:
        return given
    if not callable(getattr(f, "lipschitz", None)):
        raise ValueError("the Lipschitz constant of the gradient of f is not known: give lipschitz")
    return float(f.lipschitz(shape))


def _course(
    found: tuple[Floats, int, float, bool], shape: tuple[int, ...], u: Floats | None = None
) -> Course:
    x, iterations, residual, settled = found
    return Course(x.reshape(shape), u, iterations, residual, "settled" if settled else "iteration limit")
