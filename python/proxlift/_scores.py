"""Scores of an estimate against the clean image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _proxlift
from ._arrays import Pages, as_picture


def _pair(clean: ArrayLike, estimate: ArrayLike, data_range: float | None) -> tuple[Any, Any, float]:
    a, b = as_picture(clean, "clean"), as_picture(estimate, "estimate")
    if a.shape != b.shape:
        raise ValueError(f"images to compare must have one shape: clean has {a.shape}, estimate {b.shape}")
    if a.dtype.kind == b.dtype.kind == "f" and data_range is None:
        raise ValueError("give data_range, the difference of white and black, for floats: 1 where white is 1")
    return _floats(a), _floats(b), 1.0 if data_range is None else float(data_range)


def _floats(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.dtype.kind == "f" else array / np.iinfo(array.dtype).max


def psnr(clean: ArrayLike, estimate: ArrayLike, *, data_range: float | None = None) -> float:
    """Peak signal-to-noise ratio, ``10 log10(data_range^2 / mse)``, in decibels.

    Parameters
    ----------
    clean, estimate : array_like
        Of one shape. Integers are scaled to [0, 1].
    data_range : float, optional
        The difference of white and black; 1 for integers, which are scaled to it.

    Examples
    --------
    >>> import numpy as np, proxlift
    >>> round(proxlift.psnr(np.zeros((8, 8)), np.full((8, 8), 0.1), data_range=1), 3)
    20.0
    """
    a, b, peak = _pair(clean, estimate, data_range)
    if not (np.isfinite(peak) and peak > 0):
        raise ValueError(f"data_range is {peak}, but it must be positive")
    mse = float(np.mean(np.square(np.subtract(a, b, dtype=np.float64))))
    return float("inf") if mse == 0 else float(10 * np.log10(peak * peak / mse))


def ssim(
    clean: ArrayLike,
    estimate: ArrayLike,
    *,
    data_range: float | None = None,
    channel_axis: int | None = None,
) -> float:
    """Structural similarity (Wang, Bovik, Sheikh, Simoncelli 2004), averaged over channels and images.

    As scikit-image's `structural_similarity` with ``gaussian_weights=True``, ``sigma=1.5`` and
    ``use_sample_covariance=False``.

    Parameters
    ----------
    clean, estimate : array_like
        Of one shape, rows and columns last. Integers are scaled to [0, 1].
    data_range : float, optional
        The difference of white and black; 1 for integers.
    channel_axis : int, optional
        The axis of the channels.

    Examples
    --------
    >>> import numpy as np, proxlift
    >>> image = np.random.default_rng(0).random((32, 32))
    >>> round(proxlift.ssim(image, image, data_range=1), 6)
    1.0
    """
    a, b, peak = _pair(clean, estimate, data_range)
    pages = [Pages.of(array, channel_axis).array.astype(np.float32) for array in (a, b)]
    return float(np.mean([_proxlift.ssim(x, y, peak) for x, y in zip(*pages)]))
