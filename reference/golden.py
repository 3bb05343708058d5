#!/usr/bin/env python3
"""Golden files for the tests of proxlift.

An independent implementation, in PyTorch and double precision, of the unfolded dual forward-backward network and of
the lifted Bregman energy. The energies are written as the equations are printed, and every gradient comes from
automatic differentiation of the differentiable part f = E - sum_k psi_k(u_k); no analytic gradient is used anywhere.

    python3 reference/golden.py            write crates/proxlift/tests/data/golden_*.safetensors
    python3 reference/golden.py --check    recompute in memory and compare with the committed files (to 1e-12)
"""

import argparse
import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save

DATA = Path(__file__).resolve().parent.parent / "crates" / "proxlift" / "tests" / "data"
TOLERANCE = 1e-12
LARGEST_FILE = 100_000

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


# --- Activations ---------------------------------------------------------------------------------------------------
#
# Elementwise: prox_psi and psi, the distance of v to the nearest kink of prox_psi, whether prox_psi is flat at v, and
# random auxiliary variables in the domain of psi.


class Relu:
    """prox of the indicator of the non-negative half-line."""

    def prox(self, v):
        return torch.relu(v)

    def psi(self, u):
        return torch.where(u >= 0, 0.0, torch.inf)

    def kink(self, v):
        return v.abs()

    def flat(self, v):
        return v < 0

    def sample(self, shape, random):
        return torch.clamp(random(shape), min=0.0)  # half of the units are exactly zero


class SoftThreshold:
    """prox of t |.|."""

    def __init__(self, threshold):
        self.threshold = threshold

    def prox(self, v):
        return torch.sign(v) * torch.relu(v.abs() - self.threshold)

    def psi(self, u):
        return self.threshold * u.abs()

    def kink(self, v):
        return (v.abs() - self.threshold).abs()

    def flat(self, v):
        return v.abs() < self.threshold

    def sample(self, shape, random):
        u = random(shape)
        return torch.where(u.abs() < 0.3, 0.0, u)  # some units are exactly zero


class Clip:
    """prox of the indicator of the box [-bound, bound]; the bound is a number or a tensor that broadcasts."""

    def __init__(self, bound):
        self.bound = torch.as_tensor(bound)

    def prox(self, v):
        return torch.clamp(v, -self.bound, self.bound)

    def psi(self, u):
        return torch.where(u.abs() <= self.bound, 0.0, torch.inf)

    def kink(self, v):
        return (v.abs() - self.bound).abs()

    def flat(self, v):
        return v.abs() > self.bound

    def sample(self, shape, random):
        # 1.25 bound * uniform(-1, 1), clipped: a fifth of the units lies exactly on the bound
        return torch.clamp(1.25 * self.bound * random(shape), -self.bound, self.bound)


# --- The Bregman penalty -------------------------------------------------------------------------------------------


def per_sample(a):
    return a.reshape(a.shape[0], -1).sum(dim=1)


def half_square(a):
    return per_sample(0.5 * a * a)


def conjugate(activation, v):
    """q_psi*(v) = <p, v> - 1/2 ||p||^2 - psi(p) with p = prox_psi(v)."""
    p = activation.prox(v)
    return per_sample(p * v) - half_square(p) - per_sample(activation.psi(p))


def penalty_without_psi(activation, u, v):
    """B_psi(u, v) - psi(u) = 1/2 ||u||^2 + q_psi*(v) - <u, v>."""
    return half_square(u) + conjugate(activation, v) - per_sample(u * v)


def penalty(activation, u, v):
    """B_psi(u, v) = q_psi(u) + q_psi*(v) - <u, v>."""
    return penalty_without_psi(activation, u, v) + per_sample(activation.psi(u))


# --- The two families of networks ----------------------------------------------------------------------------------
#
# `lifted` gives the pre-activations v_k and the output at given auxiliary variables u, `feed_forward` those of the
# network itself, `activations` the activation that belongs to each u_k.


