"""Arrays larger than memory, on one machine or on a cluster.

The result of `denoise` is computed when it is asked for, a block at a time, and has the bits
of the whole array denoised at once. Two things make that so:

- A pixel of the result sees the receptive radius ``R`` of the network on each side, and no further. A block is
  denoised with ``R`` more pixels around it, as far as the picture has them, and cropped. What the network is shown
  beyond a cut, its mirrored border, is further away than that from every pixel that is kept.
- The network is computed in pairs of rows, an even one and the odd one below it, and the rounding of a sum depends on
  which of the two a row is; with stride 2, these are pairs of rows and of columns. So blocks begin at even rows of the
  picture, or at every fourth and every second column: ``R`` is rounded up, and other chunks are cut a little earlier.

The noise of a page, unless it is given, is estimated from the same rows as that of a whole array would be.
"""

# Dask has no types for most of what it gives.
# mypy: disable-error-code="no-untyped-call,no-any-return"

from __future__ import annotations

import os
import sys
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import ArrayLike, NDArray

from . import _proxlift
from ._arrays import Pages, as_picture, result_type
from ._denoise import KINDS, native
from ._model import Model

__all__ = ["denoise"]

# Narrower blocks than this many radii compute more for their neighbours than for themselves.
LEAST_RADII = 4


def denoise(
    array: Any,
    sigma: ArrayLike | da.Array | None = None,
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
) -> da.Array:
    """Denoise an array lazily, with the bits that `proxlift.denoise` gives for the whole of it.

    Parameters
    ----------
    array : dask.array.Array or array_like
        Pictures of shape ``(..., H, W)``, or with channels; anything else than a Dask array is wrapped in one. Leading
        axes are a stack, whose pages are denoised one by one.
    sigma : float, array_like or dask.array.Array, optional
        The standard deviation of the noise, where white is 1: one for all pages, one for each, or a map that
        broadcasts to ``(..., H, W)``. If it is not given, it is estimated in each page.
    model : str, path or Model
        ``"best"``, ``"small"``, ``"photo"``, a model file, which is read at once, or a model.
    noise, clip, strength, turned, gain, offset, read_noise
        As for `proxlift.denoise`.
    channel_axis : int, optional
        The axis of the channels, if there is one.

    Returns
    -------
    dask.array.Array
        Of the shape and the chunks of `array`; ``float32`` for ``float32`` and ``float16``, else ``float64``.

    Notes
    -----
    Chunks of 1000 pixels or so on a side suit all models. Much smaller ones are joined before they are denoised, and
    cut again.

    On a cluster every worker computes with as many threads as Dask gave it, unless ``RAYON_NUM_THREADS`` says otherwise.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import proxlift.dask
    >>> noisy = 0.5 + 0.1 * np.random.default_rng(1).standard_normal((300, 400))
    >>> lazy = proxlift.dask.denoise(da.from_array(noisy, chunks=150), sigma=0.1, model="small")
    >>> lazy.chunks, lazy.dtype
    (((150, 150), (150, 150, 100)), dtype('float64'))
    >>> np.array_equal(lazy.compute(), proxlift.denoise(noisy, sigma=0.1, model="small"))
    True

    From Zarr to Zarr, in bounded memory::

        stack = da.from_zarr("noisy.zarr")
        proxlift.dask.denoise(stack).to_zarr("clean.zarr")
    """
    if isinstance(model, os.PathLike) or (isinstance(model, str) and model not in _proxlift.BUILT_IN):
        model = Model.load(model)
    if noise not in KINDS:
        raise ValueError(f"noise is {noise!r}, but it must be one of {', '.join(KINDS)}")
    pages = da.asarray(array)
    if channel_axis is not None:
        if not -pages.ndim <= channel_axis < pages.ndim:
            raise ValueError(f"channel_axis is {channel_axis}, but the array has {pages.ndim} axes")
        pages = da.moveaxis(pages, channel_axis, -3) if pages.ndim > 2 else pages
    needed = 2 if channel_axis is None else 3
    if pages.ndim < needed or pages.size == 0:
        raise ValueError(f"the array has the shape {pages.shape}: give at least {needed} axes, none of them empty")
    # A picture in colour is one page; other channels are so many pages.
    colour = channel_axis is not None and pages.shape[-3] == 3
    settings: dict[str, Any] = {
        "noise": None if noise == "auto" else noise,
        "clip": pages.dtype.kind in "ui" if clip is None else clip,
        "strength": strength,
        "turned": turned,
        "gain": gain,
        "offset": offset,
        "read_noise": read_noise,
    }
    work: dict[str, Any] = {"model": model, "settings": settings, "colour": colour}
    if isinstance(sigma, (int, float)):
        work["sigma"] = float(sigma)
    # What is wrong is refused at once: a few pixels are denoised, unless that takes an estimate.
    channels = 3 if colour else 1
    few = np.zeros((channels, 8, 8) if colour else (8, 8), pages.dtype)
    if sigma is None:
        as_picture(few)
        _proxlift.Denoiser(native(model, channels), **settings)
    else:
        _denoise_block(few, **{"sigma": 0.1, **work})
    if isinstance(model, Model):
        work["model"] = delayed(model, pure=True)

    reach, stride = _reach(model, channels)
    blocks = _blocks(pages, reach, stride, colour)
    depth = {axis: reach for axis in (blocks.ndim - 2, blocks.ndim - 1) if blocks.numblocks[axis] > 1}
    arrays, depths = [blocks], [depth]
    if sigma is None:
        arrays.append(_settled(blocks, work))
        depths.append({})
    elif "sigma" not in work:
        levels, is_map = _levels(da.asarray(sigma), blocks, channel_axis is not None)
        arrays.append(levels)
        depths.append(depth if is_map else {})
        if is_map:
            # A map that is the same everywhere is that number, but one that is so in a block alone is not.
            single, axes = levels.astype(np.float32), (-2, -1)
            arrays.append(single.min(axes, keepdims=True) != single.max(axes, keepdims=True))
            depths.append({})
    meta = np.empty((0,) * blocks.ndim, result_type(few))
    result = da.map_overlap(
        _denoise_block, *arrays, depth=depths, boundary="none", allow_rechunk=False, meta=meta, token="denoise", **work
    ).rechunk(pages.chunks)
    return result if channel_axis is None else da.moveaxis(result, -3, channel_axis)


