"""Training networks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _proxlift
from ._arrays import as_picture
from ._model import Model

Images = Iterable[ArrayLike] | str | os.PathLike[str]
Callback = Callable[[dict[str, Any], Model], bool | None]


@dataclass(frozen=True)
class Training:
    """What came of a training.

    Attributes
    ----------
    model : Model
        The best on held-out images.
    last : Model
        That of the last epoch.
    history : list of dict
        For each epoch its ``epoch``, ``loss`` (half the squared error of a patch), ``energy`` and ``blocks`` (of the lifted
        energy, where the trainer has one), ``seconds``, and ``psnr`` and ``ssim`` on held-out images; ``test_psnr`` and
        ``test_ssim`` where there are test images.
    settings : dict
        All settings, also those that were not given: `train` with them repeats the training.
    stopped : bool
        Whether the callback stopped it.
    """

    model: Model
    last: Model
    history: list[dict[str, Any]]
    settings: dict[str, Any]
    stopped: bool

    def __repr__(self) -> str:
        last = self.history[-1] if self.history else {}
        psnr = max((entry["psnr"] for entry in self.history if entry.get("psnr")), default=float("nan"))
        return f"<proxlift.Training: {last.get('epoch', 0)} epochs, {psnr:.2f} dB on held-out images>"


def train(
    images: Images | None = None,
    *,
    noisy: Images | None = None,
    test: Images | None = None,
    out: str | os.PathLike[str] | None = None,
    callback: Callback | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Training:
    """Train a network to remove noise.

    Parameters
    ----------
    images : iterable of array_like, array_like, path or None
        Clean images, each (rows, columns) or (rows, columns, 3), as integers or floats where white is 1; or a folder of
        pictures. Without it, 1000 built-in pictures, unless `noisy` is given.
    noisy : the same
        Noisy versions of `images`, in the same order (which may be noisy in another way: Noise2Noise); or, without
        `images`, noisy images alone.
    test : the same
        Clean images that are scored every ``test_every`` epochs and at the end.
    out : path, optional
        A folder for checkpoints, models and history. If it holds a checkpoint of the same training, that goes on from
        there, to the same bits as if it had never been stopped.
    callback : callable, optional
        Called after each epoch with its record and the model as it is; the training stops if it returns True.
    progress : bool, optional
        Whether a progress bar is shown; by default it is if ``tqdm`` is installed.
    **settings
        All that ``proxlift train --help`` lists, with underscores: ``depth``, ``features``, ``epochs``, ``sigma``,
        ``preset``, ``trainer``, ``rate``, ``knots``, ... `proxlift.train.settings()` tells what each means.

    Returns
    -------
    Training

    Raises
    ------
    ValueError
        If a setting is out of range, contradicts another one or would do nothing.
    RuntimeError
        If the training diverges.

    Examples
    --------
    >>> import proxlift
    >>> small = dict(depth=3, features=4, epochs=2, count=40, progress=False)
    >>> training = proxlift.train(**small)
    >>> [entry["epoch"] for entry in training.history], training.model.depth
    ([1, 2], 3)
    >>> again = proxlift.train(**small, callback=lambda record, model: record["epoch"] == 1)
    >>> again.stopped, again.history[0]["loss"] == training.history[0]["loss"]
    (True, True)
    """
    given = {name.replace("_", "-"): _plain(value) for name, value in settings.items() if value is not None}
    known = {name.replace("_", "-") for name, *_ in _proxlift.settings()}
    for name in given.keys() - known:
        raise TypeError(f"train() got an unexpected setting {name.replace('-', '_')!r}")
    arrays = {name: _arrays(source, name, given) for name, source in (("data", images), ("noisy", noisy), ("test", test))}
    if "channels" not in given and "from" not in given:
        if any(image.shape[0] == 3 for part in arrays.values() if part for image in part):
            given["channels"] = 3
    bar = _bar(progress)

    def hear(event: str, told: str, now: _proxlift.Model | None) -> bool:
        record = json.loads(told)
        if event == "batch":
            bar(record)
            return True
        return not (callback is not None and now is not None and callback(record, Model._of(now)))

    try:
        best, last, history, complete, stopped = _proxlift.train(
            arrays["data"], arrays["noisy"], arrays["test"], json.dumps(given), out, hear
        )
    finally:
        bar(None)
    names = json.loads(complete)
    return Training(
        model=Model._of(best),
        last=Model._of(last),
        history=json.loads(history),
        settings={name.replace("-", "_"): value for name, value in names.items()},
        stopped=stopped,
    )


def settings() -> dict[str, str]:
    """What each setting of `train` means, by its name."""
    return {name: f"{group}: {kind}. {text}." for name, group, kind, text in _proxlift.settings()}


train.settings = settings  # type: ignore[attr-defined]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, tuple):
        return list(value)
    return value


def _arrays(source: Images | None, name: str, given: dict[str, Any]) -> list[NDArray[np.float32]] | None:
    """Images in memory; a folder becomes a setting."""
    if isinstance(source, (str, os.PathLike)):
        given[name] = os.fspath(source)
        return None
    return None if source is None else [_image(image, name) for image in source]


def _image(image: ArrayLike, name: str) -> NDArray[np.float32]:
    array = as_picture(image, f"an image of {name}")
    if array.ndim == 2:
        array = array[np.newaxis]
    elif array.ndim == 3 and array.shape[-1] in (1, 3):
        array = np.moveaxis(array, -1, 0)
    else:
        raise ValueError(f"an image of {name} has the shape {array.shape}: give (rows, columns) or (rows, columns, 3)")
    scale = np.iinfo(array.dtype).max if array.dtype.kind == "u" else 1
    return np.ascontiguousarray(array.astype(np.float32) / np.float32(scale))


def _bar(progress: bool | None) -> Callable[[dict[str, Any] | None], None]:
    """What is told how far a training is, and at last nothing."""
    if progress is False:
        return lambda _record: None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if progress:
            raise ImportError("progress needs tqdm: pip install tqdm") from None
        return lambda _record: None
    bars: list[Any] = []

    def show(record: dict[str, Any] | None) -> None:
        if record is None:
            for bar in bars:
                bar.close()
            return
        if not bars:
            bars.append(tqdm(total=record["all"], unit="patch", unit_scale=True))
        bars[0].set_description(f"epoch {record['epoch']}, loss {record['loss']:.4f}", refresh=False)
        bars[0].update(record["done"] - bars[0].n)

    return show
