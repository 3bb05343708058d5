"""Proximity operators, the Bregman penalties that they lift to, and their derivatives, in double precision.

For a convex penalty ``psi`` and ``tau > 0``, ``prox(v) = argmin_u 1/2 ||u - v||^2 + tau psi(u)``. Fields are arrays whose
first axis are planes; a penalty with a threshold for each plane takes threshold ``j`` for plane ``j``.

>>> import numpy as np
>>> from proxlift import prox
>>> prox.soft_threshold(1.0).prox([-3.0, 0.5, 2.0])
array([-2.,  0.,  1.])
>>> clip = prox.clip(1.0)
>>> clip.bregman([1.0], [3.0]), clip.bregman([0.0], [3.0])
(0.0, 2.5)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _proxlift

__all__ = [
    "Prox",
    "absolute_distance",
    "box",
    "clip",
    "group_l2",
    "identity",
    "kullback_leibler",
    "l2_ball",
    "piecewise_linear",
    "relu",
    "sigmoid",
    "simplex",
    "soft_threshold",
    "softmax",
    "squared_distance",
]

Floats = NDArray[np.float64]


class Prox:
    """A penalty through its proximity operator; made by the functions of this module."""

    def __init__(self, native: _proxlift.Prox, name: str) -> None:
        self._native = native
        self._name = name

    def __repr__(self) -> str:
        return f"<proxlift.prox: {self._name}>"

    def value(self, u: ArrayLike) -> float:
        """``psi(u)``; infinite outside its domain."""
        return self._native.value(_flat(u))

    def conjugate_value(self, w: ArrayLike) -> float:
        """``psi*(w) = sup_u <u, w> - psi(u)``."""
        return self._native.conjugate_value(_flat(w))

    def prox(self, v: ArrayLike, tau: float = 1.0) -> Floats:
        """``prox_{tau psi}(v)``."""
        return self._native.prox(_flat(v), _positive(tau)).reshape(np.shape(v))

    __call__ = prox

    def prox_conjugate(self, v: ArrayLike, tau: float = 1.0) -> Floats:
        """``prox_{tau psi*}(v)``, by Moreau's identity."""
        return self._native.prox_conjugate(_flat(v), _positive(tau)).reshape(np.shape(v))

    def pullback(self, v: ArrayLike, g: ArrayLike, tau: float = 1.0) -> Floats:
        """``J^T g`` with `J` the Jacobian of the proximity operator at `v`."""
        return self._native.pullback(_flat(v), _flat(g), _positive(tau)).reshape(np.shape(v))

    def bregman(self, u: ArrayLike, v: ArrayLike, tau: float = 1.0) -> float:
        """``B(u, v) = q(u) + q*(v) - <u, v>``, with ``q = 1/2 ||.||^2 + tau psi``: 0 where ``u = prox(v)``, else above."""
        return self._native.bregman(_flat(u), _flat(v), _positive(tau))

    def bregman_gradient(self, u: ArrayLike, v: ArrayLike, tau: float = 1.0) -> Floats:
        """The gradient of `bregman` by `v`: ``prox(v) - u``."""
        return self.prox(v, tau) - np.asarray(u, np.float64)

    def q_star(self, v: ArrayLike, tau: float = 1.0) -> float:
        """``q*(v)``, whose gradient is the proximity operator."""
        return self._native.q_star(_flat(v), _positive(tau))


def _flat(field: ArrayLike) -> Floats:
    return np.ascontiguousarray(field, np.float64).reshape(-1)


def _positive(tau: float) -> float:
    if not (np.isfinite(tau) and tau > 0):
        raise ValueError(f"tau is {tau}, but it must be positive")
    return float(tau)


def _list(values: ArrayLike) -> list[float]:
    return [float(value) for value in np.atleast_1d(np.asarray(values, np.float64))]


def soft_threshold(thresholds: ArrayLike) -> Prox:
    """``psi(u) = sum lambda |u|``; its prox shrinks by the threshold, one for all planes or one for each."""
    return Prox(_proxlift.Prox.soft_threshold(_list(thresholds)), "soft threshold")


