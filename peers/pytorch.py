#!/usr/bin/env python3
"""Compare proxlift with PyTorch: check that both compute the same numbers, and time them.

The work, on the CPU in single precision: the unfolded dual forward-backward network (K=15 layers, J=16 features, 3x3
kernels, grey, lambda=0.1), (i) a training pass, forward and all weight gradients of 1/2 ||x^ - x||^2, on a batch of 50
patches of 32x32 pixels, and (ii) a forward pass over one image of 481x321 pixels. The step sizes tau are constants.

PyTorch is timed in several variants (how the adjoint is written, the memory format, eager or compiled). Two of them are
compared with proxlift: the naive one (transposed convolutions of contiguous tensors, eager), called "plain" in the
output, and the fastest. The two programs run alternately, so that other load on the machine affects both. A run counts
with its fastest repetition, for both programs, and the median over the runs is reported.
"""

import argparse
import contextlib
import json
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

try:
    import torch
    import torch.nn.functional as F
    from safetensors import SafetensorError
    from safetensors.torch import load_file
except ImportError as error:
    print(f"error: {error}; install the packages of peers/requirements.txt", file=sys.stderr)
    sys.exit(2)

DEPTH, FEATURES, KERNEL, THRESHOLD = 15, 16, 3, 0.1
BATCH, PATCH, HEIGHT, WIDTH = 50, 32, 321, 481
TOLERANCE = 1e-4
FINALISTS = 2
PLAIN = "transposed, contiguous"
TURNS = 3
REPORTED = (
    "training_pass_patches_per_second",
    "training_pass_gflops",
    "forward_megapixels_per_second",
    "fma_peak_gflops",
    "threads",
)


class Failure(Exception):
    """Ends the program with one sentence and exit code 2."""


# --- The network, three ways ---------------------------------------------------------------------------------------


