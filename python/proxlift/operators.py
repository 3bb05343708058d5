"""Linear operators with their exact adjoints, in double precision.

Images and features are arrays (planes, rows, columns); an image without channels is one of a single plane.

>>> import numpy as np
>>> from proxlift import operators
>>> rng = np.random.default_rng(0)
>>> L = operators.Convolution(rng.normal(size=(4, 1, 3, 3)))
>>> x, y = rng.normal(size=(1, 9, 7)), rng.normal(size=(4, 9, 7))
>>> bool(np.isclose(np.vdot(L.apply(x), y), np.vdot(x, L.adjoint(y))))
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _proxlift

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator as ScipyOperator

__all__ = ["Convolution", "FiniteDifferences", "Operator", "to_scipy"]

Floats = NDArray[np.float64]


class Operator(Protocol):
    """A linear map between arrays, with its adjoint."""

    def apply(self, x: Floats, /) -> Floats:
        """``L x``."""

    def adjoint(self, y: Floats, /) -> Floats:
        """``L* y``."""


class Convolution:
    """The bias-free convolution of a layer, with zeros outside the image.

    Parameters
    ----------
    filters : array_like, (J, C, k, k)
        As in ``Model.theta[k]``. As in every deep-learning library, the convolution is a correlation.
    """

    def __init__(self, filters: ArrayLike) -> None:
        self.filters = np.ascontiguousarray(filters, np.float64)
        if self.filters.ndim != 4:
            raise ValueError(f"filters have the shape {self.filters.shape}, but they must be (J, C, k, k)")
        self._native = _proxlift.Convolution(self.filters)

    def apply(self, x: ArrayLike) -> Floats:
        """``L x``, from (C, rows, columns) to (J, rows, columns)."""
        return self._native.apply(_field(x))

    def adjoint(self, y: ArrayLike) -> Floats:
        """``L* y``, from (J, rows, columns) to (C, rows, columns)."""
        return self._native.adjoint(_field(y))

    def norm(self, shape: tuple[int, int]) -> float:
        """The norm on images of this many rows and columns."""
        return self._native.norm(*shape)


class FiniteDifferences:
    """Differences of each pixel with the next one in its row and in its column: the operator of total variation."""

    def __init__(self) -> None:
        self._native = _proxlift.FiniteDifferences()

    def apply(self, x: ArrayLike) -> Floats:
        """``L x``, from (C, rows, columns) to (2 C, rows, columns)."""
        return self._native.apply(_field(x))

    def adjoint(self, y: ArrayLike) -> Floats:
        """``L* y``, from (2 C, rows, columns) to (C, rows, columns)."""
        return self._native.adjoint(_field(y))

    def norm(self, shape: tuple[int, int]) -> float:
        """The norm on images of this many rows and columns."""
        return self._native.norm(*shape)


def _field(field: ArrayLike) -> Floats:
    array = np.ascontiguousarray(field, np.float64)
    if array.ndim == 2:
        array = array[np.newaxis]
    if array.ndim != 3:
        raise ValueError(f"a field has the shape {array.shape}, but it must be (planes, rows, columns)")
    return array


def to_scipy(operator: Operator, shape: tuple[int, ...]) -> ScipyOperator:
    """An operator on images of this shape for SciPy and pylops, with ``matvec`` and ``rmatvec`` on flat arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from proxlift import operators
    >>> D = operators.to_scipy(operators.FiniteDifferences(), (1, 8, 8))
    >>> D.shape
    (128, 64)
    """
    from scipy.sparse.linalg import LinearOperator

    result = np.asarray(operator.apply(np.zeros(shape))).shape

    def matvec(x: Any) -> Any:
        return np.asarray(operator.apply(np.reshape(x, shape))).reshape(-1)

    def rmatvec(y: Any) -> Any:
        return np.asarray(operator.adjoint(np.reshape(y, result))).reshape(-1)

    size = (int(np.prod(result)), int(np.prod(shape)))
    return LinearOperator(size, matvec=matvec, rmatvec=rmatvec, dtype=np.float64)
