"""The noise of an array, from the array alone."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from . import _proxlift
from ._arrays import Pages, as_picture
from ._denoise import KINDS


@dataclass(frozen=True)
class Variance:
    """How the variance of the noise rises with the intensity ``x``: ``a + b x``.

    Attributes
    ----------
    a, b : float
        The line.
    points : tuple of (float, float)
        Intensities and the variances that were measured there.
    """

    a: float
    b: float
    points: tuple[tuple[float, float], ...] = ()

    def __call__(self, x: ArrayLike) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        """The variance at intensities, never below zero."""
        return np.maximum(self.a + self.b * np.asarray(x, np.float64), 0.0)


@dataclass(frozen=True)
class NoiseModel:
    """The noise of an image, on the scale of its floats.

    Attributes
    ----------
    kind : str
        ``"gaussian"`` (white, the same everywhere), ``"poisson"`` and ``"poisson-gaussian"`` (counts, without and with
        read noise) or ``"camera"`` (correlated from pixel to pixel, as cameras leave it).
    sigma : float
        Its level: the standard deviation of white noise; of counts that at a middling intensity; of a camera that of
        white noise as strong at middle frequencies.
    levels : tuple of float
        The same for each channel.
    variances : tuple of Variance
        The variance in each channel over the intensity; empty for a tiny image.
    whiteness : float
        The level at high frequencies as a share of that at middle ones: about 1 for white noise.
    spectrum : tuple of tuple of float
        The level in quiet places of each channel, from the lowest to the highest frequency.
    """

    kind: str
    sigma: float
    levels: tuple[float, ...]
    variances: tuple[Variance, ...]
    whiteness: float
    spectrum: tuple[tuple[float, ...], ...]
    _line: str = field(default="", repr=False, compare=False)

    def __str__(self) -> str:
        return self._line


def estimate_noise(
    image: ArrayLike, *, channel_axis: int | None = None, noise: str = "auto"
) -> NoiseModel:
    """Find the noise of an image: its kind, its level, how it depends on the intensity.

    Parameters
    ----------
    image : array_like
        One image, rows and columns last, grey or with three channels.
    channel_axis : int, optional
        The axis of the channels.
    noise : {"auto", "gaussian", "poisson", "poisson-gaussian", "camera"}
        Its kind, if that is known.

    Returns
    -------
    NoiseModel

    Examples
    --------
    >>> import numpy as np, proxlift
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.poisson(np.kron(rng.uniform(5, 60, (16, 16)), np.ones((16, 16)))).astype(np.float32)
    >>> noise = proxlift.estimate_noise(counts)
    >>> noise.kind, bool(abs(noise.variances[0].b - 1) < 0.2)
    ('poisson', True)
    """
    pages = Pages.of(as_picture(image), channel_axis)
    if noise not in KINDS:
        raise ValueError(f"noise is {noise!r}, but it must be one of {', '.join(KINDS)}")
    if len(pages.array) != 1:
        raise ValueError(
            f"image has the shape {np.shape(image)}: give one image, grey or with three channels and their channel_axis"
        )
    ((found, line),) = _proxlift.estimate(pages.array, None if noise == "auto" else noise)
    model = json.loads(found)
    variances = (Variance(v["a"], v["b"], tuple(map(_pair, v["points"]))) for v in model["variances"])
    return NoiseModel(
        kind=model["kind"],
        sigma=model["sigma"],
        levels=tuple(model["levels"]),
        variances=tuple(variances),
        whiteness=model["whiteness"],
        spectrum=tuple(tuple(levels) for levels in model["spectrum"]),
        _line=line,
    )


def _pair(point: list[float]) -> tuple[float, float]:
    return point[0], point[1]


def estimate_sigma(
    image: ArrayLike, average_sigmas: bool = False, *, channel_axis: int | None = None
) -> float | list[float]:
    """Estimate the standard deviation of the noise; a drop-in for scikit-image's function of this name.

    Parameters
    ----------
    image : array_like
        One image, rows and columns last.
    average_sigmas : bool
        Whether the levels of the channels are averaged.
    channel_axis : int, optional
        The axis of the channels.

    Returns
    -------
    float or list of float
        The level, or one for each channel.

    Examples
    --------
    >>> import numpy as np, proxlift
    >>> noisy = np.random.default_rng(0).normal(0.5, 0.1, (128, 128))
    >>> round(proxlift.estimate_sigma(noisy), 2)
    0.1
    """
    array = as_picture(image)
    if channel_axis is None:
        return estimate_noise(array).sigma
    channels = np.moveaxis(array, channel_axis, 0)
    sigmas = [estimate_noise(channel).sigma for channel in channels]
    return float(np.mean(sigmas)) if average_sigmas else sigmas
