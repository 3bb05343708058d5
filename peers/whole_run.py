#!/usr/bin/env python3
"""Time a whole training in PyTorch and in proxlift: K=15, J=16, 3x3, grey, 1,000 patches of 32x32, 50 epochs.

PyTorch trains by Adam with back-propagation; proxlift with its presets `adam` and `lifted`. All three use
batches of the same size, draw fresh noise at every visit, and update the norms behind tau by two warm steps of power
iteration after every batch. PyTorch's patches are random numbers, which take as long as any others. Only training is
timed, not evaluation, on two threads.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from pytorch import DEPTH, FEATURES, KERNEL, PATCH, THRESHOLD, adjoint_transposed, analysis_convolution, loss_of, network

SIGMA = 0.1


def power_steps(theta, vector):
    """Two steps of warm power iteration on L* L; the norm squared and the vector to go on from."""
    for _ in range(2):
        image = adjoint_transposed(analysis_convolution(vector, theta), theta)
        norm = image.norm()
        vector = image / norm
    return float(norm), vector


def train_pytorch(arguments, writing, channels_last):
    """Seconds of the whole run."""
    state = torch.Generator().manual_seed(0)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    theta = [0.2 * torch.randn(FEATURES, 1, KERNEL, KERNEL, generator=state) for _ in range(DEPTH + 1)]
    theta = [t.to(memory_format=layout).requires_grad_(True) for t in theta]
    vectors = [torch.rand(1, 1, PATCH, PATCH, generator=state) for _ in range(DEPTH - 1)]
    tau = [1.0] * (DEPTH - 1)

    @torch.no_grad()
    def follow_norms():
        for k in range(1, DEPTH):
            squared, vectors[k - 1] = power_steps(theta[k], vectors[k - 1])
            tau[k - 1] = 1.8 / squared

    for _ in range(20):
        follow_norms()
    optimizer = torch.optim.Adam(theta, lr=1e-3, foreach=True)
    images = torch.rand(arguments.count, 1, PATCH, PATCH, generator=state)
    start = time.perf_counter()
    for epoch in range(arguments.epochs):
        for indices in torch.randperm(arguments.count, generator=state).split(arguments.batch):
            x = images[indices].to(memory_format=layout)
            z = x + SIGMA * torch.randn(x.shape, generator=state)
            optimizer.zero_grad()
            loss = loss_of(network(writing, theta, tau, THRESHOLD, z), x) / len(indices)
            loss.backward()
            optimizer.step()
            follow_norms()
        if arguments.verbose:
            print(f"  epoch {epoch + 1}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    return time.perf_counter() - start


def train_proxlift(arguments, preset):
    """Seconds of training of the whole run, as its history has them."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [arguments.proxlift, "train", "--preset", preset, "--count", str(arguments.count), "--out", str(out)]
        command += ["--epochs", str(arguments.epochs), "--batch", str(arguments.batch), "--quiet"]
        command += ["--threads", str(arguments.threads), "--evaluate-every", str(arguments.epochs)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        last = (out / "history.jsonl").read_text().splitlines()[-1]
        return json.loads(last)["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--count", type=int, default=1000, help="training patches")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--writing", choices=("transposed", "flipped"), default="flipped", help="PyTorch's adjoint")
    parser.add_argument("--channels-last", action="store_true", help="PyTorch's memory format")
    parser.add_argument("--proxlift", default="target/release/proxlift", metavar="PATH")
    parser.add_argument("--verbose", action="store_true", help="print PyTorch's epochs")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(
        f"K={DEPTH}, J={FEATURES}, {arguments.count} patches {PATCH}x{PATCH}, {arguments.epochs} epochs, "
        f"batches of {arguments.batch}, {arguments.threads} threads"
    )
    ours = {preset: train_proxlift(arguments, preset) for preset in ("lifted", "adam")}
    theirs = train_pytorch(arguments, arguments.writing, arguments.channels_last)
    print(f"  {'PyTorch ' + torch.__version__ + ', Adam':<34} {theirs:8.1f} s")
    for preset, seconds in ours.items():
        print(f"  {'proxlift, preset ' + preset:<34} {seconds:8.1f} s   {theirs / seconds:5.1f} times faster")


if __name__ == "__main__":
    try:
        main()
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
