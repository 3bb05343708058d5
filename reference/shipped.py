"""The models that come with the program: their own files, read again, on a picture made by a formula."""

import json
from pathlib import Path

import torch
from safetensors import safe_open

from bregman import PiecewiseLinear
from networks import Unrolled

MODELS = Path(__file__).resolve().parent.parent / "crates" / "proxlift" / "models"
HEIGHT, WIDTH = 24, 20


def picture(channels):
    """Waves, a chequered board and noise; `crates/proxlift/tests/golden_shipped.rs` computes it again."""
    c, y, x = torch.meshgrid(torch.arange(channels), torch.arange(HEIGHT), torch.arange(WIDTH), indexing="ij")
    clean = 0.5 + 0.25 * torch.sin(0.31 * x + 0.5 * c) * torch.cos(0.23 * y) + 0.15 * ((x // 5 + y // 4) % 2)
    state, noise = 7, []
    for _ in range(clean.numel()):
        state = (1664525 * state + 1013904223) % 2**32  # Numerical Recipes
        noise.append(state / 2**32 - 0.5)
    return clean + 0.34 * torch.tensor(noise).reshape(clean.shape)


def read(name):
    """The network of a model file."""
    with safe_open(MODELS / f"{name}.safetensors", "pt") as file:
        metadata = file.metadata()
        tensors = {key: file.get_tensor(key).double() for key in file.keys()}
    depth = json.loads(metadata["architecture"])["depth"]
    unrolling = json.loads(metadata["unrolling"]).replace("strongly-convex", "chambolle-pock-accelerated")
    activation = [PiecewiseLinear(tensors[f"knots_{k}"], tensors[f"slopes_{k}"]) for k in range(1, depth)]
    theta = [tensors[f"theta_{k}"] for k in range(depth + 1)]
    stride = 2 if theta[0].shape[1] in (4, 12) else 1
    bounded, border = json.loads(metadata["bounded"]), json.loads(metadata["border"])
    synthesis = [tensors[f"synthesis_{k}"] for k in range(1, depth) if f"synthesis_{k}" in tensors]
    return Unrolled(unrolling, theta, tensors["tau"], activation, bounded, border, stride, synthesis)


def mirrored(image, border):
    """The picture continued by its mirror image, the pixels at the edge repeated (NumPy's `symmetric`)."""

    def indices(length):
        places = torch.arange(-border, length + border) % (2 * length)
        return torch.minimum(places, 2 * length - 1 - places)

    return image[..., indices(image.shape[-2]), :][..., indices(image.shape[-1])]


def denoise(network, image, noise=1.0):
    """The picture through the network; for `noise` times the level that it was trained at, every knot is so much larger."""
    border = network.border
    scaled = [PiecewiseLinear(noise * s.knots, s.slopes) for s in network.activation]
    again = Unrolled(network.unrolling, network.theta, network.tau, scaled, network.bounded, border, network.stride,
                     network.synthesis)  # fmt: skip
    output = again.feed_forward(mirrored(image[None], border))[1][0]
    return output[..., border : border + HEIGHT, border : border + WIDTH]


def shipped_cases():
    tensors = {}
    for colour, channels in [("grey", 1), ("colour", 3)]:
        for size in ["small", "best"] + ["photo"] * (colour == "colour"):
            network = read(f"{colour}-{size}")
            tensors[f"{colour}-{size}"] = denoise(network, picture(channels))
            if colour == "grey":
                tensors[f"{colour}-{size} at twice the noise"] = denoise(network, picture(channels), 2.0)
    # Single precision is that of the models and of the engine that runs them.
    tensors = {name: image.float() for name, image in tensors.items()}
    yield "golden_shipped.safetensors", (tensors, {"height": HEIGHT, "width": WIDTH})