def analysis_convolution(image, theta):
    return F.conv2d(image, theta, padding=theta.shape[-1] // 2)


def adjoint_transposed(features, theta):
    return F.conv_transpose2d(features, theta, padding=theta.shape[-1] // 2)


def adjoint_flipped(features, theta):
    """The adjoint as a convolution with flipped filters."""
    return F.conv2d(features, theta.flip(2, 3).transpose(0, 1), padding=theta.shape[-1] // 2)


def analysis_product(image, theta):
    """The convolution as a matrix product with unfolded patches."""
    batch, _, height, width = image.shape
    columns = F.unfold(image, theta.shape[-1], padding=theta.shape[-1] // 2)
    return (theta.flatten(1) @ columns).reshape(batch, -1, height, width)


def adjoint_product(features, theta):
    size = features.shape[2:]
    columns = theta.flatten(1).T @ features.flatten(2)
    return F.fold(columns, size, theta.shape[-1], padding=theta.shape[-1] // 2)


WRITINGS = {
    "transposed": (analysis_convolution, adjoint_transposed),
    "flipped": (analysis_convolution, adjoint_flipped),
    "product": (analysis_product, adjoint_product),
}


def network(writing, theta, tau, bound, z):
    """x^ of the unfolded network; `bound` is a number, or a tensor with one value per feature."""
    analysis, adjoint = WRITINGS[writing]
    u = analysis(z, theta[0])
    for k in range(1, len(theta) - 1):
        v = u - tau[k - 1] * analysis(adjoint(u, theta[k]) - z, theta[k])
        u = torch.clamp(v, -bound, bound)
    return z - adjoint(u, theta[-1])


def loss_of(output, x):
    """1/2 ||x^ - x||^2, summed over the batch."""
    return 0.5 * (output - x).square().sum()


# --- The problem ---------------------------------------------------------------------------------------------------


class Problem:
    """Weights and data, either those that proxlift exported or random ones of the same kind."""

    def __init__(self, theta, tau, bounds, z, x, image):
        self.theta, self.z, self.x, self.image = theta, z, x, image
        self.tau = [float(t) for t in tau]
        same = bool((bounds == bounds[0]).all())
        self.bound = float(bounds[0]) if same else bounds.reshape(1, -1, 1, 1)

    @staticmethod
    def random(seed=0):
        state = torch.Generator().manual_seed(seed)
        theta = [0.3 * torch.randn(FEATURES, 1, KERNEL, KERNEL, generator=state) for _ in range(DEPTH + 1)]
        tau = [1.8 / squared_norm(t, state) for t in theta[1:DEPTH]]
        x = torch.rand(BATCH, 1, PATCH, PATCH, generator=state)
        z = x + 0.1 * torch.randn(x.shape, generator=state)
        image = torch.rand(1, 1, HEIGHT, WIDTH, generator=state)
        return Problem(theta, tau, torch.full((FEATURES,), THRESHOLD), z, x, image)

    @staticmethod
    def read(path):
        """The problem, and what proxlift computed for it."""
        try:
            tensors = load_file(path)
        except (OSError, SafetensorError) as error:
            raise Failure(f"cannot read the export {path}: {error}") from error
        depth = sum(name.startswith("theta_") for name in tensors) - 1
        names = ["z", "x", "tau", "lambda", "loss", "output", "image", "image_output"]
        names += [f"{prefix}theta_{k}" for k in range(max(depth, 2) + 1) for prefix in ("", "grad_")]
        missing = [name for name in names if name not in tensors]
        if missing:
            raise Failure(f"the export {path} has no tensor {', '.join(missing)}")
        theta = [tensors[f"theta_{k}"] for k in range(depth + 1)]
        features, channels, kernel, _ = shape = tuple(theta[0].shape)
        batch, _, height, width = tensors["z"].shape
        expected = {f"{prefix}theta_{k}": shape for k in range(depth + 1) for prefix in ("", "grad_")}
        expected |= {name: (batch, channels, height, width) for name in ("z", "x", "output")}
        expected |= {"tau": (depth - 1,), "lambda": (features,), "loss": (batch,)}
        expected |= {"image": tuple(tensors["image"].shape), "image_output": tuple(tensors["image"].shape)}
        for name, size in expected.items():
            if tuple(tensors[name].shape) != size:
                raise Failure(f"{name} has shape {list(tensors[name].shape)} in {path} where {list(size)} is needed")
        data = {name: tensor.to(torch.float32) for name, tensor in tensors.items()}
        theta = [data[f"theta_{k}"] for k in range(depth + 1)]
        return Problem(theta, tensors["tau"], data["lambda"], data["z"], data["x"], data["image"]), tensors

    def is_standard(self):
        return (
            [tuple(t.shape) for t in self.theta] == [(FEATURES, 1, KERNEL, KERNEL)] * (DEPTH + 1)
            and tuple(self.z.shape) == (BATCH, 1, PATCH, PATCH)
            and tuple(self.image.shape) == (1, 1, HEIGHT, WIDTH)
        )

    def to(self, dtype=torch.float32, memory_format=torch.contiguous_format):
        def move(tensor):
            return tensor.detach().to(dtype=dtype, memory_format=memory_format, copy=True)

        copy = object.__new__(Problem)
        copy.theta = [move(t).requires_grad_(True) for t in self.theta]
        copy.z, copy.x, copy.image = move(self.z), move(self.x), move(self.image)
        copy.tau = self.tau
        copy.bound = self.bound.to(dtype) if isinstance(self.bound, torch.Tensor) else self.bound
        return copy

    def flop(self):
        """Floating-point operations (two per multiply-add) of a training pass on one patch and of a forward pass per
        pixel: two convolutions in each inner layer and one in the first and the last, for the forward pass; as much
        again for the reverse pass (but none for the first layer) and for the gradients of the weights."""
        convolution = 2 * self.theta[0].numel()
        inner = len(self.theta) - 2
        training = inner * 6 * convolution + 2 * convolution + 3 * convolution
        forward = inner * 2 * convolution + 2 * convolution
        return training * self.z.shape[2] * self.z.shape[3], forward


def squared_norm(theta, state):
    """||L||^2 on patches, by power iteration."""
    image = torch.rand(1, theta.shape[1], PATCH, PATCH, generator=state)
    for _ in range(100):
        image = adjoint_transposed(analysis_convolution(image, theta), theta)
        norm = float(image.norm())
        image = image / norm
    return norm


# --- The same numbers ----------------------------------------------------------------------------------------------


def recompute(problem, dtype):
    p = problem.to(dtype)
    output = network("transposed", p.theta, p.tau, p.bound, p.z)
    gradients = torch.autograd.grad(loss_of(output, p.x), p.theta)
    with torch.no_grad():
        results = {
            "output": output.detach(),
            "loss": 0.5 * (output - p.x).square().flatten(1).sum(1),
            "image_output": network("transposed", p.theta, p.tau, p.bound, p.image),
        }
    return results | {f"grad_theta_{k}": g for k, g in enumerate(gradients)}


def compare(problem, exported):
    """Largest difference of each result, relative to its largest entry, in single and in double precision."""
    table = {}
    for label, dtype in (("float32", torch.float32), ("float64", torch.float64)):
        for name, ours in recompute(problem, dtype).items():
            theirs = exported[name].to(torch.float64)
            ours = ours.to(torch.float64)
            scale = max(float(ours.abs().max()), 1e-30)
            table.setdefault(name, {})[label] = float((ours - theirs).abs().max()) / scale
    return table


def assert_equal(table):
    for name, gaps in table.items():
        for label, gap in gaps.items():
            if not gap <= TOLERANCE:
                raise Failure(f"{name} differs from PyTorch's {label} result by {gap:.1e}, more than {TOLERANCE:.0e}")


# --- Time ----------------------------------------------------------------------------------------------------------


class TimeUp(BaseException):
    """Not an Exception, so that a compiler which catches those lets it pass."""


@contextlib.contextmanager
def time_box(seconds):
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_):
        raise TimeUp

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


class Variant:
    def __init__(self, problem, writing, channels_last, compiled):
        self.name = f"{writing}, {'channels last' if channels_last else 'contiguous'}" + ", compiled" * compiled
        p = problem.to(memory_format=torch.channels_last if channels_last else torch.contiguous_format)

        def loss(theta, z, x):
            return loss_of(network(writing, theta, p.tau, p.bound, z), x)

        def forward(theta, image):
            return network(writing, theta, p.tau, p.bound, image)

        if compiled:
            loss, forward = torch.compile(loss, dynamic=False), torch.compile(forward, dynamic=False)

        def training_pass():
            return torch.autograd.grad(loss(p.theta, p.z, p.x), p.theta)

        @torch.inference_mode()
        def forward_pass():
            return forward(p.theta, p.image)

        self.passes = {"training": training_pass, "forward": forward_pass}
        # A batch counts as patches, an image as megapixels.
        self.units = {"training": p.z.shape[0], "forward": p.image.shape[2] * p.image.shape[3] / 1e6}
        self.rates = {"training": [], "forward": []}
        self.best = {"training": 0.0, "forward": 0.0}

    def measure(self, kind, seconds):
        """Adds the largest rate of repeated passes, after two that are not counted, as `proxlift bench` reports it."""
        run, rates = self.passes[kind], []
        run()
        run()
        end = time.perf_counter() + seconds
        while not rates or time.perf_counter() < end:
            start = time.perf_counter()
            run()
            rates.append(self.units[kind] / (time.perf_counter() - start))
        self.rates[kind].append(max(rates))
        self.best[kind] = max(self.best[kind], *rates)


def measure_variants(problem, arguments, say):
    formats = {"both": (False, True), "yes": (True,), "no": (False,)}[arguments.channels_last]
    plans = [(w, f, False) for w in ("transposed", "flipped") for f in formats]
    if False in formats:
        plans.append(("product", False, False))
    if not arguments.no_compile:
        plans += [(w, f, True) for w in ("transposed", "flipped") for f in formats]
    variants, skipped = [], {}
    say(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads: median of {TURNS} runs (largest)")
    for writing, channels_last, compiled in plans:
        variant = Variant(problem, writing, channels_last, compiled)
        try:
            if compiled:
                with time_box(arguments.compile_seconds):
                    for run in variant.passes.values():
                        run()
        except TimeUp:
            skipped[variant.name] = f"not compiled within {arguments.compile_seconds:g} s"
        except Exception as error:  # the compiler may be missing, or refuse: then this variant doesn't compete
            skipped[variant.name] = "cannot be compiled: " + (str(error).strip().splitlines() or [repr(error)])[0]
        if variant.name in skipped:
            say(f"  {variant.name:<38} {skipped[variant.name]}")
            continue
        variants.append(variant)
    # In turns: a moment of other load on the machine then doesn't decide between the variants.
    for _ in range(TURNS):
        for variant in variants:
            for kind in variant.passes:
                variant.measure(kind, arguments.seconds / TURNS)
    for variant in variants:
        training, forward = (statistics.median(variant.rates[kind]) for kind in ("training", "forward"))
        say(
            f"  {variant.name:<38} {training:7.0f} ({variant.best['training']:.0f}) patches/s "
            f"{forward:8.2f} ({variant.best['forward']:.2f}) megapixels/s"
        )
    return variants, skipped


def call(command):
    """What a program prints; a sentence if it cannot be run, takes too long or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except OSError as error:
        raise Failure(f"cannot run {command[0]} ({error.strerror}): run cargo build --release first") from error
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{shlex.join(command)} took more than 600 s") from error
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Failure(f"{shlex.join(command)} ended with code {done.returncode}: {reason}")
    return done.stdout


def run_proxlift(arguments, *extra):
    return call([arguments.proxlift, "bench", *shlex.split(arguments.proxlift_arguments), *extra])


def bench_proxlift(arguments):
    printed = run_proxlift(arguments, "--json")
    try:
        report = json.loads(printed)
        figures = {name: float(report[name]) for name in REPORTED}
    except (ValueError, TypeError) as error:
        raise Failure(f"proxlift bench --json did not print a JSON object of numbers: {error}") from error
    except KeyError as error:
        raise Failure(f"proxlift bench --json does not report {error.args[0]}") from error
    if int(figures["threads"]) != arguments.threads:
        raise Failure(
            f"proxlift ran on {figures['threads']:.0f} threads and PyTorch on {arguments.threads}: "
            "set --threads or --proxlift-arguments"
        )
    return figures


# --- The report ----------------------------------------------------------------------------------------------------


def report(problem, finalists, figures, say):
    """The table of PyTorch, plain and at its best, against proxlift."""
    result = {"pytorch": {}, "pytorch_plain": {}, "proxlift": {}, "ratio": {}, "ratio_plain": {}}
    best, plain = {}, {}
    for kind in ("training", "forward"):
        rates = {v.name: statistics.median(v.rates[kind]) for v in finalists[kind]}
        name = max(rates, key=rates.get)
        best[kind], plain[kind] = rates[name], rates.get(PLAIN)
        result["pytorch"][f"{kind}_variant"] = name
    training_flop, forward_flop = problem.flop()
    rows = [
        ("training pass, patches/s", "training_pass_patches_per_second", "training", 1.0),
        ("training pass, GFLOP/s", "training_pass_gflops", "training", training_flop / 1e9),
        ("forward, megapixels/s", "forward_megapixels_per_second", "forward", 1.0),
        ("forward, GFLOP/s", "forward_gflops", "forward", forward_flop / 1e3),
    ]
    ours = {}
    if figures:
        ours = {name: statistics.median(f[name] for f in figures) for name in REPORTED}
        counted = ours["training_pass_patches_per_second"] * training_flop / 1e9
        if abs(counted - ours["training_pass_gflops"]) > 0.02 * counted:
            say(f"note: proxlift reports {ours['training_pass_gflops']:.1f} GFLOP/s; counted as here: {counted:.1f}")
        ours["training_pass_gflops"] = counted
        ours["forward_gflops"] = ours["forward_megapixels_per_second"] * forward_flop / 1e3
        result["proxlift"] = ours
    say("")
    heads = ["plain", "best"] + (["proxlift", "x plain", "x best"] if ours else [])
    say(f"{'':<28}" + "".join(f"{head:>11}" for head in heads))
    for label, name, kind, unit in rows:
        cells = []
        for rates, key in ((plain, "pytorch_plain"), (best, "pytorch")):
            result[key][name] = rates[kind] * unit if rates[kind] else None
            cells.append(f"{result[key][name]:11.2f}" if rates[kind] else f"{'-':>11}")
        if ours:
            cells.append(f"{ours[name]:11.2f}")
            for key, ratio in (("pytorch_plain", "ratio_plain"), ("pytorch", "ratio")):
                theirs = result[key][name]
                result[ratio][name] = ours[name] / theirs if theirs else None
                cells.append(f"{result[ratio][name]:10.2f}x" if theirs else f"{'-':>11}")
        say(f"{label:<28}" + "".join(cells))
    say(f"plain: \"{PLAIN}\"; best: training \"{result['pytorch']['training_variant']}\", "
        f"forward \"{result['pytorch']['forward_variant']}\"")  # fmt: skip
    if ours:
        peak = ours["fma_peak_gflops"]
        say(f"multiply-add peak of the machine: {peak:.0f} GFLOP/s; of it, in training: PyTorch "
            f"{100 * result['pytorch']['training_pass_gflops'] / peak:.1f} %, "
            f"proxlift {100 * ours['training_pass_gflops'] / peak:.1f} %")  # fmt: skip
    return result


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch (default 2)")
    parser.add_argument("--seconds", type=float, default=3.0, help="time of each PyTorch measurement (default 3)")
    parser.add_argument("--rounds", type=int, default=3, help="alternations of the two programs (default 3)")
    parser.add_argument("--channels-last", choices=("both", "yes", "no"), default="both", help="memory formats to try")
    parser.add_argument("--no-compile", action="store_true", help="do not try torch.compile")
    parser.add_argument("--compile-seconds", type=float, default=90.0, help="time limit of a compilation (default 90)")
    parser.add_argument("--proxlift", default="target/release/proxlift", metavar="PATH", help="the proxlift program")
    parser.add_argument("--proxlift-arguments", default="", metavar="TEXT", help="more arguments for proxlift bench")
    parser.add_argument("--alone", action="store_true", help="measure PyTorch only, on random data")
    parser.add_argument("--export", metavar="FILE", help="only compare this export of proxlift with PyTorch, untimed")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    arguments = parser.parse_args()
    if arguments.threads < 1 or arguments.rounds < 1 or arguments.seconds <= 0 or arguments.compile_seconds <= 0:
        parser.error("threads, rounds and seconds must be positive")
    return arguments


def run(arguments, say):
    torch.set_num_threads(arguments.threads)
    result = {"torch": torch.__version__, "cpu_capability": torch.backends.cpu.get_cpu_capability()}
    result["threads"] = arguments.threads

    def check(path):
        problem, exported = Problem.read(path)
        result["differences"] = table = compare(problem, exported)
        say("largest differences between proxlift and PyTorch, relative to the largest entry")
        for name, gaps in table.items():
            say(f"  {name:<16} float32 {gaps['float32']:.1e}   float64 {gaps['float64']:.1e}")
        assert_equal(table)
        say(f"  all below {TOLERANCE:.0e}")
        return problem

    if arguments.export:
        check(arguments.export)
        return result
    if arguments.alone:
        problem = Problem.random()
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "export.safetensors")
            run_proxlift(arguments, "--export", path)
            problem = check(path)
        if not problem.is_standard():
            raise Failure("the export of proxlift is not the network and the data of this comparison")

    variants, result["skipped_variants"] = measure_variants(problem, arguments, say)
    finalists = {}
    for kind in ("training", "forward"):
        finalists[kind] = sorted(variants, key=lambda v: v.best[kind], reverse=True)[:FINALISTS]
        finalists[kind] += [v for v in variants if v.name == PLAIN and v not in finalists[kind]]
    figures = []
    result["variants"] = {
        v.name: {"runs": {kind: list(rates) for kind, rates in v.rates.items()}, "largest": dict(v.best)}
        for v in variants
    }
    for kind, best in finalists.items():
        for variant in best if not arguments.alone else ():
            variant.rates[kind].clear()  # compared are only the runs that alternate with proxlift's
    for _ in range(0 if arguments.alone else arguments.rounds):
        figures.append(bench_proxlift(arguments))
        for kind, best in finalists.items():
            for variant in best:
                variant.measure(kind, arguments.seconds)
    return result | report(problem, finalists, figures, say)


def main():
    arguments = parse()
    warnings.filterwarnings("ignore", category=UserWarning, module=r"torch\..*")

    def say(line):
        if not arguments.json:
            print(line, flush=True)

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
