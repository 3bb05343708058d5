#!/usr/bin/env python3
"""Compare the training of a dense autoencoder in proxlift and in PyTorch: check that both compute the same numbers, and
time them.

The work, on the CPU in single precision: the autoencoder 784-256-64-256-784 with ReLU, half the squared error of its
output, mini-batches of 100 and Adam. proxlift trains it by back-propagation, as PyTorch does, and by lifted Bregman.

PyTorch is timed eagerly and compiled, with each of its implementations of Adam. The fastest variants are compared with
proxlift. The two programs run alternately, so that other load on the machine affects both. A run counts with its
fastest step and its fastest epoch, for both programs, and the median over the runs is reported, and the least of all runs
beside it.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

try:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file
except ImportError as error:
    print(f"error: {error}; install the packages of peers/requirements.txt", file=sys.stderr)
    sys.exit(2)

from pytorch import TOLERANCE, Failure, TimeUp, assert_equal, call, time_box

WIDTHS = (784, 256, 64, 256, 784)
LAYERS, BATCH, MU = len(WIDTHS) - 1, 100, 0.1
RATE, BETAS, EPSILON = 1e-3, (0.9, 0.999), 1e-8
FINALISTS = 2
OURS = {"backprop": "back-propagation, Adam", "lifted": "lifted, Adam", "lbfb": "LB-FB"}


# --- The network ---------------------------------------------------------------------------------------------------


class Network(torch.nn.Module):
    def __init__(self, weights, biases):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(w.clone()) for w in weights)
        self.biases = torch.nn.ParameterList(torch.nn.Parameter(b.clone()) for b in biases)

    def forward(self, u):
        for k in range(LAYERS - 1):
            u = torch.relu(torch.nn.functional.linear(u, self.weights[k], self.biases[k]))
        return torch.nn.functional.linear(u, self.weights[-1], self.biases[-1])


def losses_of(output, x):
    """1/2 ||o - x||^2 of every sample."""
    return 0.5 * (output - x).square().sum(1)


def lifted_gradients(weights, biases, z):
    """One reverse sweep of secants from the forward pass, over mu, written out."""
    inputs, values = [z], []
    for k in range(LAYERS):
        values.append(torch.addmm(biases[k], inputs[k], weights[k].T))
        inputs.append(values[k].relu())
    d, gradients = MU * (values[-1] - z), {}
    for k in reversed(range(LAYERS)):
        gradients[f"weight_{k}"], gradients[f"bias_{k}"] = d.T @ inputs[k] / MU, d.sum(0) / MU
        if k > 0:
            back = d @ weights[k]
            d = values[k - 1].relu() - (values[k - 1] - back).relu()
    return losses_of(values[-1], z), gradients


# --- The same numbers ----------------------------------------------------------------------------------------------


def read(path):
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise Failure(f"cannot read the export {path}: {error}") from error
    shapes = {"z": (BATCH, WIDTHS[0])}
    for k in range(LAYERS):
        shapes |= {f"weight_{k}": (WIDTHS[k + 1], WIDTHS[k]), f"bias_{k}": (WIDTHS[k + 1],)}
    for name, shape in shapes.items():
        if name not in tensors or tuple(tensors[name].shape) != shape:
            raise Failure(f"the export {path} has no tensor {name} of shape {list(shape)}")
    return tensors


def recompute(tensors, dtype):
    """Losses and gradients of both rules, and the losses of a few steps of Adam by back-propagation."""
    weights = [tensors[f"weight_{k}"].to(dtype) for k in range(LAYERS)]
    biases = [tensors[f"bias_{k}"].to(dtype) for k in range(LAYERS)]
    z = tensors["z"].to(dtype)
    network = Network(weights, biases)
    losses = losses_of(network(z), z)
    losses.sum().backward()
    results = {"backprop_loss": losses.detach()}
    for k in range(LAYERS):
        results[f"backprop_grad_weight_{k}"] = network.weights[k].grad
        results[f"backprop_grad_bias_{k}"] = network.biases[k].grad
    results["lifted_loss"], gradients = lifted_gradients(weights, biases, z)
    results |= {f"lifted_grad_{name}": gradient for name, gradient in gradients.items()}
    network = Network(weights, biases)
    step = trainer(network, losses_of, torch.optim.Adam(network.parameters(), RATE, BETAS, EPSILON))
    results["backprop_steps"] = torch.stack([step(z).detach() for _ in range(len(tensors["backprop_steps"]))])
    return results


def compare(tensors):
    """Largest difference of each result, relative to its largest entry, in single and in double precision."""
    table = {}
    for label, dtype in (("float32", torch.float32), ("float64", torch.float64)):
        for name, theirs in recompute(tensors, dtype).items():
            ours, theirs = tensors[name].double(), theirs.double()
            gap = float((ours - theirs).abs().max()) / max(float(theirs.abs().max()), 1e-30)
            table.setdefault(name, {})[label] = gap
    return table


# --- Time ----------------------------------------------------------------------------------------------------------


def trainer(network, losses, optimiser):
    def step(z):
        optimiser.zero_grad(set_to_none=True)
        loss = losses(network(z), z).sum() / BATCH
        loss.backward()
        optimiser.step()
        return loss

    return step


class Variant:
    def __init__(self, tensors, adam, compiled):
        self.name = f"Adam {adam}" + (f", compiled {compiled}" if compiled else ", eager")
        network = Network(*([tensors[f"{kind}_{k}"] for k in range(LAYERS)] for kind in ("weight", "bias")))
        options = {"foreach": False} if adam == "loop" else {adam: True}
        optimiser = torch.optim.Adam(network.parameters(), RATE, BETAS, EPSILON, **options)
        if not compiled:
            self.step = trainer(network, losses_of, optimiser)
        elif compiled == "pass":
            loss_of = torch.compile(lambda z: losses_of(network(z), z).sum() / BATCH, dynamic=False)

            def step(z):
                optimiser.zero_grad(set_to_none=True)
                loss = loss_of(z)
                loss.backward()
                optimiser.step()
                return loss

            self.step = step
        else:
            self.step = torch.compile(trainer(network, losses_of, optimiser), dynamic=False)
        self.steps, self.epochs = [], []

    def measure(self, samples, seconds):
        """Adds the fastest step and the fastest epoch, in batches that are drawn at random, as proxlift draws them."""
        steps, epochs, end = [], [], time.perf_counter() + seconds
        while not epochs or time.perf_counter() < end:
            order = torch.randperm(len(samples))
            whole = time.perf_counter()
            for first in range(0, len(samples), BATCH):
                batch = samples[order[first : first + BATCH]]
                start = time.perf_counter()
                self.step(batch)
                steps.append(time.perf_counter() - start)
            epochs.append(time.perf_counter() - whole)
        self.steps.append(min(steps))
        self.epochs.append(min(epochs))


def variants_of(tensors, arguments, say):
    plans = [(adam, None) for adam in ("loop", "foreach", "fused")]
    if not arguments.no_compile:
        plans += [("fused", "pass"), ("foreach", "step")]
    variants, skipped = [], {}
    for adam, compiled in plans:
        variant = Variant(tensors, adam, compiled)
        try:
            with time_box(arguments.compile_seconds):
                for _ in range(3):
                    variant.step(tensors["z"])
        except TimeUp:
            skipped[variant.name] = f"not compiled within {arguments.compile_seconds:g} s"
        except Exception as error:  # the compiler may be missing, or refuse: then this variant doesn't compete
            skipped[variant.name] = "cannot be run: " + (str(error).strip().splitlines() or [repr(error)])[0]
        if variant.name in skipped:
            say(f"  {variant.name:<28} {skipped[variant.name]}")
        else:
            variants.append(variant)
    return variants, skipped


def run_proxlift(arguments, *extra):
    return call([arguments.proxlift, "bench", "--autoencoder", "--threads", str(arguments.threads), *extra])


def bench_proxlift(arguments):
    try:
        report = json.loads(run_proxlift(arguments, "--json", "--seconds", str(arguments.seconds)))
        figures = {figure["operation"]: figure for figure in report["figures"]}
        result = {name: (figures[key]["seconds"], figures[key]["epoch_seconds"]) for name, key in OURS.items()}
        return report, result
    except (ValueError, TypeError, KeyError) as error:
        raise Failure(f"proxlift bench --autoencoder --json did not print what is expected: {error}") from error


# --- The report ----------------------------------------------------------------------------------------------------


def report_on(reports, runs, variants, say):
    """The table, with the medians over the rounds."""
    flops, samples = reports[0]["flops"], reports[0]["epoch_samples"]
    peak = max(report["fma_peak_gflops"] for report in reports)
    times = {f"PyTorch: {v.name}": list(zip(v.steps, v.epochs)) for v in variants}
    times |= {f"proxlift: {label}": [run[name] for run in runs] for name, label in OURS.items()}
    rows = {}
    for name, pairs in times.items():
        steps, epochs = zip(*pairs)
        rows[name] = (statistics.median(steps), min(steps), statistics.median(epochs), min(epochs))
    best = tuple(min(row[i] for name, row in rows.items() if name.startswith("PyTorch")) for i in range(4))
    say(
        f"\nmultiply-add peak {peak:.0f} GFLOP/s: {flops / 1e6:.0f} million operations a step take "
        f"{flops / peak / 1e6:.2f} ms\n"
    )
    say(f"{'':<40}{'step':>9}{'x best':>8}{'least':>10}{'of peak':>9}{'x best':>8}{f'epoch of {samples}':>16}{'x best':>8}{'least':>10}{'x best':>8}")
    result = {}
    for name, row in rows.items():
        (step, least, epoch, least_epoch), ratios = row, [theirs / ours for theirs, ours in zip(best, row)]
        names = ("step", "least_step", "epoch", "least_epoch")
        result[name] = {f"{what}_seconds": seconds for what, seconds in zip(names, row)}
        result[name] |= {f"{what}_ratio": ratio for what, ratio in zip(names, ratios)}
        say(
            f"{name:<40}{1e3 * step:>6.2f} ms{ratios[0]:>7.2f}x{1e3 * least:>7.2f} ms"
            f"{100 * flops / least / peak / 1e9:>7.0f} %{ratios[1]:>7.2f}x{1e3 * epoch:>13.1f} ms{ratios[2]:>7.2f}x"
            f"{1e3 * least_epoch:>7.1f} ms{ratios[3]:>7.2f}x"
        )
    return {"fma_peak_gflops": peak, "rows": result}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="threads of both programs (default 2)")
    parser.add_argument("--seconds", type=float, default=1.0, help="time of each measurement (default 1)")
    parser.add_argument("--rounds", type=int, default=5, help="alternations of the two programs (default 5)")
    parser.add_argument("--no-compile", action="store_true", help="do not try torch.compile")
    parser.add_argument("--compile-seconds", type=float, default=120.0, help="time limit of a compilation (default 120)")
    parser.add_argument("--proxlift", default="target/release/proxlift", metavar="PATH", help="the proxlift program")
    parser.add_argument("--export", metavar="FILE", help="only compare this export of proxlift with PyTorch, untimed")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    arguments = parser.parse_args()
    if arguments.threads < 1 or arguments.rounds < 1 or arguments.seconds <= 0 or arguments.compile_seconds <= 0:
        parser.error("threads, rounds and seconds must be positive")
    return arguments


def run(arguments, say):
    torch.set_num_threads(arguments.threads)
    result = {"torch": torch.__version__, "threads": arguments.threads}
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.export or str(Path(folder) / "export.safetensors")
        if not arguments.export:
            run_proxlift(arguments, "--export", path)
        tensors = read(path)
    result["differences"] = table = compare(tensors)
    say("largest differences between proxlift and PyTorch, relative to the largest entry")
    for name, gaps in table.items():
        say(f"  {name:<26} float32 {gaps['float32']:.1e}   float64 {gaps['float64']:.1e}")
    assert_equal(table)
    say(f"  all below {TOLERANCE:.0e}")
    if arguments.export:
        return result

    say(f"\nPyTorch {torch.__version__}, {arguments.threads} threads")
    variants, result["skipped_variants"] = variants_of(tensors, arguments, say)
    samples = torch.rand(bench_proxlift(arguments)[0]["epoch_samples"], WIDTHS[0])
    for variant in variants:
        variant.measure(samples, arguments.seconds)
        say(f"  {variant.name:<28} step {1e3 * variant.steps[0]:.2f} ms, epoch {1e3 * variant.epochs[0]:.1f} ms")
    finalists = sorted(variants, key=lambda v: v.epochs[0])[:FINALISTS]
    for variant in finalists:  # compared are only the runs that alternate with proxlift's
        variant.steps.clear()
        variant.epochs.clear()
    reports, runs = [], []
    for _ in range(arguments.rounds):
        report, figures = bench_proxlift(arguments)
        reports.append(report)
        runs.append(figures)
        for variant in finalists:
            variant.measure(samples, arguments.seconds)
    return result | report_on(reports, runs, finalists, say)


def main():
    arguments = parse()
    say = (lambda *_: None) if arguments.json else print
    try:
        result = run(arguments, say)
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 2
    if arguments.json:
        print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