class Unfolded:
    """u_0 = L_0 z, v_k = u_{k-1} - tau_k L_k (L_k* u_{k-1} - z), u_k = clip(v_k), x^ = z - L_K* u_{K-1}."""

    def __init__(self, theta, tau, clip):
        self.theta, self.tau, self.clip = theta, tau, clip
        self.depth = len(theta) - 1
        self.padding = theta[0].shape[-1] // 2

    def analysis(self, k, image):
        return F.conv2d(image, self.theta[k], padding=self.padding)

    def adjoint(self, k, features):
        return F.conv_transpose2d(features, self.theta[k], padding=self.padding)

    def affine(self, k, u, z):
        return u - self.tau[k - 1] * self.analysis(k, self.adjoint(k, u) - z)

    def output(self, u, z):
        return z - self.adjoint(self.depth, u)

    def lifted(self, u, z):
        """v_1..v_{K-1} and x^ at the auxiliary variables u = [u_1, ..., u_{K-1}]."""
        before = [self.analysis(0, z)] + u[:-1]
        return [self.affine(k, before[k - 1], z) for k in range(1, self.depth)], self.output(u[-1], z)

    def feed_forward(self, z):
        u = self.analysis(0, z)
        pre = []
        for k in range(1, self.depth):
            pre.append(self.affine(k, u, z))
            u = self.clip.prox(pre[-1])
        return pre, self.output(u, z)

    def activations(self):
        return [self.clip] * (self.depth - 1)


