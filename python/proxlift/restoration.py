"""Inverse problems: deblur, fill in, enlarge, demosaic, or undo any linear operator.

>>> import numpy as np
>>> import proxlift
>>> rng = np.random.default_rng(0)
>>> x = np.kron(rng.uniform(size=(4, 4)), np.ones((8, 8)))
>>> missing = rng.uniform(size=x.shape) < 0.5
>>> found = proxlift.restore(np.where(missing, np.nan, x), inpaint=missing, prior="small")
>>> bool(np.abs(found.x - x).mean() < 0.02), found.iterations
(True, 40)

An operator of your own needs ``apply`` and ``adjoint``:

>>> class Darker:
...     def apply(self, x): return 0.5 * x
...     def adjoint(self, y): return 0.5 * y
>>> found = proxlift.restore(0.5 * x, Darker(), sigma=0.01, prior="tv")
>>> bool(np.abs(found.x - x).mean() < 0.05), bool(found.gap < 5e-3 * found.objective)
(True, True)
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _proxlift
from ._arrays import Pages, as_picture, levels, result_type
from ._denoise import check_model_name, native
from ._model import Model

__all__ = ["Restored", "restore"]

Floats = NDArray[np.float64]
Map = Callable[[Any], NDArray[Any]]
Hear = Callable[[int, int, float], object]
_Found = tuple[float, list[float], float | None, float | None, int, bool]


@dataclass(frozen=True)
class Restored:
    """A restored image.

    For a stack, ``objective`` and ``gap`` are sums over the images, ``iterations`` and ``residuals`` those of the image
    that took most, and ``settled`` says whether all are.

    Attributes
    ----------
    x : ndarray
        The estimate.
    residuals : list of float
        How far iterations moved it, relative to its norm: each of plug-and-play, the last of every few else.
    settled : bool
        Whether the tolerance was reached; of plug-and-play, whether the last iterations moved it less and less.
    sigma : float or ndarray
        The noise level that it was restored for; an array with one for each image of a stack.
    iterations : int
        How many there were.
    objective : float or None
        What was minimised, where that is a function.
    gap : float or None
        How much lower it may be for any other image, which is proven; for convex priors.
    """

    x: NDArray[Any]
    residuals: list[float]
    settled: bool
    sigma: float | Floats
    iterations: int
    objective: float | None
    gap: float | None


def restore(
    y: ArrayLike,
    operator: Any = None,
    sigma: ArrayLike | None = None,
    *,
    blur: str | os.PathLike[str] | ArrayLike | None = None,
    inpaint: ArrayLike | None = None,
    upscale: int | None = None,
    demosaic: str | None = None,
    prior: str | os.PathLike[str] | Model = "best",
    strength: float = 1.0,
    weight: float | None = None,
    border: str = "unknown",
    likelihood: str = "gaussian",
    gain: float | None = None,
    tolerance: float = 5e-3,
    iterations: int = 2000,
    channel_axis: int | None = None,
    clip: bool | None = None,
    progress: bool = False,
    start: ArrayLike | None = None,
    shape: tuple[int, ...] | None = None,
    steps: int | None = None,
    first: float | None = None,
    last: float | None = None,
    remembers: bool | None = None,
) -> Restored:
    """Estimate an image ``x`` from what was seen of it, ``y = A x`` with noise.

    Say what was done to the image: `blur`, `inpaint`, `upscale` (also with `blur`), `demosaic`, or an `operator` of your own.

    Parameters
    ----------
    y : array_like
        What was seen. With an operator, of whatever shape that gives; else as for `proxlift.denoise`, with white at 1:
        rows and columns last, channels where `channel_axis` says, all other axes a stack.
    operator : optional
        ``A``: anything with ``apply`` and ``adjoint``; a ``LinearOperator`` of SciPy or pylops (``matvec``, ``rmatvec`` on
        flat arrays); or a physics of deepinv (``A``, ``A_adjoint``). Images are (rows, columns) or (channels, rows, columns).
    sigma : float or array_like, optional
        The level of the noise, or one for each image. Estimated if it is not given; with gaps, which hide it, none is assumed.
        With an operator it has to be given, on the scale of `y`.
    blur : str, path or array_like, optional
        It was blurred: ``"gaussian:1.6"``, ``"box:9"``, ``"motion:15,30"``, a file (PNG, TIFF, .npy), or the kernel itself.
    inpaint : array_like of bool, (rows, columns), optional
        Pixels are missing: True where they are, as in scikit-image. What `y` has there does not matter.
    upscale : {2, 3, 4}, optional
        It is too small by this factor; by cubic interpolation unless `blur` is given.
    demosaic : {"rggb", "bggr", "grbg", "gbrg"}, optional
        It is the mosaic of a camera, with one colour at each pixel. Without `channel_axis`, `y` is grey and the colours of the
        result are its last axis; with it, the other two colours at each pixel are ignored.
    prior : str, path or Model
        What images are like: ``"best"``, ``"small"``, a model file or a `Model` (plug-and-play with that denoiser); a convex
        function, for which the optimum is found, ``"convex"``, ``"convex:FILE"`` or ``"tv"`` (total variation); or
        ``"weakly-convex"``.
    strength : float
        The prior as if for noise so many times as strong: smoother above 1, nearer to the data below.
    weight : float, optional
        How many times a convex prior counts; follows from what was done to the image. With an operator and a denoiser, the
        weight of the schedule, 0.23.
    border : {"unknown", "mirrored", "circular"}
        What is beyond the edges of a blurred image.
    likelihood : {"gaussian", "poisson"}
        The noise; counts need their `gain`, what one count adds, in place of `sigma`.
    gain : float, optional
        That of counts.
    tolerance : float
        The gap to stop at, as a share of the objective; for priors that are functions.
    iterations : int
        The most that are done for such priors.
    channel_axis : int, optional
        The axis of the channels; three are restored together as colours, any other number one by one.
    clip : bool, optional
        Whether the result is clipped to [0, 1]; by default that of integers is.
    progress : bool
        Whether a progress bar is shown, for which ``tqdm`` is needed.
    start : array_like, optional
        With an operator: the image to begin with, else ``A* y``.
    shape : tuple of int, optional
        With an operator on flat arrays and without `start`: the shape of the image.
    steps, first, last, remembers : int, float, float, bool, optional
        With an operator and a denoiser, the schedule: 8 iterations, at noise levels from 49 / 255 to `sigma`, half-quadratic
        splitting. Where pixels were not seen, ``steps=40, last=4 / 255, remembers=True`` (the method of multipliers) is better.

    Returns
    -------
    Restored

    Examples
    --------
    >>> import numpy as np, proxlift
    >>> rng = np.random.default_rng(0)
    >>> clean = np.kron(rng.random((6, 6)), np.ones((8, 8)))
    >>> box = np.fft.rfft2(np.pad(np.full((3, 3), 1 / 9), ((0, 45), (0, 45))))
    >>> blurred = np.roll(np.fft.irfft2(np.fft.rfft2(clean) * box), (-1, -1), (0, 1)) + rng.normal(0, 0.01, clean.shape)
    >>> found = proxlift.restore(blurred, blur=np.ones((3, 3)), border="circular", prior="convex")
    >>> proxlift.psnr(clean, found.x, data_range=1) > proxlift.psnr(clean, blurred, data_range=1) + 3
    True
    >>> bool(found.gap <= 5e-3 * found.objective), found.settled
    (True, True)

    >>> proxlift.restore(clean, upscale=2, sigma=0.01, prior="small").x.shape
    (96, 96)
    """
    done = {"operator": operator, "blur": blur, "inpaint": inpaint, "upscale": upscale, "demosaic": demosaic}
    given = [name for name, value in done.items() if value is not None]
    if len(given) != 1 and given != ["blur", "upscale"]:
        said = " and ".join(given) if given else "nothing"
        raise ValueError(f"say what was done to the image: an operator, blur, inpaint, upscale or demosaic, not {said}")
    if likelihood not in ("gaussian", "poisson"):
        raise ValueError(f"likelihood is {likelihood!r}, but it must be gaussian or poisson")
    if (likelihood == "poisson") != (gain is not None):
        raise ValueError("counts need likelihood='poisson' and their gain: what one count adds, where white is 1")
    if likelihood == "poisson" and sigma is not None:
        raise ValueError("sigma is for Gaussian noise: counts have their gain instead")
    if not tolerance >= 0 or iterations < 1:
        raise ValueError("give a tolerance that is not negative, and at least one iteration")
    settings: dict[str, Any] = {"border": border, "gain": gain, "strength": strength, "tolerance": tolerance}
    settings["iterations"] = iterations
    schedule = {"steps": steps, "first": first, "last": last, "remembers": remembers}
    with _Bar(progress) as hear:
        if operator is not None:
            if channel_axis is not None:
                raise ValueError("channel_axis is for images: those of an operator are (channels, rows, columns)")
            restored = _through(y, operator, sigma, prior, settings, weight, (start, shape), schedule, hear)
        else:
            for name, value in {"start": start, "shape": shape, **schedule}.items():
                if value is not None:
                    raise ValueError(f"{name} is for an operator of your own")
            restored = _images(y, done, sigma, prior, {**settings, "weight": weight}, channel_axis, hear)
    if clip or (clip is None and operator is None and np.asarray(y).dtype.kind in "ui"):
        np.clip(restored.x, 0, 1, out=restored.x)
    if not restored.settled:
        if restored.objective is None:
            warnings.warn("the last iterations did not move the estimate less and less", stacklevel=2)
        else:
            warnings.warn(f"the tolerance was not reached in {restored.iterations} iterations", stacklevel=2)
    return restored


def _images(
    y: ArrayLike,
    done: dict[str, Any],
    sigma: ArrayLike | None,
    prior: str | os.PathLike[str] | Model,
    settings: dict[str, Any],
    channel_axis: int | None,
    hear: Hear | None,
) -> Restored:
    """With a degradation of the library."""
    picture = as_picture(y, "y")
    if done["demosaic"] is not None:
        if channel_axis is None:
            picture, channel_axis = np.broadcast_to(picture[..., np.newaxis], (*picture.shape, 3)), -1
        elif not -picture.ndim <= channel_axis < picture.ndim or picture.shape[channel_axis] != 3:
            raise ValueError(f"y has the shape {picture.shape}, but a mosaic is grey or has three channels")
    pages = Pages.of(picture, channel_axis, "y")
    array, (rows, columns) = pages.array, pages.array.shape[-2:]
    missing = None if done["inpaint"] is None else _mask(done["inpaint"], (rows, columns))
    if missing is not None:
        array = np.where(missing, np.zeros((), array.dtype), array)
    factor = 1 if done["upscale"] is None else done["upscale"]
    if done["upscale"] is not None and factor not in (2, 3, 4):
        raise ValueError(f"upscale is {factor}, but it must be 2, 3 or 4")
    restorer = _proxlift.Restorer(_prior(prior, array.shape[1]), **settings)
    axes = [axis for axis in range(picture.ndim) if axis != pages.channel_axis][-2:]
    shape = [size * factor if axis in axes else size for axis, size in enumerate(picture.shape)]
    found: list[_Found] = []

    def fill(output: NDArray[Any]) -> None:
        found.extend(
            restorer.restore(
                array,
                output,
                blur=_kernel(done["blur"]),
                missing=missing,
                upscale=done["upscale"],
                demosaic=done["demosaic"],
                sigma=_levels(sigma, pages),
                hear=hear,
            )
        )

    return _together(pages.fill(tuple(shape), result_type(y), fill), found, pages)


def _through(
    y: ArrayLike,
    operator: Any,
    sigma: ArrayLike | None,
    prior: str | os.PathLike[str] | Model,
    settings: dict[str, Any],
    weight: float | None,
    image: tuple[ArrayLike | None, tuple[int, ...] | None],
    schedule: dict[str, Any],
    hear: Hear | None,
) -> Restored:
    """With an operator of the caller."""
    level = None if sigma is None else float(np.asarray(sigma, np.float64).reshape(()))
    if settings["gain"] is None and (level is None or not (np.isfinite(level) and level > 0)):
        raise ValueError(f"sigma is {level}, but an operator needs the noise level of y, above 0")
    y = np.asarray(y, np.float64)
    if not np.isfinite(y).all():
        raise ValueError("y holds values that are not finite: replace them first")
    start, shape = image
    if start is not None:
        start = np.asarray(start, np.float64)
        shape = start.shape
    apply, adjoint = _maps(operator, shape, y.shape)
    if shape is None:
        shape = adjoint(y).shape
    if len(shape) not in (2, 3):
        raise ValueError(f"the images of the operator have the shape {shape}: give shape=(rows, columns)")
    planes: tuple[int, int, int] = (shape[-3] if len(shape) == 3 else 1, shape[-2], shape[-1])
    name = _prior(prior, planes[0])
    numbers = None
    if _is_function(name):
        settings = {**settings, "weight": weight}
        for given, value in schedule.items():
            if value is not None:
                raise ValueError(f"{given} is for denoisers, but the prior is {name}")
    elif weight is not None or any(value is not None for value in schedule.values()):
        if level is None and schedule["last"] is None:
            raise ValueError("a schedule for counts needs its last level: give last")
        usual = {"steps": 8, "first": 49 / 255, "last": settings["strength"] * (level or 0.0), "remembers": False}
        of = {given: usual[given] if value is None else value for given, value in schedule.items()}
        weight = 0.23 if weight is None else weight
        numbers = (max(of["steps"], 0), float(of["first"]), float(of["last"]), float(weight), bool(of["remembers"]))
    x, found = _proxlift.Restorer(name, **settings).restore_data(
        np.ascontiguousarray(y, np.float32).reshape(-1),
        lambda x: _flat(apply(x.reshape(shape))),
        lambda v: _flat(adjoint(v.reshape(y.shape))),
        planes,
        start=None if start is None else np.ascontiguousarray(start, np.float32).reshape(planes),
        sigma=level,
        schedule=numbers,
        hear=hear,
    )
    return _together(x.reshape(shape).astype(np.float64), [found], None)


def _flat(array: ArrayLike) -> Floats:
    return np.ascontiguousarray(array, np.float64).reshape(-1)


def _together(x: NDArray[Any], found: list[_Found], pages: Pages | None) -> Restored:
    """The result, and what is known of all its pictures."""
    sigmas, residuals, objectives, gaps, iterations, settled = zip(*found)
    sigma: float | Floats = float(sigmas[0])
    if pages is not None and len(found) > 1:
        sigma = np.array(sigmas).reshape((*pages.leading, *(() if pages.joint else (-1,))))
    most = int(np.argmax(iterations))
    return Restored(x, residuals[most], all(settled), sigma, iterations[most], _sum(objectives), _sum(gaps))


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _is_function(name: str | _proxlift.Model) -> bool:
    return isinstance(name, str) and (name in ("tv", "convex", "weakly-convex") or name.startswith("convex:"))


def _prior(prior: str | os.PathLike[str] | Model, channels: int) -> str | _proxlift.Model:
    """As the compiled module takes it."""
    if not isinstance(prior, str) or not _is_function(prior):
        return native(prior, channels)
    if prior.startswith("convex:"):
        check_model_name(prior.removeprefix("convex:"))
    return prior


def _kernel(blur: Any) -> str | Floats | None:
    if blur is None or isinstance(blur, (str, os.PathLike)):
        return blur if blur is None else os.fspath(blur)
    kernel = np.ascontiguousarray(blur, np.float64)
    if kernel.ndim != 2:
        raise ValueError(f"the kernel has the shape {kernel.shape}, but it must be (rows, columns)")
    return kernel


def _mask(mask: ArrayLike, size: tuple[int, int]) -> NDArray[np.bool_]:
    mask = np.asarray(mask)
    if mask.dtype.kind not in "bui":
        raise TypeError(f"inpaint has the type {mask.dtype}: give an array of bool, True where pixels are missing")
    if mask.shape != size:
        raise ValueError(f"inpaint has the shape {mask.shape}, but the image has {size[0]} rows and {size[1]} columns")
    return np.ascontiguousarray(mask != 0)


def _levels(sigma: ArrayLike | None, pages: Pages) -> list[float] | None:
    found = levels(sigma, pages)
    if isinstance(found, np.ndarray):
        raise ValueError("sigma is a map: give a number, or one for each image")
    return [found] * pages.array.shape[0] if isinstance(found, float) else found


class _Bar:
    """A progress bar, and who is told how far it is."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._bar: Any = None

    def __enter__(self) -> Hear | None:
        if not self._shown:
            return None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            raise ImportError("progress needs tqdm: pip install tqdm") from None

        def hear(done: int, of: int, residual: float) -> None:
            if self._bar is None:
                self._bar = tqdm(total=of, unit="iteration")
            self._bar.set_description(f"residual {residual:.1e}", refresh=False)
            self._bar.update(done - self._bar.n)

        return hear

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _maps(operator: Any, shape: tuple[int, ...] | None, seen: tuple[int, ...]) -> tuple[Map, Map]:
    """``A`` and ``A*`` on arrays of their own shapes."""
    if hasattr(operator, "apply") and hasattr(operator, "adjoint"):
        return lambda x: np.asarray(operator.apply(x), np.float64), lambda y: np.asarray(operator.adjoint(y), np.float64)
    if hasattr(operator, "A") and hasattr(operator, "A_adjoint"):
        return _of_physics(operator.A), _of_physics(operator.A_adjoint)
    if hasattr(operator, "matvec") and hasattr(operator, "rmatvec"):
        if shape is None:
            raise ValueError("the operator takes flat arrays: give the shape of the image")
        return (
            lambda x: np.asarray(operator.matvec(x.reshape(-1)), np.float64).reshape(seen),
            lambda y: np.asarray(operator.rmatvec(y.reshape(-1)), np.float64).reshape(shape),
        )
    raise TypeError("the operator has neither apply and adjoint, nor matvec and rmatvec, nor A and A_adjoint")


def _of_physics(f: Callable[[Any], Any]) -> Map:
    import torch

    def on_arrays(x: Floats) -> Floats:
        # deepinv takes batches of images with channels.
        planes = x.reshape((1,) * (4 - x.ndim) + x.shape)
        with torch.no_grad():
            image = f(torch.from_numpy(planes).float())
        result: Floats = image[0].double().cpu().numpy()
        return result.reshape(image.shape[1:] if x.ndim == 3 else image.shape[-2:])

    return on_arrays
