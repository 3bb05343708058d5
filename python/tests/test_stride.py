"""Networks of stride 2 are the same everywhere: arrays, PyTorch, ONNX, Dask, the energy."""

import numpy as np
import pytest
from conftest import same_in_pytorch_and_onnx

import proxlift
from proxlift.energy import LiftedEnergy

DEPTH, FEATURES, KERNEL, KNOTS = 4, 6, 3, 2
SIZES = [(32, 20), (31, 37), (1, 1), (5, 4)]


def strided(channels, seed=3):
    """A network with random filters and learned activations, for grey pictures or for colour."""
    generator = np.random.default_rng(seed)
    theta = generator.normal(0, 0.25 / KERNEL, (DEPTH + 1, FEATURES, 4 * channels, KERNEL, KERNEL))
    return proxlift.Model.from_arrays(
        theta,
        generator.uniform(0.4, 0.6, DEPTH - 1),
        knots=np.sort(generator.uniform(0.02, 0.3, (DEPTH - 1, FEATURES, KNOTS))),
        slopes=generator.uniform(0, 1, (DEPTH - 1, FEATURES, KNOTS + 1)),
        unrolling="chambolle-pock-accelerated",
        border=4,
        sigma=0.1,
    )


def pictures(*shape, seed=0):
    return np.random.default_rng(seed).normal(0.5, 0.2, shape).astype(np.float32)


def test_what_a_model_says():
    model = strided(3)
    assert (model.stride, model.channels, model.kernel) == (2, 3, KERNEL)
    assert model.receptive_radius == 2 * 2 * DEPTH * (KERNEL // 2) + 1
    assert "stride 2" in repr(model)
    assert proxlift.Model.from_bytes(model.to_bytes()) == model
    assert proxlift.Model.load("best").stride == 1
    with pytest.raises(ValueError, match="even"):
        model.replace(border=3)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", SIZES)
def test_pytorch_and_onnx(channels, size, tmp_path):
    same_in_pytorch_and_onnx(strided(channels), pictures(2, channels, *size), tmp_path)


@pytest.mark.parametrize("first", range(90, 97))
def test_blocks_of_a_lazy_array(first):
    da = pytest.importorskip("dask.array")
    lazy = pytest.importorskip("proxlift.dask")
    model, noisy = strided(1), pictures(201, 203)
    blocks = da.from_array(noisy, chunks=((first, 201 - first), (first + 3, 200 - first)))
    result = lazy.denoise(blocks, 0.1, model=model).compute()
    np.testing.assert_array_equal(result, proxlift.denoise(noisy, 0.1, model=model))


def test_the_energy():
    model = strided(3)
    x = pictures(2, 3, 12, 10).astype(np.float64)
    z = x + np.random.default_rng(1).normal(0, 0.1, x.shape)
    energy = LiftedEnergy(model, z, x, mu=0.7)
    assert energy.penalties.max() < 1e-12 * energy.value
    assert [u.shape for u in energy.u] == [(2, FEATURES, 6, 5)] * DEPTH
    assert energy.estimate.shape == x.shape
    inside = (energy.estimate - x)[..., 4:-4, 4:-4]
    assert np.isclose(energy.value, 0.35 * np.sum(inside**2), rtol=1e-12)
    step = 1e-6
    moved = [LiftedEnergy(model.replace(theta=model.theta), z, x, mu=0.7) for _ in range(2)]
    for sign, other in zip((1, -1), moved, strict=True):
        theta = model.theta.astype(np.float64)
        theta[DEPTH, 1, 7, 0, 2] += sign * step
        other.theta = theta
    slope = (moved[0].value - moved[1].value) / (2 * step)
    assert np.isclose(slope, energy.theta_gradients()[DEPTH, 1, 7, 0, 2], rtol=1e-5, atol=1e-8)
    with pytest.raises(ValueError, match="even sides"):
        LiftedEnergy(model, z[..., 1:], x[..., 1:])
    with pytest.raises(ValueError, match="channels"):
        LiftedEnergy(model, z[:, :2], x[:, :2])
