"""`proxlift.torch` against the golden files, the engine, and the laws of derivatives."""

import copy
import itertools
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors")

import proxlift
from proxlift.torch import Network, denoise

GOLDEN = Path(__file__).resolve().parents[2] / "crates" / "proxlift" / "tests" / "data"
MODELS = [("small", 1), ("best", 1), ("small", 3), ("best", 3), ("photo", 3)]
SIZES = [(1, 1), (2, 3), (5, 40), (37, 31)]


def golden(name):
    with safetensors.safe_open(GOLDEN / f"golden_{name}.safetensors", "pt") as file:
        config = json.loads(file.metadata()["config"])
        return {key: file.get_tensor(key) for key in file.keys()}, config


def pictures(*shape, seed=0, dtype=torch.float32):
    """Squares on waves, with noise."""
    random = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(*(torch.arange(n, dtype=torch.float64) for n in shape[-2:]), indexing="ij")
    clean = 0.5 + 0.2 * torch.sin(0.3 * x) * torch.cos(0.2 * y) + 0.2 * ((x // 5 + y // 4) % 2)
    return (clean + 0.1 * torch.randn(shape, generator=random, dtype=torch.float64)).to(dtype)


def golden_picture(channels, height, width):
    """The picture of reference/shipped.py."""
    c, y, x = torch.meshgrid(*(torch.arange(n) for n in (channels, height, width)), indexing="ij")
    clean = 0.5 + 0.25 * torch.sin(0.31 * x + 0.5 * c) * torch.cos(0.23 * y) + 0.15 * ((x // 5 + y // 4) % 2)
    states = itertools.accumulate(range(clean.numel()), lambda s, _: (1664525 * s + 1013904223) % 2**32, initial=7)
    noise = torch.tensor([state / 2**32 - 0.5 for state in states][1:])
    return (clean + 0.34 * noise.reshape(clean.shape))[None]


def distance(a, b):
    return float((torch.as_tensor(a) - torch.as_tensor(b)).detach().abs().max())


# --- Golden files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [lambda m, x, s: Network(m)(x, s), lambda m, x, s: denoise(x, s, m)])
def test_shipped_models_agree_with_the_reference(run):
    tensors, config = golden("shipped")
    for name, expected in tensors.items():
        colour, size = name.split()[0].split("-")
        model = proxlift.Model.load(size, channels=3 if colour == "colour" else 1)
        noisy = golden_picture(len(expected), config["height"], config["width"])
        sigma = 2 * model.sigma if "twice" in name else None
        assert distance(run(model, noisy, sigma)[0], expected) < 1e-5, name


@pytest.mark.parametrize(
    "name",
    "smallest_k2 grey_k4 wide_k5 colour_k3 forward_backward_learned inertial inertial_bounded chambolle_pock "
    "chambolle_pock_bounded accelerated accelerated_bounded".split(),
)
def test_outputs_and_gradients_of_all_unrollings_agree_with_the_reference(name):
    tensors, config = golden(name)
    depth, features, border = config["depth"], config["features"], config["border"]
    exact = {"theta": torch.stack([tensors[f"theta_{k}"] for k in range(depth + 1)]), "tau": tensors["tau"]}
    if "lambda" in tensors:
        exact["knots"] = tensors["lambda"].reshape(1, -1, 1).repeat(depth - 1, 1, 1)
        exact["slopes"] = torch.tensor([1.0, 0.0]).repeat(depth - 1, features, 1)
    else:
        exact |= {p: torch.stack([tensors[f"{p}_{k}"] for k in range(1, depth)]) for p in ("knots", "slopes")}
    single = {key: value.float().numpy() for key, value in exact.items()}
    model = proxlift.Model.from_arrays(**single, unrolling=config["unrolling"], bounded=config["bounded"])
    network = Network(model).double()
    network.load_state_dict(exact)
    output = network(tensors["z"])
    assert distance(output, tensors["network_output"]) < 1e-12
    inside = (..., slice(border, config["height"] - border), slice(border, config["width"] - border))
    (0.5 * (output - tensors["x"])[inside].square().sum()).backward()
    assert distance(network.theta.grad, torch.stack([tensors[f"backprop_theta_{k}"] for k in range(depth + 1)])) < 1e-12
    for part in ("knots", "slopes") if "lambda" not in tensors else ():
        expected = torch.stack([tensors[f"backprop_{part}_{k}"] for k in range(1, depth)])
        assert distance(getattr(network, part).grad, expected) < 1e-12


# --- The engine ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("name", "channels"), MODELS)
def test_module_function_and_array_interface_agree(name, channels, size):
    model = proxlift.Model.load(name, channels=channels)
    noisy, sigma = pictures(3, channels, *size), torch.tensor([0.03, 0.1, 0.25])
    expected = proxlift.denoise(noisy.numpy(), sigma.numpy(), model=model, channel_axis=1)
    assert distance(Network(model)(noisy, sigma), expected) < 1e-5
    assert distance(denoise(noisy, sigma, model), expected) == 0
    assert distance(denoise(noisy, None, model), denoise(noisy, model.sigma, model)) == 0


@pytest.mark.parametrize("backend", [lambda m: Network(m), lambda m: lambda x, s: denoise(x, s, m)])
def test_sigma_in_all_forms(backend):
    run, noisy = backend(proxlift.Model.load("small")), pictures(2, 1, 20, 24)
    one, each = run(noisy, 0.1), torch.stack([run(noisy[:1], 0.1)[0], run(noisy[1:], 0.2)[0]])
    for sigma in (torch.tensor(0.1), np.float64(0.1), [0.1], torch.tensor([[0.1]]), torch.full((2, 1, 1, 1), 0.1)):
        assert distance(run(noisy, sigma), one) < 1e-6
    for shape in ((2,), (2, 1), (2, 1, 1, 1)):
        assert distance(run(noisy, torch.tensor([0.1, 0.2]).reshape(shape)), each) < 1e-6
    assert distance(run(noisy, [0.1, 0.2]), each) < 1e-6
    assert torch.equal(run(noisy, 0), noisy)
    assert torch.equal(run(noisy, [0, 0.2])[0], noisy[0])
    for wrong in (-0.1, math.nan, math.inf, [0.1, 0.2, 0.3], torch.zeros(2, 1, 24, 20), torch.zeros(2, 2, 20, 24)):
        with pytest.raises(ValueError, match="sigma"):
            run(noisy, wrong)


def levels_of(sigma):
    """The levels around a sigma, and how far it is from the lower to the upper one."""
    below = math.floor(4 * math.log2(sigma)) if sigma > 0 else -math.inf
    low, high = (2 ** (below / 4), 2 ** ((below + 1) / 4)) if below >= -48 else (0.0, 2.0**-12)
    return low, high, (sigma - low) / (high - low)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_map_is_blended_between_levels(channels):
    model, noisy = proxlift.Model.load("small"), pictures(2, channels, 9, 8)
    sigma = torch.linspace(0, 1.2, 2 * 9 * 8).reshape(2, 1, 9, 8)
    sigma[1, 0, 3, 2:5] = torch.tensor([1e-5, 2.0**-12, 0.25])
    network = Network(model)
    by_network, by_engine = network(noisy, sigma), denoise(noisy, sigma, model)
    assert distance(by_network, by_engine) < 1e-5
    array = proxlift.denoise(noisy.numpy(), sigma.numpy()[:, 0], model=model, channel_axis=1)
    assert distance(by_engine, array) < 1e-6
    for n, y, x in [(0, 0, 0), (0, 0, 1), (0, 8, 7), (1, 3, 2), (1, 3, 3), (1, 3, 4), (1, 8, 7)]:
        low, high, part = levels_of(float(sigma[n, 0, y, x]))
        below, above = (network(noisy[n : n + 1], level)[0, :, y, x] for level in (low, high))
        assert distance(by_network[n, :, y, x], below + part * (above - below)) < 1e-6
    assert torch.equal(by_engine[0, :, 0, 0], noisy[0, :, 0, 0])


@pytest.mark.parametrize("backend", [lambda m: Network(m), lambda m: lambda x, s: denoise(x, s, m)])
def test_a_map_of_one_value_is_that_level(backend):
    run, noisy = backend(proxlift.Model.load("small")), pictures(3, 1, 12, 10)
    maps = torch.linspace(0.01, 0.3, 120).reshape(1, 1, 12, 10) * torch.tensor([1.0, 0.5, 2.0]).reshape(3, 1, 1, 1)
    maps[1] = 0.07
    estimate = run(noisy, maps)
    assert torch.equal(estimate[1:2], run(noisy[1:2], 0.07))
    for i in (0, 2):
        assert distance(estimate[i : i + 1], run(noisy[i : i + 1], maps[i : i + 1])) < 1e-6
    maps[1, 0, 0, 0] = 0.0701  # now it is blended
    below, above, _ = levels_of(0.07)
    apart = distance(run(noisy[1:2], below), run(noisy[1:2], above))
    assert 0 < distance(run(noisy, maps)[1], estimate[1]) < 0.25 * apart


def test_other_precisions_layouts_and_no_grad():
    model, noisy = proxlift.Model.load("small", channels=3), pictures(2, 3, 16, 20)
    expected = denoise(noisy, 0.1, model)
    assert denoise(noisy.double(), 0.1, model).dtype == torch.float64
    assert distance(denoise(noisy.double(), 0.1, model), expected) == 0
    assert distance(denoise(noisy.contiguous(memory_format=torch.channels_last), 0.1, model), expected) == 0
    assert distance(denoise(noisy.transpose(2, 3).contiguous().transpose(2, 3), 0.1, model), expected) == 0
    assert denoise(noisy.half(), 0.1, model).dtype == torch.float16
    noisy.requires_grad_()
    with torch.no_grad():
        assert denoise(noisy, 0.1, model).grad_fn is None
    assert not denoise(noisy.detach(), 0.1, model).requires_grad


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu():
    model, noisy = proxlift.Model.load("small"), pictures(2, 1, 32, 32)
    expected, sigma = denoise(noisy, 0.1, model), torch.full((2, 1, 32, 32), 0.25)
    assert distance(Network(model).cuda()(noisy.cuda(), 0.1).cpu(), expected) < 1e-4
    assert distance(denoise(noisy.cuda(), 0.1, model).cpu(), expected) == 0
    assert distance(Network(model).cuda()(noisy.cuda(), sigma.cuda()).cpu(), denoise(noisy, sigma, model)) < 1e-4


# --- Gradients -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
def test_derivatives_of_the_module(channels):
    network = Network.load("small", channels=channels, train_tau=True).double()
    noisy = pictures(2, channels, 5, 4, dtype=torch.float64).requires_grad_()
    for sigma in (torch.tensor([0.1, 0.2]), torch.linspace(0.004, 0.45, 40).reshape(2, 1, 5, 4)):
        assert torch.autograd.gradcheck(network, (noisy, sigma.double().requires_grad_()), fast_mode=True)

    def with_parameters(*values):
        named = dict(zip([name for name, _ in network.named_parameters()], values, strict=True))
        return torch.func.functional_call(network, named, (noisy.detach(), 0.1))

    parameters = tuple(value.detach().clone().requires_grad_() for value in network.parameters())
    assert len(parameters) == 5
    assert torch.autograd.gradcheck(with_parameters, parameters, fast_mode=True)


@pytest.mark.parametrize("form", ["none", "number", "each", "map"])
@pytest.mark.parametrize(("name", "channels", "of"), [("small", 1, 1), ("best", 1, 3), ("small", 3, 3), ("best", 3, 3)])
def test_gradients_of_the_engine_are_those_of_the_module(name, channels, of, form):
    model, noisy = proxlift.Model.load(name, channels=channels), pictures(2, of, 19, 14, dtype=torch.float64)
    sigma = {
        "none": None,
        "number": torch.tensor(0.15),
        "each": torch.tensor([0.05, 0.2]),
        "map": torch.linspace(0.08, 0.13, 2 * 19 * 14).reshape(2, 1, 19, 14),
    }[form]
    weights = pictures(2, of, 19, 14, seed=1, dtype=torch.float64)

    def gradients(run):
        inputs = [noisy.clone().requires_grad_()]
        inputs += [] if sigma is None else [sigma.double().requires_grad_()]
        return torch.autograd.grad((run(*inputs) * weights).sum(), inputs)

    exact = gradients(Network(model).double())
    by_engine = gradients(lambda x, s=None: denoise(x, s, model))
    # Where a feature is next to a knot, the slopes of single and double precision differ, in few places.
    for expected, found in zip(exact, by_engine, strict=True):
        assert (found - expected).norm() < 2e-3 * expected.norm()
        # One number, the level of all pixels, has the errors of those places in it.
        most = 1e-5 if expected.numel() > 1 else 1e-4
        assert (found - expected).abs().median() < most * expected.abs().max()


def test_the_engine_is_differentiable_once():
    noisy = pictures(1, 1, 8, 8).requires_grad_()
    (gradient,) = torch.autograd.grad(denoise(noisy, 0.1, "small").square().sum(), noisy, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_gradient_in_sigma_of_a_bounded_model_is_for_the_module():
    small = proxlift.Model.load("small")
    bounded, sigma = small.replace(bounded=True), torch.tensor(0.1, requires_grad=True)
    with pytest.raises(ValueError, match="Network"):
        denoise(pictures(1, 1, 8, 8), sigma, bounded)
    Network(bounded)(pictures(1, 1, 8, 8), sigma).sum().backward()
    assert sigma.grad is not None


# --- Training, saving, workers -------------------------------------------------------------------------------------


def test_fine_tuning_lowers_the_loss_and_the_engine_runs_the_result(tmp_path):
    network, clean = Network.load("small"), pictures(4, 1, 24, 24).round(decimals=0)
    noisy = clean + 0.1 * torch.randn(clean.shape, generator=torch.Generator().manual_seed(2))
    optimiser, losses = torch.optim.Adam(network.parameters(), 1e-3), []
    for _ in range(20):
        optimiser.zero_grad()
        losses.append((network(noisy, 0.1) - clean).square().mean())
        losses[-1].backward()
        optimiser.step()
        network.project_()
    assert losses[-1] < 0.9 * losses[0]
    network.to_model(provenance={"trainer": "a test"}).save(tmp_path / "model.safetensors")
    model = proxlift.Model.load(tmp_path / "model.safetensors")
    assert model.provenance == {"trainer": "a test"}
    assert distance(denoise(noisy, 0.1, model), network(noisy, 0.1)) < 1e-5


def test_a_model_comes_back_as_it_was():
    model = proxlift.Model.load("best", channels=3)
    assert Network(model).double().to_model().to_bytes() == model.to_bytes()
    assert Network(model).to_model(sigma=0.2).sigma == 0.2


def test_nothing_is_projected_silently():
    network = Network.load("small")
    with torch.no_grad():
        network.knots[0, 0] = torch.tensor([0.3, 0.1, 0.2, 0.4])
        network.slopes[1, 2] = torch.tensor([-0.5, 0.5, 1.5, 1.0, 0.2])
    with pytest.raises(ValueError, match=r"knots .* project_"):
        network.to_model()
    with torch.no_grad():
        network.knots[0, 0] = torch.tensor([0.1, 0.2, 0.3, 0.4])
    with pytest.raises(ValueError, match=r"slope .* project_"):
        network.to_model()
    with torch.no_grad():
        network.knots[0, 0] = torch.tensor([-0.3, 0.2, 0.1, 0.4])
    model = network.project_().to_model()
    assert model.knots[0, 0].tolist() == torch.tensor([0.0, 0.2, 0.2, 0.4]).tolist()
    assert model.slopes[1, 2].tolist() == torch.tensor([0.0, 0.5, 1.0, 1.0, 0.2]).tolist()


def test_state_copies_and_pickles():
    network, noisy = Network.load("small"), pictures(1, 1, 12, 12)
    with torch.no_grad():
        network.theta.mul_(0.9)
    expected = network(noisy, 0.1)
    again = Network.load("small")
    again.load_state_dict(network.state_dict())
    for other in (again, copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert torch.equal(other(noisy, 0.1), expected)
    assert {name for name, _ in network.named_parameters()} == {"theta", "synthesis", "knots", "slopes"}
    assert set(network.state_dict()) == {"theta", "synthesis", "knots", "slopes", "tau"}
    assert "tau" in dict(Network.load("small", train_tau=True).named_parameters())


class Denoised(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        noisy = pictures(1, 1, 40, 40, seed=i).requires_grad_()
        estimate = denoise(noisy, 0.1, "small")
        (gradient,) = torch.autograd.grad(estimate.square().sum(), noisy)
        return torch.cat([estimate.detach()[0], gradient[0]])


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_of_a_data_loader(start):
    data = Denoised()
    expected = torch.stack([data[i] for i in range(6)])
    loader = torch.utils.data.DataLoader(data, 3, num_workers=2, multiprocessing_context=start, timeout=120)
    assert torch.equal(torch.cat(list(loader)), expected)


# --- Errors --------------------------------------------------------------------------------------------------------


def test_wrong_images_are_refused():
    grey, colour = Network.load("small"), Network.load("small", channels=3)
    for wrong in (torch.rand(8, 8), torch.rand(1, 8, 8), torch.ones(1, 1, 8, 8, dtype=torch.uint8),
                  torch.ones(1, 1, 8, 8, dtype=torch.complex64)):  # fmt: skip
        for run in (grey, lambda x: denoise(x, 0.1, "small")):
            with pytest.raises(ValueError, match="real images"):
                run(wrong)
    for run in (colour, lambda x: denoise(x, 0.1, colour.model)):
        with pytest.raises(ValueError, match="channels"):
            run(torch.rand(1, 1, 8, 8))


def test_a_model_of_unknown_level_does_not_follow():
    model, noisy = proxlift.Model.load("small").replace(sigma=0.0), pictures(1, 1, 16, 16)
    assert distance(denoise(noisy, None, model), Network(model)(noisy)) < 1e-5
    for run in (Network(model), lambda x, s: denoise(x, s, model)):
        with pytest.raises(ValueError, match="leave sigma out"):
            run(noisy, 0.1)