def box(low: ArrayLike, high: ArrayLike) -> Prox:
    """The indicator of ``low <= u <= high``; its prox clips."""
    return Prox(_proxlift.Prox.box_clip(_list(low), _list(high)), "box")


def clip(thresholds: ArrayLike) -> Prox:
    """The indicator of ``|u| <= lambda``, the conjugate of `soft_threshold`: the paper's activation."""
    values = _list(thresholds)
    return Prox(_proxlift.Prox.box_clip([-value for value in values], values), "clip")


def l2_ball(planes: int, size: int, radii: ArrayLike) -> Prox:
    """The indicator of balls: at each pixel, groups of `size` planes have a norm of at most their radius."""
    return Prox(_proxlift.Prox.l2_ball(planes, size, _list(radii)), "l2 balls")


def group_l2(planes: int, size: int, thresholds: ArrayLike) -> Prox:
    """The sum of the norms of groups of `size` planes at each pixel, the conjugate of `l2_ball`."""
    return Prox(_proxlift.Prox.group_l2(planes, size, _list(thresholds)), "group l2")


def piecewise_linear(knots: ArrayLike, slopes: ArrayLike) -> Prox:
    """Odd, piecewise-linear functions, one for each plane: the learned activations of a model.

    Parameters
    ----------
    knots : array_like, (planes, M)
        In order, none negative.
    slopes : array_like, (planes, M + 1)
        Between the knots, none negative.
    """
    knots, slopes = np.atleast_2d(np.asarray(knots, float)), np.atleast_2d(np.asarray(slopes, float))
    if knots.ndim != 2 or slopes.shape != (knots.shape[0], knots.shape[1] + 1):
        raise ValueError("knots must be (planes, M) and slopes (planes, M + 1)")
    native = _proxlift.Prox.piecewise_linear(np.ascontiguousarray(knots), np.ascontiguousarray(slopes))
    return Prox(native, "piecewise linear")


def relu() -> Prox:
    """The indicator of ``u >= 0``; its prox is the positive part."""
    return Prox(_proxlift.Prox.relu(), "relu")


def simplex(planes: int) -> Prox:
    """The indicator of the probability simplex, across the planes of each pixel; its prox projects on it."""
    return Prox(_proxlift.Prox.simplex(planes), "simplex")


def softmax(planes: int) -> Prox:
    """The negative entropy on the simplex less ``1/2 ||u||^2``; its prox is softmax, its penalty the KL divergence."""
    return Prox(_proxlift.Prox.softmax(planes), "softmax")


def sigmoid() -> Prox:
    """The negative entropy of a coin less ``u^2/2``; its prox is the logistic function."""
    return Prox(_proxlift.Prox.sigmoid(), "sigmoid")


def identity() -> Prox:
    """``psi = 0``."""
    return Prox(_proxlift.Prox.identity(), "identity")


def squared_distance(y: ArrayLike, weight: float = 1.0) -> Prox:
    """``psi(u) = weight / 2 ||u - y||^2``: Gaussian noise, with ``weight = 1 / sigma^2``.

    >>> squared_distance([1.0, 2.0]).prox([3.0, 2.0])
    array([2., 2.])
    """
    return Prox(_proxlift.Prox.squared_distance(_flat(y), weight), "squared distance")


def absolute_distance(y: ArrayLike, weight: float = 1.0) -> Prox:
    """``psi(u) = weight ||u - y||_1``: noise with outliers.

    >>> absolute_distance([1.0, 2.0]).prox([3.0, 2.5])
    array([2., 2.])
    """
    return Prox(_proxlift.Prox.absolute_distance(_flat(y), weight), "absolute distance")


def kullback_leibler(y: ArrayLike, weight: float = 1.0) -> Prox:
    """``psi(u) = weight sum u - y + y log(y / u)`` for ``u >= 0``: counts ``y = gain Poisson(u / gain)``, with ``weight = 1 / gain``.

    >>> kullback_leibler([2.0, 0.0]).prox([2.0, 0.5])
    array([2., 0.])
    """
    return Prox(_proxlift.Prox.kullback_leibler(_flat(y), weight), "Kullback-Leibler")