def _reach(model: str | Model, channels: int) -> tuple[int, int]:
    """How far a pixel sees, in whole pairs of rows, and the stride, in whichever model will suit the noise."""
    suited = [model] if model != "best" else ["best", "photo"]
    models = [name if isinstance(name, Model) else Model.load(name, channels=channels) for name in suited]
    stride = max(model.stride for model in models)
    radius = max(model.receptive_radius for model in models)
    return -(-radius // (2 * stride)) * 2 * stride, stride


def _blocks(pages: da.Array, reach: int, stride: int, colour: bool) -> da.Array:
    """Chunks that begin at even rows, are as wide as they have to be, and hold all channels of a picture in colour."""
    rows, columns = pages.chunks[-2:]
    chunks = [*pages.chunks[:-2], _joined(rows, reach, 2 * stride), _joined(columns, reach, stride)]
    if colour:
        chunks[-3] = (3,)
    return pages.rechunk(tuple(chunks))


def _joined(chunks: tuple[int, ...], reach: int, multiple: int) -> tuple[int, ...]:
    """Chunks with some of the same boundaries, moved down to a multiple, far enough from each other and from the end."""
    length, least = sum(chunks), LEAST_RADII * reach
    boundaries = [0]
    for boundary in np.cumsum(chunks[:-1]).tolist():
        boundary -= boundary % multiple
        if boundary - boundaries[-1] >= least and length - boundary >= least:
            boundaries.append(boundary)
    return tuple(int(size) for size in np.diff([*boundaries, length]))


def _settled(blocks: da.Array, work: dict[str, Any]) -> da.Array:
    """What is settled of each page once its noise is known, from the rows that a whole page is estimated from."""
    bands = _proxlift.sample_rows(*blocks.shape[-2:])
    sample = da.concatenate([blocks[..., start:stop, :] for start, stop in bands], axis=-2)
    leading = blocks.ndim - (3 if work["colour"] else 2)
    sample = sample.rechunk((1,) * leading + sample.shape[leading:])
    one = ((1,),) * (blocks.ndim - leading)
    meta = np.empty((0,) * blocks.ndim, object)
    settled = da.map_blocks(
        _settle_page, sample, chunks=sample.chunks[:leading] + one, meta=meta, token="settle", **work
    )
    return settled.rechunk(blocks.chunks[:leading] + one)


def _settle_page(
    sample: NDArray[Any], *, model: str | Model, settings: dict[str, Any], colour: bool
) -> NDArray[np.object_]:
    _share_threads()
    pages = Pages.of(as_picture(sample), -3 if colour else None)
    settled = np.empty((1,) * sample.ndim, object)
    (settled.flat[0],) = _proxlift.Denoiser(native(model, pages.array.shape[1]), **settings).settle(pages.array)
    return settled


def _levels(given: da.Array, blocks: da.Array, channels: bool) -> tuple[da.Array, bool]:
    """Noise levels for blocks, one for each page or one for each pixel, and whether it is the latter."""
    if given.dtype.kind not in "fiub":
        raise TypeError(f"sigma has the type {given.dtype}: give a number, one for each image, or a map")
    leading, size = blocks.shape[: -3 if channels else -2], blocks.shape[-2:]
    is_map = given.size > 1 and given.shape != leading
    try:
        given = da.broadcast_to(given if is_map or given.size > 1 else given.reshape(()), leading + size * is_map)
    except ValueError:
        raise ValueError(
            f"sigma has the shape {given.shape}: give a number, an array of the shape {leading} with one for each "
            f"image, or a map of {size[0]} rows and {size[1]} columns"
        ) from None
    chunks = list(blocks.chunks)
    if not is_map:
        given = given[..., None, None]
        chunks[-2:] = [(1,), (1,)]
    if channels:
        given = given[..., None, :, :]
        chunks[-3] = (1,)
    return given.rechunk(tuple(chunks)), is_map


def _denoise_block(
    block: NDArray[Any],
    given: NDArray[Any] | None = None,
    varies: NDArray[np.bool_] | None = None,
    *,
    model: str | Model,
    settings: dict[str, Any],
    colour: bool,
    sigma: float | None = None,
) -> NDArray[Any]:
    """Denoise a block for the level `sigma`, or for what is `given`: what was settled of its pages, or their levels.

    Levels are a map if it is known whether they vary in each page.
    """
    _share_threads()
    picture = as_picture(block)
    pages = Pages.of(picture, -3 if colour else None)
    count, channels, *size = pages.array.shape
    denoiser = _proxlift.Denoiser(native(model, channels), **settings)

    def each(values: NDArray[Any], shape: list[int]) -> NDArray[Any]:
        """Values of the pages, one page after the other."""
        values = values[..., 0, :, :] if colour else values
        return np.broadcast_to(values, (*pages.leading, *shape)).reshape(count, *shape)

    def fill(output: NDArray[Any]) -> None:
        if given is None:
            denoiser.denoise(pages.array, output, sigma)
        elif varies is not None:
            maps, parts = each(given, size).astype(np.float32), each(varies, [1, 1])
            for i in range(count):
                one = slice(i, i + 1)
                denoiser.denoise(pages.array[one], output[one], maps[one], part=bool(parts[i, 0, 0]))
        elif given.dtype == object:
            for i, settled in enumerate(given.flat):
                denoiser.denoise(pages.array[i : i + 1], output[i : i + 1], settled=settled)
        else:
            denoiser.denoise(pages.array, output, each(given, [1, 1]).astype(float).reshape(-1).tolist())

    return pages.fill(picture.shape, result_type(block), fill)


def _share_threads() -> None:
    """Let a worker of a cluster, in a process of its own, compute with as many threads as it was given."""
    if "distributed" not in sys.modules or "RAYON_NUM_THREADS" in os.environ:
        return
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:
        return
    if worker.nanny and _proxlift.threads() != worker.state.nthreads:
        _proxlift.set_threads(worker.state.nthreads)
