"""Arrays as users have them, and as the engine takes them: ``[picture][channel][row][column]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]

# In the byte order of the machine.
_DIRECT = frozenset(map(np.dtype, (np.uint8, np.uint16, np.float32, np.float64)))
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def as_picture(image: ArrayLike, name: str = "image") -> Array:
    """An array of a type that the engine reads: the same array wherever that is possible."""
    if isinstance(image, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array: fill it first, for instance with its median")
    array = np.asarray(image)
    kind = array.dtype.kind
    if array.dtype in _DIRECT:
        pass
    elif kind == "f":
        array = array.astype(np.float32 if array.dtype.itemsize <= 4 else np.float64)
    elif kind == "b":
        array = array.astype(np.float64)
    elif kind in "ui":
        array = _integers(array, name)
    else:
        raise TypeError(f"{name} has the type {array.dtype}: give an array of real numbers")
    if array.size == 0:
        raise ValueError(f"{name} has the shape {array.shape}: it is empty")
    return array


def _integers(array: Array, name: str) -> Array:
    """Integers that the engine does not read as they are, where the largest is white, as in scikit-image."""
    size = array.dtype.itemsize
    if array.dtype.kind == "u" and size <= 2:
        return array.astype(np.uint8 if size == 1 else np.uint16)
    if size > 4:
        raise TypeError(
            f"{name} has the type {array.dtype}, whose white is not known: divide it by its white, "
            "or convert it to uint16 or float32"
        )
    return array.astype(np.float64) / np.iinfo(array.dtype).max


def result_type(image: ArrayLike) -> np.dtype[Any]:
    """The type of a result: single precision for single or half precision, else double, as in scikit-image."""
    dtype = image.dtype if isinstance(image, np.ndarray) else np.asarray(image).dtype
    return _SINGLE if dtype.kind == "f" and dtype.itemsize <= 4 else _DOUBLE


class Pages(NamedTuple):
    """A view of an array as ``[picture][channel][row][column]``, and how to get back."""

    array: Array
    leading: tuple[int, ...]
    channel_axis: int | None
    joint: bool

    @classmethod
    def of(cls, array: Array, channel_axis: int | None, name: str = "image") -> Pages:
        """The pictures of an array. Three channels make a colour picture, any other number as many grey ones."""
        needed = 2 if channel_axis is None else 3
        if array.ndim < needed:
            shape = "rows and columns" if needed == 2 else "rows, columns and channels"
            raise ValueError(f"{name} has the shape {array.shape}, but it needs {shape}")
        if array.ndim == 2:
            return cls(array[np.newaxis, np.newaxis], (), None, True)
        if channel_axis is None:
            leading = array.shape[:-2]
            return cls(array.reshape((-1, 1, *array.shape[-2:])), leading, None, True)
        axis = _axis(channel_axis, array.ndim, name)
        moved = np.moveaxis(array, axis, -3)
        leading, joint = moved.shape[:-3], moved.shape[-3] == 3
        channels = 3 if joint else 1
        pages = _merged(moved, leading) if joint else _merged(moved, moved.shape[:-2])
        if not joint:
            pages = pages[:, np.newaxis]
        assert pages.shape[1] == channels
        return cls(pages, leading, axis, joint)

    @property
    def channels(self) -> int:
        """Grey pictures that a picture of the user is made of; one where its channels go together."""
        return 1 if self.joint else self.array.shape[0] // max(1, int(np.prod(self.leading)))

    def fill(self, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Callable[[Array], object]) -> Array:
        """An array of the user's shape with what `fill` writes to its pictures."""
        result = np.empty(shape, dtype)
        if result.ndim == 2:
            fill(result[np.newaxis, np.newaxis])
            return result
        pages = Pages.of(result, self.channel_axis).array
        if np.may_share_memory(result, pages):
            fill(pages)
            return result
        # The axes of the pictures do not follow each other in memory, so they were copied.
        fill(pages)
        rest = pages.shape[1:] if self.joint else pages.shape[2:]
        leading = self.leading if self.joint else (*self.leading, shape[self.channel_axis or 0])
        unmerged = pages.reshape((*leading, *rest))
        result[...] = unmerged if self.channel_axis is None else np.moveaxis(unmerged, -3, self.channel_axis)
        return result


def _merged(array: Array, leading: tuple[int, ...]) -> Array:
    """The leading axes as one; a view wherever that is possible, and for one picture it always is."""
    rest = array.shape[len(leading) :]
    if int(np.prod(leading)) == 1:
        return array[(0,) * len(leading)][np.newaxis] if leading else array[np.newaxis]
    return array.reshape((-1, *rest))


def _axis(channel_axis: int, ndim: int, name: str) -> int:
    if not -ndim <= channel_axis < ndim:
        raise ValueError(f"channel_axis is {channel_axis}, but {name} has {ndim} axes")
    return channel_axis % ndim


Sigma = float | list[float] | NDArray[np.float32] | None


def levels(sigma: ArrayLike | None, pages: Pages) -> Sigma:
    """Noise levels as the engine takes them: a number, one for each picture, or a map ``[picture][row][column]``."""
    if sigma is None:
        return None
    if isinstance(sigma, (int, float)):
        return float(sigma)
    given = np.asarray(sigma)
    if given.dtype.kind not in "fiub":
        raise TypeError(f"sigma has the type {given.dtype}: give a number, one for each image, or a map")
    if given.size == 1:
        return float(given.reshape(()))
    size, each = pages.array.shape[-2:], pages.channels
    if given.shape == pages.leading:
        return [float(level) for level in given.reshape(-1) for _ in range(each)]
    try:
        given = np.broadcast_to(given.astype(np.float32), (*pages.leading, *size))
    except ValueError:
        raise ValueError(
            f"sigma has the shape {given.shape}: give a number, an array of the shape {pages.leading} with one for "
            f"each image, or a map of {size[0]} rows and {size[1]} columns"
        ) from None
    maps = given.reshape((-1, *size))
    return maps if each == 1 else np.repeat(maps, each, axis=0)
