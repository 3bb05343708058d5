"""The checks to which deepinv holds its own denoisers (deepinv/tests/test_models.py), and its methods with ours."""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
dinv = pytest.importorskip("deepinv")
skimage_data = pytest.importorskip("skimage.data")

import proxlift
from proxlift.deepinv import Denoiser

DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()


@pytest.fixture(params=["engine", "torch"])
def backend(request):
    return request.param


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture
def photographs():
    """Three of 64x64 pixels."""
    crops = [skimage_data.astronaut()[80:144, 180:244], skimage_data.coffee()[100:164, 250:314],
             skimage_data.chelsea()[80:144, 120:184]]  # fmt: skip
    return torch.from_numpy(np.stack(crops)).permute(0, 3, 1, 2).float() / 255


def psnr(estimate, clean):
    return -10 * torch.log10((estimate - clean).square().mean((1, 2, 3)))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_shapes(channels, batch, backend, device):
    model = Denoiser("small", backend=backend, device=device).eval()
    physics = dinv.physics.Denoising(dinv.physics.GaussianNoise(0.2))
    x = torch.ones((batch, channels, 37, 31), device=device)
    estimate = model(physics(x), 0.2)
    assert isinstance(model, dinv.models.Denoiser)
    assert estimate.shape == x.shape
    assert estimate.device == x.device


@pytest.mark.parametrize("size", [31, 32, 37, 40, 65])
@pytest.mark.parametrize("channels", [1, 3])
@torch.no_grad()
def test_sigma_in_every_form(channels, size, backend, device):
    model = Denoiser("small", backend=backend, device=device).eval()
    y = torch.rand((3, channels, size, size), generator=torch.Generator().manual_seed(0)).to(device)
    expected = model(y, 0.2)
    for sigma in (
        torch.tensor(0.2), [0.2], [0.2, 0.2, 0.2], torch.tensor([0.2]), torch.tensor([[0.2]]), torch.full((3,), 0.2),
        torch.full((3, 1, 1, 1), 0.2), torch.full((3, 1, size, size), 0.2), np.full(3, 0.2),
    ):  # fmt: skip
        moved = sigma.to(device) if isinstance(sigma, torch.Tensor) else sigma
        assert torch.allclose(model(y, moved), expected, atol=1e-6)
    assert model(y, 1).shape == y.shape
    assert model(y).shape == y.shape
    # Whether other images are in the batch does not matter.
    each = torch.tensor([0.1, 0.2, 0.3], device=device)
    alone = torch.cat([model(y[i : i + 1], float(each[i])) for i in range(3)])
    assert torch.allclose(model(y, each), alone, atol=1e-6)


def test_sigma_as_a_parameter(backend, device):
    model = Denoiser("small", backend=backend, device=device)
    sigma = torch.nn.Parameter(torch.tensor(0.2, device=device))
    y = torch.rand(3, 1, 31, 31, device=device)
    model(y, sigma).pow(2).mean().backward()
    with torch.no_grad():
        slope = (model(y, 0.202).pow(2).mean() - model(y, 0.198).pow(2).mean()) / 0.004
    assert torch.allclose(sigma.grad, slope, rtol=0.05)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_floating_point_types(dtype, backend):
    y = torch.rand(1, 3, 31, 37)
    model = Denoiser("small", backend=backend)
    estimate = model(y.to(dtype), 0.1)
    assert estimate.dtype == dtype
    assert torch.allclose(estimate.float(), model(y, 0.1), atol=1e-6 if dtype.itemsize > 2 else 2e-2)


def test_gradients_in_the_images(backend):
    y = torch.rand(2, 3, 31, 37, requires_grad=True)
    Denoiser("small", backend=backend)(y, [0.1, 0.2]).square().sum().backward()
    exact = torch.autograd.grad(
        proxlift.torch.Network.load("small", channels=3)(y, torch.tensor([0.1, 0.2])).square().sum(), y
    )
    assert (y.grad - exact[0]).norm() < 1e-3 * exact[0].norm()


def test_quality(backend, photographs):
    """As much as deepinv asks of its own trained denoisers, less what DRUNet of 32 million weights is ahead."""
    clean, sigma = photographs, torch.tensor([0.05, 0.1, 0.2])
    noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(123))
    y = clean + sigma.reshape(-1, 1, 1, 1) * noise
    for model, expected in (("small", (3.5, 5.0, 6.0)), ("best", (4.0, 5.5, 6.5))):
        gain = psnr(Denoiser(model, backend=backend)(y, sigma).detach(), clean) - psnr(y, clean)
        assert (gain > torch.tensor(expected)).all(), (model, gain)


