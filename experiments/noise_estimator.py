"""Trains the estimator of noise levels and writes its weights.

    cargo run --release --example noise_features -- grey.csv grey 12 FOLDER... NOISY=CLEAN
    cargo run --release --example noise_features -- colour.csv colour 12 FOLDER... NOISY=CLEAN
    python experiments/noise_estimator.py grey.csv colour.csv crates/proxlift/models/noise.safetensors

Every tenth picture is held out, and the error on those is printed. Needs numpy and safetensors.
"""

import sys

import numpy as np
from safetensors.numpy import save_file

HIDDEN = (96, 48)
LEAST = 0.3  # no picture is told to have less noise than this, where white is 255
EPOCHS, BATCH, RATE, DECAY = 120, 64, 2e-3, 1e-4
REAL, REAL_WEIGHT = 3, 6  # rows of real photographs, which are few, come that many times


def forward(weights, x):
    """The hidden layers and the output: logarithms of levels."""
    states = [x]
    for i, (w, b) in enumerate(weights):
        x = x @ w.T + b
        if i + 1 < len(weights):
            x = np.maximum(x, 0)
        states.append(x)
    return states


def gradients(weights, states, error):
    """Of 1/2 |error|^2."""
    result = []
    for (w, _), state, i in zip(weights[::-1], states[-2::-1], range(len(weights))):
        result.append((error.T @ state / len(error), error.mean(0)))
        error = (error @ w) * (state > 0)
    return result[::-1]


def train(path, channels):
    """The layers for pictures with so many channels."""
    table = np.loadtxt(path, delimiter=",", dtype=np.float32)
    first = 2 + channels
    kind, picture, levels, x = table[:, 0], table[:, 1], table[:, 2:first], table[:, first:]
    y = np.log(np.maximum(levels, LEAST))
    held = picture.astype(int) % 10 == 1
    mean, deviation = x[~held].mean(0), x[~held].std(0) + 1e-3
    x = (x - mean) / deviation
    rng = np.random.default_rng(0)
    sizes = (x.shape[1], *HIDDEN, channels)
    weights = [
        [rng.normal(0, (2 / a) ** 0.5, (b, a)).astype(np.float32), np.zeros(b, np.float32)]
        for a, b in zip(sizes, sizes[1:])
    ]
    weights[-1][1] = y[~held].mean(0)
    moments = [[[np.zeros_like(p), np.zeros_like(p)] for p in layer] for layer in weights]
    train = np.repeat(np.arange(len(table)), np.where(kind == REAL, REAL_WEIGHT, 1))
    train = train[~held[train]]
    steps, step = EPOCHS * (len(train) // BATCH), 0
    for epoch in range(EPOCHS):
        for batch in np.array_split(rng.permutation(train), len(train) // BATCH):
            step += 1
            states = forward(weights, x[batch] + rng.normal(0, 0.03, (len(batch), x.shape[1])).astype(np.float32))
            error = states[-1] - y[batch]
            # Huber: a picture that cannot be told does not rule the others.
            error = np.clip(error, -0.7, 0.7)
            rate = RATE * 0.5 * (1 + np.cos(np.pi * step / steps))
            for layer, moment, gradient in zip(weights, moments, gradients(weights, states, error)):
                for i, g in enumerate(gradient):
                    moment[i][0] = 0.9 * moment[i][0] + 0.1 * g
                    moment[i][1] = 0.999 * moment[i][1] + 0.001 * g * g
                    scale = (1 - 0.9**step) / (1 - 0.999**step) ** 0.5
                    layer[i] -= rate * (moment[i][0] / (np.sqrt(moment[i][1]) * scale + 1e-8) + DECAY * layer[i])
    # The scaling of features goes into the first layer.
    weights[0][1] = weights[0][1] - weights[0][0] @ (mean / deviation)
    weights[0][0] = weights[0][0] / deviation
    estimate = forward(weights, table[:, first:])[-1]
    for k, name in enumerate(("none", "white", "camera", "real")):
        at = held & (kind == k)
        if not at.any():
            continue
        off = (estimate - y)[at].mean(1)
        print(f"{name:7} {at.sum():5} held out: bias {off.mean():+.3f}, deviation {off.std():.3f} of the logarithm;"
              f" 90 % of the estimates below {np.exp(np.quantile(estimate[at].mean(1), 0.9)):.2f}/255")
    return weights


def main():
    names = {}
    for name, path, channels in (("grey", sys.argv[1], 1), ("colour", sys.argv[2], 3)):
        print(name)
        for i, (w, b) in enumerate(train(path, channels)):
            names[f"{name}.weight_{i}"], names[f"{name}.bias_{i}"] = w.astype(np.float32), b.astype(np.float32)
    save_file(names, sys.argv[3], metadata={"format": "proxlift-noise", "version": "1"})


if __name__ == "__main__":
    main()
