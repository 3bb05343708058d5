"""Arrays in, arrays out."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _proxlift
from ._arrays import Pages, as_picture, levels, result_type

if TYPE_CHECKING:
    from ._model import Model

KINDS = ("auto", "gaussian", "poisson", "poisson-gaussian", "camera")


def denoise(
    image: ArrayLike,
    sigma: ArrayLike | None = None,
    *,
    model: str | os.PathLike[str] | Model = "best",
    noise: str = "auto",
    channel_axis: int | None = None,
    clip: bool | None = None,
    strength: float = 1.0,
    turned: bool = False,
    gain: float | None = None,
    offset: float | None = None,
    read_noise: float | None = None,
) -> NDArray[Any]:
    """Remove the noise of an image.

    Parameters
    ----------
    image : array_like
        Rows and columns last, channels where `channel_axis` says; all other axes are a stack or a batch, of which every
        image is denoised by itself. Integers are scaled to [0, 1], floats are taken as they are. An array that is
        already ``uint8``, ``uint16``, ``float32`` or ``float64`` is read where it lies.
    sigma : array_like, optional
        The standard deviation of the noise on the scale of the result: a number, one for each image (the shape of
        the leading axes), or a map, which broadcasts to the images. Estimated in each image if it is not given.
    model : str, path or Model
        ``"best"``, ``"small"`` (faster), ``"photo"`` (for the noise of cameras, in colour), a file that
        ``proxlift train`` wrote, or a `Model`. With ``"best"``, colour images with the noise of a camera get ``"photo"``.
    noise : {"auto", "gaussian", "poisson", "poisson-gaussian", "camera"}
        The kind of noise; found in each image if it is ``"auto"``, and white where `sigma` is given.
    channel_axis : int, optional
        The axis of the channels; without it, images are grey. Three channels are denoised together as red, green and
        blue; any other number one by one.
    clip : bool, optional
        Whether results are clipped to [0, 1]; by default those of integers are.
    strength : float
        More (above 1) or less (below 1) than the noise asks for; 0 leaves the image as it is.
    turned : bool
        Whether images are denoised in all eight orientations and averaged: eight times as long, and a little better.
    gain, offset, read_noise : float, optional
        What is known of the camera whose counts are denoised, in units of the array: those for each count, the value of
        no counts, and the standard deviation of the noise there. What is not given is found in the image.

    Returns
    -------
    ndarray
        Of the shape of `image`; single precision if that has single or half precision, else double, as in scikit-image.

    Notes
    -----
    A network knows one noise level. Where `sigma` is a map, the image is denoised for levels a quarter of an octave apart, and
    every pixel is blended between the two around its own.

    Examples
    --------
    >>> import numpy as np, proxlift
    >>> rng = np.random.default_rng(0)
    >>> clean = np.kron(rng.random((6, 6, 3)), np.ones((16, 16, 1)))
    >>> noisy = (255 * np.clip(clean + rng.normal(0, 0.1, clean.shape), 0, 1)).astype(np.uint8)
    >>> result = proxlift.denoise(noisy, channel_axis=-1)
    >>> result.shape, result.dtype, bool(result.max() <= 1)
    ((96, 96, 3), dtype('float64'), True)

    A stack with a level for each image:

    >>> stack = rng.random((2, 64, 48)).astype(np.float32)
    >>> proxlift.denoise(stack, sigma=[0.1, 0.2], model="small").dtype
    dtype('float32')
    """
    picture = as_picture(image)
    pages = Pages.of(picture, channel_axis)
    if clip is None:
        clip = picture.dtype.kind == "u" or np.asarray(image).dtype.kind in "ui"
    if noise not in KINDS:
        raise ValueError(f"noise is {noise!r}, but it must be one of {', '.join(KINDS)}")
    denoiser = _proxlift.Denoiser(
        native(model, pages.array.shape[1]),
        noise=None if noise == "auto" else noise,
        strength=strength,
        turned=turned,
        clip=clip,
        gain=gain,
        offset=offset,
        read_noise=read_noise,
    )
    return _run(denoiser, picture, pages, levels(sigma, pages), result_type(image))


def denoise_tv(
    image: ArrayLike,
    weight: float | None = None,
    *,
    sigma: ArrayLike | None = None,
    channel_axis: int | None = None,
) -> NDArray[Any]:
    """Remove noise by total variation (Rudin, Osher, Fatemi 1992).

    The minimiser of ``1/2 ||x - z||^2 + weight TV(x)``, to a relative duality gap of 1e-4: isotropic, and over all
    channels jointly where there are three.

    Parameters
    ----------
    image : array_like
        As for `denoise`.
    weight : float, optional
        The weight of the total variation; by default it follows from the noise level, 0.74 or in colour 1.1 times.
    sigma : array_like, optional
        The noise level, as for `denoise`; estimated if neither is given.
    channel_axis : int, optional
        As for `denoise`.

    Returns
    -------
    ndarray
        As for `denoise`.

    Examples
    --------
    >>> import numpy as np, proxlift
    >>> noisy = np.repeat([0.0, 1.0], 32) + np.random.default_rng(0).normal(0, 0.1, (64, 64))
    >>> bool(proxlift.denoise_tv(noisy, 0.3)[:, :30].std() < 0.02)
    True
    """
    picture = as_picture(image)
    pages = Pages.of(picture, channel_axis)
    if weight is not None and sigma is not None:
        raise ValueError("give either weight or sigma: the weight follows from sigma")
    denoiser = _proxlift.Denoiser("total-variation", weight=weight)
    return _run(denoiser, picture, pages, levels(sigma, pages), result_type(image))


def _run(
    denoiser: _proxlift.Denoiser, picture: NDArray[Any], pages: Pages, sigma: Any, dtype: np.dtype[Any]
) -> NDArray[Any]:
    return pages.fill(picture.shape, dtype, lambda output: denoiser.denoise(pages.array, output, sigma))


def native(model: str | os.PathLike[str] | Model, channels: int) -> str | _proxlift.Model:
    """The model as the compiled module takes it, for pictures with these channels."""
    compiled = getattr(model, "_native", None)
    if not isinstance(compiled, _proxlift.Model):
        if not isinstance(model, (str, os.PathLike)):
            raise TypeError(f"model is {model!r}: give a name, a path or a proxlift.Model")
        name = os.fspath(model)
        if name in _proxlift.BUILT_IN:
            return name
        check_model_name(name)
        changed = os.stat(name)
        compiled = _file(name, changed.st_mtime_ns, changed.st_size)
    if compiled.sizes[3] > channels:
        raise ValueError("the model is for colour, but the image is grey: give channel_axis, or a grey model")
    return compiled


def check_model_name(name: str) -> None:
    """Refuse what is neither a built-in model nor a file."""
    if name not in _proxlift.BUILT_IN and not os.path.exists(name):
        raise FileNotFoundError(
            f"{name}: there is no such file, and no built-in model of that name; "
            f"the built-in ones are {', '.join(_proxlift.BUILT_IN)}"
        )


@lru_cache(maxsize=8)
def _file(name: str, _changed: int, _size: int) -> _proxlift.Model:
    return _proxlift.Model.load(name, 1)
