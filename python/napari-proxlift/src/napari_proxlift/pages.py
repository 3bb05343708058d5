"""From image data to image data, page by page and on the scale of the layer; no window is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import proxlift
from numpy.typing import NDArray

Index = tuple[int, ...]

# Types that proxlift brings to [0, 1] itself.
SCALED = (np.uint8, np.uint16)


@dataclass(frozen=True)
class Settings:
    """How a layer is denoised.

    Attributes
    ----------
    model : str
        ``"best"``, ``"small"``, ``"photo"``, or a model file.
    noise : str
        The kind of noise, or ``"auto"``.
    sigma : float, optional
        The standard deviation of the noise in the units of the layer; estimated in each page unless it is given.
    strength : float
        More (above 1) or less (below 1).
    """

    model: str = "best"
    noise: str = "auto"
    sigma: float | None = None
    strength: float = 1.0


def page_count(data: Any, *, rgb: bool = False) -> int:
    """How many pages image data has.

    Examples
    --------
    >>> page_count(np.zeros((5, 2, 64, 64)))
    10
    >>> page_count(np.zeros((64, 64, 3)), rgb=True)
    1
    """
    return int(np.prod(_leading(data, rgb)))


def estimate(data: Any, index: Index = (), *, rgb: bool = False, noise: str = "auto") -> tuple[str, float]:
    """Find out which noise a page has.

    Returns
    -------
    kind : str
        ``"gaussian"``, ``"poisson"``, ``"poisson-gaussian"`` or ``"camera"``.
    sigma : float
        Its standard deviation, in the units of the data.

    Examples
    --------
    >>> noisy = 1000 + 20 * np.random.default_rng(1).standard_normal((256, 256))
    >>> kind, sigma = estimate(noisy.astype(np.uint16))
    >>> kind, abs(sigma - 20) < 1
    ('gaussian', True)
    """
    page = _page(data, index, rgb)
    found = proxlift.estimate_noise(page, channel_axis=-1 if rgb else None, noise=noise)
    return found.kind, found.sigma * _unit(page.dtype)


def denoise_pages(
    data: Any, settings: Settings | None = None, *, rgb: bool = False
) -> Iterator[tuple[Index, NDArray[Any]]]:
    """Denoise the pages of image data one after the other, each read when its turn comes.

    Yields
    ------
    index : tuple of int
        The place of the page in the leading axes.
    page : numpy.ndarray
        The page, in the units of the data: ``float32``, but in colour of the type of the data.
    """
    settings = settings or Settings()
    for index in np.ndindex(_leading(data, rgb)):
        page = _page(data, index, rgb)
        unit = _unit(page.dtype)
        clean = proxlift.denoise(
            page[..., :3] if rgb else page,
            None if settings.sigma is None else settings.sigma / unit,
            model=settings.model,
            noise=settings.noise,
            strength=settings.strength,
            channel_axis=-1 if rgb else None,
        )
        yield index, _colours(clean, page, unit) if rgb else (clean * unit).astype(np.float32)


def denoise_image(
    image: Any,
    *,
    model: str = "best",
    noise: str = "auto",
    sigma: float | None = None,
    strength: float = 1.0,
    rgb: bool = False,
) -> NDArray[Any]:
    """Denoise image data: the last two axes are a picture, or the last three if `rgb`; others are a stack of them.

    Examples
    --------
    >>> noisy = 1000 + 20 * np.random.default_rng(1).standard_normal((2, 64, 64))
    >>> clean = denoise_image(noisy.astype(np.uint16), sigma=20, model="small")
    >>> clean.dtype, bool(clean.std() < 5)
    (dtype('float32'), True)
    """
    result: NDArray[Any] | None = None
    for index, page in denoise_pages(image, Settings(model, noise, sigma, strength), rgb=rgb):
        if result is None:
            result = np.empty(image.shape, page.dtype)
        result[index] = page
    return np.empty(image.shape, np.float32) if result is None else result


def _leading(data: Any, rgb: bool) -> Index:
    shape = tuple(data.shape)
    least = 3 if rgb else 2
    if len(shape) < least:
        raise ValueError(f"the image has {len(shape)} axes, but at least {least} are needed: choose another layer")
    return shape[:-least]


def _page(data: Any, index: Index, rgb: bool) -> NDArray[Any]:
    page = np.asarray(data[index])
    return page if page.dtype.kind == "f" or page.dtype in SCALED else page.astype(np.float32)


def _unit(dtype: np.dtype[Any]) -> float:
    """What white is in the units of the data, where proxlift takes it for 1."""
    return float(np.iinfo(dtype).max) if dtype in SCALED else 1.0


def _colours(clean: NDArray[Any], page: NDArray[Any], unit: float) -> NDArray[Any]:
    """As napari shows colours: in the type of the data and its range, with the alpha of the page."""
    result = page.copy()
    clipped = np.clip(clean, 0, 1) * unit
    result[..., :3] = np.round(clipped) if page.dtype in SCALED else clipped
    return result
