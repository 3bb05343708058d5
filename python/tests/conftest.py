"""Pictures and networks that many tests use."""

from __future__ import annotations

import numpy as np
import pytest

import proxlift


def scene(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Rectangles of grey and a slope, in double precision, in [0, 1]."""
    rng = np.random.default_rng(seed)
    image = np.linspace(0.2, 0.6, width)[np.newaxis].repeat(height, 0)
    for _ in range(12):
        y, x = rng.integers(0, max(1, height - 2)), rng.integers(0, max(1, width - 2))
        h, w = rng.integers(2, max(3, height // 2)), rng.integers(2, max(3, width // 2))
        image[y : y + h, x : x + w] = rng.random()
    return image


def noisy(shape: tuple[int, ...], sigma: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A clean picture of any shape whose last axes are rows and columns, and a noisy one."""
    pages = [scene(*shape[-2:], seed + i) for i in range(int(np.prod(shape[:-2])))]
    clean = np.stack(pages).reshape(shape)
    return clean, clean + np.random.default_rng(seed + 99).normal(0, sigma, shape)


UNROLLINGS = ("dual-forward-backward", "inertial", "chambolle-pock", "chambolle-pock-accelerated")


def network(
    unrolling: str = "dual-forward-backward",
    *,
    channels: int = 1,
    bounded: bool = False,
    border: int = 0,
    pieces: int = 1,
    depth: int = 4,
    features: int = 5,
    kernel: int = 3,
    sigma: float = 0.1,
    seed: int = 0,
) -> proxlift.Model:
    """A small random network."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 0.4, (depth + 1, features, channels, kernel, kernel))
    theta -= theta.mean(axis=(-1, -2), keepdims=True)
    knots = np.sort(rng.uniform(0.02, 0.4, (depth - 1, features, pieces)), axis=-1)
    slopes = np.sort(rng.uniform(0, 1, (depth - 1, features, pieces + 1)), axis=-1)[..., ::-1]
    return proxlift.Model.from_arrays(
        theta,
        rng.uniform(0.05, 0.15, depth - 1),
        knots=knots,
        slopes=slopes,
        unrolling=unrolling,
        bounded=bounded,
        border=border,
        sigma=sigma,
    )


@pytest.fixture(scope="session")
def photograph() -> np.ndarray:
    """A grey photograph, uint8."""
    data = pytest.importorskip("skimage.data")
    return np.asarray(data.camera())[128:384, 128:384]


@pytest.fixture(scope="session")
def colours() -> np.ndarray:
    """A colour photograph, uint8."""
    data = pytest.importorskip("skimage.data")
    return np.asarray(data.astronaut())[:200, 100:300]