class FeedForward:
    """v_0 = F_0(z), v_k = F_k(u_{k-1}), u_k = prox_k(v_k), x^ = F_K(u_{K-1}), F_k affine, dense or convolutional."""

    def __init__(self, weight, bias, activation):
        self.weight, self.bias, self.activation = weight, bias, activation

    def affine(self, k, a):
        if self.weight[k].dim() == 2:
            return F.linear(a, self.weight[k], self.bias[k])
        return F.conv2d(a, self.weight[k], self.bias[k], padding=self.weight[k].shape[-1] // 2)

    def lifted(self, u, z):
        """v_0..v_{K-1} and x^ at the auxiliary variables u = [u_0, ..., u_{K-1}]."""
        pre = [self.affine(k, a) for k, a in enumerate([z] + u)]
        return pre[:-1], pre[-1]

    def feed_forward(self, z):
        pre = [self.affine(0, z)]
        for k, activation in enumerate(self.activation):
            pre.append(self.affine(k + 1, activation.prox(pre[-1])))
        return pre[:-1], pre[-1]

    def activations(self):
        return self.activation


# --- Energies and their gradients ----------------------------------------------------------------------------------


def energy_terms(network, u, z, x, mu):
    """mu * l(x^, x) and the penalties B(u_k, v_k), per sample."""
    pre, output = network.lifted(u, z)
    return mu * half_square(output - x), [penalty(a, uk, vk) for a, uk, vk in zip(network.activations(), u, pre)]


def differentiable_part(network, u, z, x, mu):
    """f = E - sum_k psi_k(u_k), summed over the samples."""
    pre, output = network.lifted(u, z)
    f = mu * half_square(output - x)
    for activation, uk, vk in zip(network.activations(), u, pre):
        f = f + penalty_without_psi(activation, uk, vk)
    return f.sum()


def outputs(network, parameters, u, first, z, x, mu):
    """All the golden results. `parameters` maps a name to a leaf tensor; u[0] is called u_{first}."""
    with torch.no_grad():
        pre, network_output = network.feed_forward(z)
        data_term, penalties = energy_terms(network, u, z, x, mu)
        lifted_pre, _ = network.lifted(u, z)
        activations = network.activations()
        # The files are meant for comparisons at rounding level: no unit may sit on a kink of its activation.
        distance = min(float(a.kink(v).min()) for a, v in zip(activations * 2, pre + lifted_pre))
        assert distance > 1e-6, f"a pre-activation is only {distance} away from a kink"
        assert all(bool((p >= 0).all()) and bool(torch.isfinite(p).all()) for p in penalties)
        at_network = [a.prox(v) for a, v in zip(activations, pre)]
        _, at_zero = energy_terms(network, at_network, z, x, mu)
        assert all(float(p.abs().max()) < 1e-12 for p in at_zero), "B(prox(v), v) is not zero"

    result = {
        "network_output": network_output,
        "loss": half_square(network_output - x),
        "energy": data_term + sum(penalties),
        "data_term": data_term,
    }
    for k, value in enumerate(penalties, start=first):
        result[f"penalty_{k}"] = value

    variables = list(parameters.values()) + u
    names = list(parameters) + [f"u_{k}" for k in range(first, first + len(u))]
    gradients = torch.autograd.grad(differentiable_part(network, u, z, x, mu), variables)
    check_slope(lambda: differentiable_part(network, u, z, x, mu), variables, gradients)
    result.update({f"grad_{name}": g for name, g in zip(names, gradients)})

    def plain_loss():
        return half_square(network.feed_forward(z)[1] - x).sum()

    weights = list(parameters.values())
    gradients = torch.autograd.grad(plain_loss(), weights)
    check_slope(plain_loss, weights, gradients)
    result.update({f"backprop_{name}": g for name, g in zip(parameters, gradients)})

    return result, {
        "saturated_lifted": flat_share(activations, lifted_pre),
        "saturated_network": flat_share(activations, pre),
    }


def flat_share(activations, pre):
    """Of each layer, the share of units whose activation is flat: they pass no gradient in back-propagation."""
    return [round(float(a.flat(v).double().mean()), 4) for a, v in zip(activations, pre)]


def check_slope(function, variables, gradients):
    """The directional derivative agrees with a central difference, for one direction per variable."""
    random = generator(99)
    for variable, gradient in zip(variables, gradients):
        direction = random(variable.shape)
        step = 1e-7
        with torch.no_grad():
            original = variable.clone()
            variable.copy_(original + step * direction)
            above = function()
            variable.copy_(original - step * direction)
            below = function()
            variable.copy_(original)
        slope = float((above - below) / (2 * step))
        expected = float((gradient * direction).sum())
        assert abs(slope - expected) <= 1e-5 * max(1.0, abs(expected)), f"slope {slope}, gradient {expected}"


# --- Cases ---------------------------------------------------------------------------------------------------------


def generator(seed):
    """Uniform on [-1, 1], in double precision: exact on every machine, unlike normal deviates."""
    state = torch.Generator().manual_seed(seed)
    return lambda shape: 2 * torch.rand(tuple(shape), generator=state) - 1


def largest_singular_value(theta, height, width):
    """||L|| on images of this size, from the dense matrix of L."""
    channels = theta.shape[1]
    basis = torch.eye(channels * height * width).reshape(-1, channels, height, width)
    matrix = F.conv2d(basis, theta, padding=theta.shape[-1] // 2).reshape(basis.shape[0], -1).T
    return torch.linalg.svdvals(matrix)[0]


def unfolded_case(seed, depth, features, channels, kernel, height, width, batch, thresholds, mu, scale):
    random = generator(seed)
    bounds = torch.tensor(thresholds)
    clip = Clip(bounds.reshape(1, -1, 1, 1))
    x = (random([batch, channels, height, width]) + 1) / 2
    z = x + 0.2 * random(x.shape)
    # tau_k L_k L_k* does not change with the scale of theta_k, but tau_k L_k z grows as the scale falls: `scale` sets
    # how many units saturate. theta_0 is scaled so that u_0 = L_0 z has the size of the thresholds.
    theta = [scale * random([features, channels, kernel, kernel]) for _ in range(depth + 1)]
    size = F.conv2d(z, theta[0], padding=kernel // 2).abs().mean()
    theta[0] = theta[0] * (bounds.mean() / size)
    norms = torch.stack([largest_singular_value(t, height, width) for t in theta])
    tau = 1.8 / norms[1:depth] ** 2
    u = [clip.sample([batch, features, height, width], random) for _ in range(depth - 1)]

    for variable in theta + u:
        variable.requires_grad_(True)
    parameters = {f"theta_{k}": t for k, t in enumerate(theta)}
    result, shares = outputs(Unfolded(theta, tau, clip), parameters, u, 1, z, x, mu)
    tensors = {"z": z, "x": x, "tau": tau, "lambda": bounds, "network_norms": norms, **parameters, **result}
    tensors.update({f"u_{k}": uk for k, uk in enumerate(u, start=1)})
    configuration = {
        "network": "unfolded", "depth": depth, "features": features, "channels": channels, "kernel": kernel,
        "height": height, "width": width, "batch": batch, "mu": mu, **shares,
    }  # fmt: skip
    return tensors, configuration


def feed_forward_case(seed, layer_shapes, activations, input_shape, output_shape):
    random = generator(seed)
    batch = input_shape[0]
    z, x = random(input_shape), random(output_shape)
    weight, bias, u = [], [], []
    for k, shape in enumerate(layer_shapes):
        fan_in = torch.Size(shape[1:]).numel()
        weight.append(random(shape) * (3 / fan_in) ** 0.5)
        bias.append(0.2 * random(shape[:1]))
        if k < len(activations):
            u.append(activations[k].sample([batch, shape[0], *input_shape[2:]], random))
    for variable in weight + bias + u:
        variable.requires_grad_(True)
    parameters = {f"weight_{k}": w for k, w in enumerate(weight)} | {f"bias_{k}": b for k, b in enumerate(bias)}
    result, shares = outputs(FeedForward(weight, bias, activations), parameters, u, 0, z, x, 1.0)
    tensors = {"z": z, "x": x, **parameters, **result}
    tensors.update({f"u_{k}": uk for k, uk in enumerate(u)})
    descriptions = []
    for activation in activations:
        if isinstance(activation, Relu):
            descriptions.append({"name": "relu"})
        elif isinstance(activation, SoftThreshold):
            descriptions.append({"name": "soft_threshold", "threshold": activation.threshold})
        else:
            descriptions.append({"name": "clip", "bound": float(activation.bound)})
    configuration = {
        "network": "feedforward", "layer": "dense" if len(layer_shapes[0]) == 2 else "convolution",
        "activations": descriptions, "batch": batch, "mu": 1.0, **shares,
    }  # fmt: skip
    return tensors, configuration


def cases():
    yield "golden_gray_k4.safetensors", unfolded_case(
        1, depth=4, features=3, channels=1, kernel=3, height=5, width=7, batch=2,
        thresholds=[0.1] * 3, mu=1.0, scale=1.5,
    )  # fmt: skip
    yield "golden_color_k3.safetensors", unfolded_case(
        2, depth=3, features=4, channels=3, kernel=5, height=6, width=5, batch=2,
        thresholds=[0.05, 0.1, 0.15, 0.2], mu=0.3, scale=0.8,
    )  # fmt: skip
    yield "golden_smallest_k2.safetensors", unfolded_case(
        13, depth=2, features=2, channels=1, kernel=3, height=1, width=1, batch=3,
        thresholds=[0.1] * 2, mu=1.0, scale=5.0,
    )  # fmt: skip
    yield "golden_wide_k5.safetensors", unfolded_case(
        4, depth=5, features=5, channels=1, kernel=7, height=9, width=8, batch=2,
        thresholds=[0.1] * 5, mu=0.1, scale=0.45,
    )  # fmt: skip
    yield "golden_feedforward_dense.safetensors", feed_forward_case(
        5, layer_shapes=[[7, 5], [6, 7], [4, 6], [3, 4]], activations=[Relu(), SoftThreshold(0.1), Clip(0.3)],
        input_shape=[3, 5], output_shape=[3, 3],
    )  # fmt: skip
    yield "golden_feedforward_conv.safetensors", feed_forward_case(
        6, layer_shapes=[[3, 1, 3, 3], [2, 3, 3, 3], [1, 2, 3, 3]], activations=[Relu(), SoftThreshold(0.1)],
        input_shape=[2, 1, 5, 6], output_shape=[2, 1, 5, 6],
    )  # fmt: skip


def encode(tensors, configuration):
    plain = {name: t.detach().contiguous().clone() for name, t in tensors.items()}
    return save(plain, metadata={"config": json.dumps(configuration)})


def differences(path, tensors, configuration):
    """The reasons why the stored file is not the recomputed one."""
    if not path.is_file():
        return ["the file does not exist"]
    with safe_open(path, "pt") as stored:
        found = []
        if json.loads((stored.metadata() or {}).get("config", "null")) != configuration:
            found.append("the configuration differs")
        if set(stored.keys()) != set(tensors):
            return found + [f"the tensor names differ: {sorted(set(stored.keys()) ^ set(tensors))}"]
        for name, expected in tensors.items():
            actual, expected = stored.get_tensor(name), expected.detach()
            if actual.shape != expected.shape or actual.dtype != expected.dtype:
                found.append(f"{name} has shape {list(actual.shape)} {actual.dtype}")
                continue
            gap = float((actual - expected).abs().max())
            if not gap <= TOLERANCE * max(1.0, float(expected.abs().max())):
                found.append(f"{name} differs by {gap:.2e}")
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed files instead of writing them")
    arguments = parser.parse_args()
    failed = False
    for name, (tensors, configuration) in cases():
        path = DATA / name
        if arguments.check:
            found = differences(path, tensors, configuration)
            failed |= bool(found)
            print(f"{name}: {'; '.join(found) if found else 'equal'}")
            continue
        encoded = encode(tensors, configuration)
        assert len(encoded) < LARGEST_FILE, f"{name} would have {len(encoded)} bytes"
        DATA.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded)
        print(f"{name}: {len(encoded)} bytes, {json.dumps(configuration)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
