#!/usr/bin/env python3
"""Golden files for the tests of proxlift.

    python3 reference/golden.py            write crates/proxlift/tests/data/golden_*.safetensors
    python3 reference/golden.py --check    recompute in memory and compare with the committed files
"""

import argparse
import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save

from bregman import Clip, PiecewiseLinear, Relu, SoftThreshold, generator, outputs
from networks import FeedForward, Unrolled, analysis, largest_singular_value, longest_step, norm_on_square
from relatives import Sigmoid, Simplex, Softmax, closed_form_case, general_case
from shipped import shipped_cases
from weakly_convex import weakly_convex_cases

DATA = Path(__file__).resolve().parent.parent / "crates" / "proxlift" / "tests" / "data"
LARGEST_FILE = 50_000


def unrolled_case(
    seed, depth, features, channels, kernel, height, width, batch, mu, scale, thresholds=None, knots=0,
    unrolling="dual-forward-backward", bounded=False, border=0, step_scale=1.0, stride=1, own_synthesis=False,
):  # fmt: skip
    """A network with the clip at the `thresholds`, the paper's, or with learned activations of so many `knots`."""
    random = generator(seed)
    x = (random([batch, channels, height, width]) + 1) / 2
    z = x + 0.2 * random(x.shape)
    # tau_k L_k L_k* does not change with the scale of theta_k, but tau_k L_k z grows as the scale falls: `scale` sets
    # how many units saturate. theta_0 is scaled so that u_0 = L_0 z has the size of the thresholds.
    theta = [scale * random([features, channels * stride**2, kernel, kernel]) for _ in range(depth + 1)]
    size = torch.tensor(thresholds).mean() if thresholds else 0.15
    theta[0] = theta[0] * (size / analysis(theta[0], z, stride).abs().mean())
    norms = torch.stack([largest_singular_value(t, height, width, stride) for t in theta])
    tensors = {"z": z, "x": x, "network_norms": norms}
    shapes = {}
    if thresholds:
        bounds = torch.tensor(thresholds)
        activation = [Clip(bounds.reshape(1, -1, 1, 1))] * (depth - 1)
        tau = longest_step(unrolling, 1) / norms[1:depth] ** 2
        tensors["lambda"] = bounds
    else:
        activation = [learned(features, knots, random) for _ in range(1, depth)]
        tau = torch.stack([step_scale * longest_step(unrolling, k) / norm_on_square(theta[k], stride) ** 2
                           for k in range(1, depth)])  # fmt: skip
        shapes = {f"knots_{k}": s.knots for k, s in enumerate(activation, start=1)}
        shapes |= {f"slopes_{k}": s.slopes for k, s in enumerate(activation, start=1)}
    u = [s.sample([batch, features, height // stride, width // stride], random) for s in activation]

    # Near the adjoint, but not it.
    synthesis = [t + 0.3 * scale * random(t.shape) for t in theta[1:depth]] if own_synthesis else []
    if own_synthesis:
        steps = [longest_step(unrolling, k) / (norm_on_square(theta[k], stride) * norm_on_square(synthesis[k - 1], stride))
                 for k in range(1, depth)]  # fmt: skip
        tau = step_scale * torch.stack(steps)

    for variable in theta + synthesis + u + list(shapes.values()):
        variable.requires_grad_(True)
    parameters = {f"theta_{k}": t for k, t in enumerate(theta)}
    parameters |= {f"synthesis_{k}": t for k, t in enumerate(synthesis, start=1)}
    network = Unrolled(unrolling, theta, tau, activation, bounded, border, stride, synthesis)
    result, shares = outputs(network, parameters, shapes, u, 1, z, x, mu)
    tensors |= {"tau": tau, **parameters, **shapes, **result}
    tensors |= {f"u_{k}": uk for k, uk in enumerate(u, start=1)}
    configuration = {
        "network": "unrolled", "unrolling": unrolling, "bounded": bounded, "border": border, "step_scale": step_scale,
        "knots": knots, "depth": depth, "features": features, "channels": channels, "kernel": kernel,
        "height": height, "width": width, "batch": batch, "mu": mu, "shares": shares,
    }  # fmt: skip
    if stride > 1:
        configuration["stride"] = stride
    if own_synthesis:
        configuration["own_synthesis"] = True
    return tensors, configuration


def learned(features, pieces, random):
    """Knots some tenth apart and slopes in ]0, 1[; the first feature is flat in the end, as a clip is, the second within."""
    knots = torch.cumsum(0.09 + 0.05 * random([features, pieces]), dim=1)
    slopes = 0.5 + 0.45 * random([features, pieces + 1])
    slopes[0, -1] = 0.0
    if pieces > 2:
        slopes[1, 1] = 0.0
    return PiecewiseLinear(knots, slopes)


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
    result, shares = outputs(FeedForward(weight, bias, activations), parameters, {}, u, 0, z, x, 1.0)
    tensors = {"z": z, "x": x, **parameters, **result}
    tensors |= {f"u_{k}": uk for k, uk in enumerate(u)}
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
        "activations": descriptions, "batch": batch, "mu": 1.0, "shares": shares,
    }  # fmt: skip
    return tensors, configuration


def cases():
    # The paper's network.
    yield "golden_grey_k4.safetensors", unrolled_case(
        1, depth=4, features=3, channels=1, kernel=3, height=5, width=7, batch=2,
        thresholds=[0.1] * 3, mu=1.0, scale=1.5,
    )  # fmt: skip
    yield "golden_colour_k3.safetensors", unrolled_case(
        2, depth=3, features=2, channels=3, kernel=5, height=6, width=5, batch=2,
        thresholds=[0.05, 0.15], mu=0.3, scale=0.8,
    )  # fmt: skip
    yield "golden_smallest_k2.safetensors", unrolled_case(
        13, depth=2, features=2, channels=1, kernel=3, height=1, width=1, batch=3,
        thresholds=[0.1] * 2, mu=1.0, scale=5.0,
    )  # fmt: skip
    yield "golden_wide_k5.safetensors", unrolled_case(
        6, depth=5, features=2, channels=1, kernel=7, height=7, width=6, batch=2,
        thresholds=[0.1] * 2, mu=0.1, scale=0.45,
    )  # fmt: skip

    # Networks of the shipped kind, and their relatives.
    small = {"kernel": 3, "height": 5, "width": 4, "batch": 2}
    yield "golden_accelerated.safetensors", unrolled_case(
        21, unrolling="chambolle-pock-accelerated", depth=5, features=3, channels=3, knots=3, border=1,
        step_scale=6.0, mu=0.5, scale=1.0, **small,
    )  # fmt: skip
    yield "golden_accelerated_bounded.safetensors", unrolled_case(
        23, unrolling="chambolle-pock-accelerated", depth=4, features=3, channels=1, knots=2, bounded=True,
        step_scale=3.0, mu=0.3, scale=1.0, **small,
    )  # fmt: skip
    yield "golden_chambolle_pock.safetensors", unrolled_case(
        27, unrolling="chambolle-pock", depth=4, features=3, channels=1, knots=2, mu=1.0, scale=1.0, **small,
    )  # fmt: skip
    yield "golden_chambolle_pock_bounded.safetensors", unrolled_case(
        27, unrolling="chambolle-pock", depth=4, features=3, channels=1, knots=2, bounded=True, border=1, mu=0.2,
        scale=1.0, **small,
    )  # fmt: skip
    yield "golden_inertial.safetensors", unrolled_case(
        43, unrolling="inertial", depth=5, features=3, channels=1, knots=3, border=1, step_scale=2.0, mu=0.5,
        scale=1.0, **small,
    )  # fmt: skip
    yield "golden_inertial_bounded.safetensors", unrolled_case(
        35, unrolling="inertial", depth=4, features=3, channels=1, knots=2, bounded=True, mu=1.0, scale=1.0, **small,
    )  # fmt: skip
    yield "golden_forward_backward_learned.safetensors", unrolled_case(
        130, depth=4, features=3, channels=1, knots=4, border=1, mu=0.5, scale=0.7, **small,
    )  # fmt: skip

    yield "golden_averaged.safetensors", unrolled_case(
        86, unrolling="averaged-dual-forward-backward", depth=4, features=3, channels=1, knots=2, mu=0.5, scale=0.6, **small,
    )  # fmt: skip

    # Convolutions of stride 2.
    yield "golden_stride_grey.safetensors", unrolled_case(
        61, unrolling="chambolle-pock-accelerated", depth=4, features=5, channels=1, knots=3, border=2, stride=2,
        kernel=3, height=8, width=6, batch=2, step_scale=6.0, mu=0.5, scale=0.6,
    )  # fmt: skip
    yield "golden_stride_colour.safetensors", unrolled_case(
        62, depth=3, features=3, channels=3, kernel=3, height=4, width=6, batch=1, stride=2,
        thresholds=[0.05, 0.1, 0.15], mu=0.3, scale=0.5,
    )  # fmt: skip

    # Layers with a synthesis of their own.
    yield "golden_synthesis.safetensors", unrolled_case(
        71, unrolling="chambolle-pock-accelerated", depth=5, features=3, channels=1, knots=3, border=1, own_synthesis=True,
        step_scale=6.0, mu=0.5, scale=1.0, **small,
    )  # fmt: skip
    yield "golden_synthesis_colour.safetensors", unrolled_case(
        75, depth=4, features=3, channels=3, knots=2, own_synthesis=True, mu=0.3, scale=0.7, **small,
    )  # fmt: skip

    # Section 3.2: general feed-forward networks.
    yield "golden_feedforward_dense.safetensors", feed_forward_case(
        5, layer_shapes=[[7, 5], [6, 7], [4, 6], [3, 4]], activations=[Relu(), SoftThreshold(0.1), Clip(0.3)],
        input_shape=[3, 5], output_shape=[3, 3],
    )  # fmt: skip
    yield "golden_feedforward_conv.safetensors", feed_forward_case(
        6, layer_shapes=[[3, 1, 3, 3], [2, 3, 3, 3], [1, 2, 3, 3]], activations=[Relu(), SoftThreshold(0.1)],
        input_shape=[2, 1, 5, 6], output_shape=[2, 1, 5, 6],
    )  # fmt: skip

    # Beyond the paper: other activations and losses, strides, learned activations, closed forms.
    yield "golden_feedforward_entropy.safetensors", general_case(
        51, layer_shapes=[[6, 4], [5, 6], [4, 5], [3, 4]], activations=[Softmax(), Simplex(), Sigmoid()],
        input_shape=[3, 4], loss="softmax",
    )  # fmt: skip
    yield "golden_feedforward_strided.safetensors", general_case(
        52, layer_shapes=[[4, 2, 3, 3], [3, 4, 3, 3], [2, 3, 1, 1]],
        activations=[lambda random: learned(4, 2, random), Softmax()], input_shape=[2, 2, 7, 9], loss="logistic",
        strides=[2, 1, 1], paddings=[1, 0, 0],
    )  # fmt: skip
    yield "golden_closed_form.safetensors", closed_form_case(
        53, widths=[3, 5, 4, 2], batch=6, mu=0.7, rho=1.3, gamma=0.9, proximal=0.4,
    )  # fmt: skip

    yield from shipped_cases()
    yield from weakly_convex_cases()


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
            tolerance = 1e-12 if expected.dtype == torch.float64 else 1e-7
            if not gap <= tolerance * max(1.0, float(expected.abs().max())):
                found.append(f"{name} differs by {gap:.2e}")
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed files instead of writing them")
    arguments = parser.parse_args()
    failed, written = False, set()
    for name, (tensors, configuration) in cases():
        path = DATA / name
        written.add(name)
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
    for stray in sorted(path.name for path in DATA.glob("golden_*.safetensors") if path.name not in written):
        failed = True
        print(f"{stray}: no case of this script")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
