"""Layers with a synthesis of their own are the same everywhere: arrays, PyTorch, ONNX, the energy, training."""

import numpy as np
import pytest
from conftest import same_in_pytorch_and_onnx

import proxlift
from proxlift.energy import LiftedEnergy

DEPTH, FEATURES, KERNEL, KNOTS = 4, 6, 3, 2


def untied(channels, stride=1, seed=4):
    """A network with random filters and learned activations."""
    generator = np.random.default_rng(seed)
    shape = (FEATURES, stride**2 * channels, KERNEL, KERNEL)
    theta = generator.normal(0, 0.25 / KERNEL, (DEPTH + 1, *shape))
    return proxlift.Model.from_arrays(
        theta,
        generator.uniform(0.4, 0.6, DEPTH - 1),
        knots=np.sort(generator.uniform(0.02, 0.3, (DEPTH - 1, FEATURES, KNOTS))),
        slopes=generator.uniform(0, 1, (DEPTH - 1, FEATURES, KNOTS + 1)),
        synthesis=theta[1:-1] + generator.normal(0, 0.1 / KERNEL, (DEPTH - 1, *shape)),
        unrolling="chambolle-pock-accelerated",
        border=4,
        sigma=0.1,
    )


def pictures(*shape, seed=0):
    return np.random.default_rng(seed).normal(0.5, 0.2, shape).astype(np.float32)


def test_what_a_model_says():
    model = untied(3)
    assert model.synthesis.shape == (DEPTH - 1, FEATURES, 3, KERNEL, KERNEL)
    activations = (DEPTH - 1) * FEATURES * (2 * KNOTS + 1)
    assert model.parameters == model.theta.size + model.synthesis.size + activations
    assert "synthesis of their own" in repr(model)
    assert proxlift.Model.from_bytes(model.to_bytes()) == model
    assert model.replace(border=2).synthesis.shape == model.synthesis.shape
    assert proxlift.Model.load("small").replace(synthesis=None).synthesis is None
    with pytest.raises(ValueError, match="synthesis"):
        model.replace(synthesis=model.synthesis[1:])
    with pytest.raises(ValueError, match="synthesis"):
        model.replace(synthesis=model.synthesis[0])


def test_the_adjoint_as_synthesis_changes_nothing():
    model = untied(1)
    tied, image = model.replace(synthesis=None), pictures(40, 31)
    same = model.replace(synthesis=model.theta[1:-1])
    np.testing.assert_array_equal(tied.denoise(image, 0.1), same.denoise(image, 0.1))
    assert not np.array_equal(tied.denoise(image, 0.1), model.denoise(image, 0.1))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("stride", [1, 2])
def test_pytorch_and_onnx(channels, stride, tmp_path):
    same_in_pytorch_and_onnx(untied(channels, stride), pictures(2, channels, 31, 20), tmp_path)


def test_gradients_of_the_energy_are_those_of_autograd():
    torch = pytest.importorskip("torch")
    from proxlift.torch import Network

    model = untied(1).replace(border=0, unrolling="dual-forward-backward")
    x = pictures(2, 1, 9, 8).astype(np.float64)
    z = x + np.random.default_rng(1).normal(0, 0.1, x.shape)
    energy = LiftedEnergy(model, z, x, mu=1e-4)
    assert energy.synthesis_gradients().shape == model.synthesis.shape
    # Anchored at the forward pass, only the loss has a gradient, and only in the last layer.
    assert abs(energy.synthesis_gradients()).max() < 1e-12 < abs(energy.theta_gradients()[DEPTH]).max()
    network = Network(model).double()
    (0.5 * (network(torch.tensor(z)) - torch.tensor(x)).square().sum()).backward()
    last = energy.theta_gradients()[DEPTH]
    np.testing.assert_allclose(network.theta.grad[DEPTH], 1e4 * last, rtol=1e-6, atol=1e-9)
    assert network.synthesis.grad.abs().max() > 0


def test_training():
    rng = np.random.default_rng(0)
    images = [rng.random((40, 40)) for _ in range(4)]
    settings = {"depth": 3, "features": 4, "knots": 2, "count": 8, "epochs": 1, "patch": 16, "sigma": 0.1}
    result = proxlift.train(images, own_synthesis=True, **settings)
    assert result.model.synthesis.shape == (2, 4, 1, 3, 3)
    assert not np.array_equal(result.model.synthesis, result.model.theta[1:-1])
