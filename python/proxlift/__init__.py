"""A small, fast image denoiser for the CPU: unfolded proximal networks, run and trained.

>>> import numpy as np
>>> import proxlift
>>> rng = np.random.default_rng(0)
>>> clean = np.kron(rng.random((8, 8)), np.ones((12, 12)))
>>> noisy = clean + rng.normal(0, 0.1, clean.shape)
>>> result = proxlift.denoise(noisy)
>>> proxlift.psnr(clean, noisy, data_range=1) < 21 < 26 < proxlift.psnr(clean, result, data_range=1)
True

The noise level is estimated unless it is given. ``proxlift.torch``, ``proxlift.deepinv`` and ``proxlift.dask`` are for
those who have these packages; nothing but NumPy is needed for the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import energy, operators, prox, restoration, solver
    from ._denoise import denoise, denoise_tv
    from ._model import Model
    from ._noise import NoiseModel, Variance, estimate_noise, estimate_sigma
    from ._proxlift import __version__, set_threads, threads
    from ._scores import psnr, ssim
    from ._train import Training, train
    from .restoration import restore

# Loaded when they are first asked for: the import itself takes a few milliseconds, and does not load NumPy.
_PARTS = {
    "denoise": "_denoise",
    "denoise_tv": "_denoise",
    "Model": "_model",
    "NoiseModel": "_noise",
    "Variance": "_noise",
    "estimate_noise": "_noise",
    "estimate_sigma": "_noise",
    "__version__": "_proxlift",
    "set_threads": "_proxlift",
    "threads": "_proxlift",
    "psnr": "_scores",
    "ssim": "_scores",
    "Training": "_train",
    "train": "_train",
    "restore": "restoration",
}
_MODULES = ["energy", "operators", "prox", "restoration", "solver"]

__all__ = [
    "Model",
    "NoiseModel",
    "Training",
    "Variance",
    "denoise",
    "denoise_tv",
    "energy",
    "estimate_noise",
    "estimate_sigma",
    "operators",
    "prox",
    "psnr",
    "restoration",
    "restore",
    "set_threads",
    "solver",
    "ssim",
    "threads",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name not in _PARTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_PARTS[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