def test_quality_with_a_noise_map(backend, photographs):
    values = torch.tensor([0.05, 0.1, 0.2]).reshape(3, 1, 1, 1)
    constant = values * torch.ones(3, 1, 64, 64)
    sigma = constant * torch.exp(-(torch.arange(-32, 32) ** 2) / 25**2)
    y = photographs + sigma * torch.randn(photographs.shape, generator=torch.Generator().manual_seed(123))
    model = Denoiser("small", backend=backend)
    with torch.no_grad():
        by_map, by_constant, by_values = model(y, sigma=sigma), model(y, sigma=constant), model(y, sigma=values)
        mixed = model(y, torch.cat([sigma[:1], constant[1:2], sigma[2:]]))
    assert (psnr(by_map, photographs) > psnr(by_constant, photographs)).all()
    assert torch.equal(by_values, by_constant)
    assert torch.allclose(mixed[[0, 2]], by_map[[0, 2]], atol=1e-6)
    assert torch.allclose(mixed[1], by_constant[1], atol=1e-6)
    for mode in ("real_imag", "abs_angle"):
        wrapped = dinv.models.ComplexDenoiserWrapper(model, mode)
        with torch.no_grad():
            assert wrapped(y.to(torch.complex64), sigma=sigma).shape == y.shape


@pytest.mark.parametrize("batch", [1, 2])
def test_equivariant(batch, backend):
    model = dinv.models.EquivariantDenoiser(Denoiser("small", backend=backend), random=True).eval()
    y = torch.rand(batch, 3, 37, 31)
    assert model(y, 0.2).shape == y.shape


def test_backends_agree_and_models_are_chosen_by_channels(tmp_path):
    for channels in (1, 3):
        y, model = torch.rand(2, channels, 31, 37), proxlift.Model.load("best", channels=channels)
        model.save(tmp_path / "model.safetensors")
        expected = torch.from_numpy(proxlift.denoise(y.numpy(), 0.1, model=model, channel_axis=1))
        for chosen in ("best", model, tmp_path / "model.safetensors"):
            for backend in ("engine", "torch"):
                with torch.no_grad():
                    assert torch.allclose(Denoiser(chosen, backend=backend)(y, 0.1), expected, atol=1e-5)
    with pytest.raises(ValueError, match="channels"):
        Denoiser(model)(torch.rand(1, 1, 8, 8), 0.1)
    with pytest.raises(ValueError, match="backend"):
        Denoiser(backend="gpu")


def test_copies_pickles_and_state(backend):
    model, y = Denoiser("small", backend=backend), torch.rand(1, 1, 16, 16)
    expected = model(y, 0.1)
    again = Denoiser("small", backend=backend)
    again.load_state_dict(model.state_dict())
    for other in (again, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(y, 0.1), expected)
    assert bool(list(model.parameters())) == (backend == "torch")


# --- deepinv's methods ---------------------------------------------------------------------------------------------


def blurred(photographs):
    gaussian = dinv.physics.functional.gaussian_blur(sigma=(1.5, 1.5))
    noise = dinv.physics.GaussianNoise(0.03, rng=torch.Generator().manual_seed(0))
    physics = dinv.physics.BlurFFT((3, 64, 64), gaussian, noise_model=noise)
    return physics, physics(photographs)


def methods(denoiser):
    prior, fidelity = dinv.optim.prior.PnP(denoiser), dinv.optim.data_fidelity.L2()
    settings = {"prior": prior, "data_fidelity": fidelity, "max_iter": 8}
    yield "DPIR", dinv.optim.DPIR(0.03, denoiser)
    yield "HQS", dinv.optim.HQS(stepsize=1.0, sigma_denoiser=0.03, **settings)
    yield "PGD", dinv.optim.PGD(stepsize=1.0, sigma_denoiser=0.03, **settings)
    red = dinv.optim.prior.RED(denoiser)
    yield "RED", dinv.optim.GD(stepsize=0.5, sigma_denoiser=0.03, **{**settings, "prior": red})


def test_plug_and_play(backend, photographs):
    physics, y = blurred(photographs)
    before = psnr(y, photographs)
    for name, method in methods(Denoiser("small", backend=backend)):
        with torch.no_grad():
            estimate = method(y, physics)
        assert (psnr(estimate, photographs) > before + 0.5).all(), name


def test_unfolded_training(backend, photographs):
    """Steps and noise levels are learned through the engine; with PyTorch, the filters as well."""
    physics, y = blurred(photographs)
    denoiser = Denoiser("small", backend=backend)
    method = dinv.optim.HQS(
        prior=dinv.optim.prior.PnP(denoiser), data_fidelity=dinv.optim.data_fidelity.L2(), stepsize=[1.0] * 3,
        sigma_denoiser=[0.1] * 3, max_iter=3, unfold=True, trainable_params=["stepsize", "g_param"],
    )  # fmt: skip
    filters = list(denoiser.parameters())
    settings = [p for p in method.parameters() if all(p is not q for q in filters)]
    assert (len(settings), len(filters)) == (6, 8 * (backend == "torch"))
    groups = [{"params": settings, "lr": 3e-3}] + [{"params": filters, "lr": 1e-5}] * bool(filters)
    optimiser, losses = torch.optim.Adam(groups), []
    for _ in range(4):
        optimiser.zero_grad()
        losses.append((method(y, physics) - photographs).square().mean())
        losses[-1].backward()
        optimiser.step()
    assert losses[-1] < losses[0]
