"""Pictures and networks that many tests use."""

from __future__ import annotations

from pathlib import Path

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


UNROLLINGS = (
    "dual-forward-backward",
    "inertial",
    "chambolle-pock",
    "chambolle-pock-accelerated",
    "averaged-dual-forward-backward",
)


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


def same_in_pytorch_and_onnx(model: proxlift.Model, images: np.ndarray, folder: Path) -> None:
    """Two pictures come out the same, and with the same gradients, of the engine, the module and ONNX Runtime."""
    torch = pytest.importorskip("torch")
    from proxlift.torch import Network, denoise

    sigma = np.array([0.08, 0.2], np.float32)
    ours = model.denoise(images, sigma, channel_axis=1, clip=False)
    assert ours.shape == images.shape and not np.array_equal(ours, images)

    tensors, gradients = torch.tensor(images), []
    for run in (lambda z: Network(model)(z, torch.tensor(sigma)), lambda z: denoise(z, torch.tensor(sigma), model)):
        z = tensors.clone().requires_grad_()
        theirs = run(z)
        np.testing.assert_allclose(theirs.detach(), ours, rtol=0, atol=1e-5)
        (theirs * tensors).sum().backward()
        gradients.append(z.grad)
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=0, atol=1e-4)
    assert Network(model).to_model() == model

    onnxruntime = pytest.importorskip("onnxruntime")
    model.to_onnx(path := str(folder / "model.onnx"))
    (theirs,) = onnxruntime.InferenceSession(path).run(None, {"image": images, "sigma": sigma})
    np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-5)


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
