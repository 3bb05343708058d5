"""Threads, forks, signals, and what an import costs."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import noisy

import proxlift

Z = noisy((64, 60))[1].astype(np.float32)


def denoised(_=None):
    return proxlift.denoise(Z, 0.1, model="small")


def run(code, **kwargs):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **kwargs)


@pytest.mark.parametrize("count", [2, 8])
def test_many_threads_at_once(count):
    expected, estimated = denoised(), proxlift.denoise(Z)
    with ThreadPoolExecutor(count) as pool:
        for result in pool.map(denoised, range(5 * count)):
            np.testing.assert_array_equal(result, expected)
        for result in pool.map(lambda _: proxlift.denoise(Z), range(2 * count)):
            np.testing.assert_array_equal(result, estimated)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads_gives_the_same_bits(threads):
    expected = proxlift.denoise(noisy((300, 200))[1])
    before = proxlift.threads()
    try:
        proxlift.set_threads(threads)
        assert proxlift.threads() == threads
        np.testing.assert_array_equal(proxlift.denoise(noisy((300, 200))[1]), expected)
    finally:
        proxlift.set_threads(before)
    with pytest.raises(ValueError):
        proxlift.set_threads(10**6)


def test_other_threads_go_on_meanwhile():
    big = np.tile(Z, (12, 12))
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    proxlift.denoise(big, 0.1)
    end = time.perf_counter()
    done.set()
    thread.join()
    assert sum(start < t < end for t in ticks) > 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("busy", [False, True])
def test_forked_processes(busy):
    expected, done = denoised(), threading.Event()
    workers = [threading.Thread(target=lambda: [denoised() for _ in iter(done.is_set, True)]) for _ in range(2 * busy)]
    for worker in workers:
        worker.start()
    try:
        with multiprocessing.get_context("fork").Pool(3) as pool:
            for result in pool.map_async(denoised, range(9)).get(60):
                np.testing.assert_array_equal(result, expected)
    finally:
        done.set()
        for worker in workers:
            worker.join()


def test_spawned_processes():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for result in pool.map_async(denoised, range(2)).get(60):
            np.testing.assert_array_equal(result, denoised())


@pytest.mark.parametrize("workers", [0, 2])
def test_data_loaders(workers):
    data = pytest.importorskip("torch.utils.data")

    class Pictures(data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            return denoised()

    denoised()
    for batch in data.DataLoader(Pictures(), batch_size=3, num_workers=workers, timeout=60 if workers else 0):
        np.testing.assert_array_equal(batch[1].numpy(), denoised())


LONG = {
    "denoise": "proxlift.denoise(np.random.default_rng(0).random((6000, 6000), np.float32), 0.1)",
    "batch": "proxlift.denoise(np.random.default_rng(0).random((4000, 100, 100), np.float32), 0.1)",
    "total variation": "proxlift.denoise_tv(np.random.default_rng(0).random((3000, 3000), np.float32), 5.0)",
    "training": "proxlift.train(epochs=1, count=100000, progress=False)",
    "solver": "solver.dual_forward_backward(np.ones((9, 9)), operators.FiniteDifferences(), prox.clip(1), iterations=10**9, "
    "tolerance=None)",
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals are other ones there")
@pytest.mark.parametrize("call", LONG)
def test_ctrl_c_ends_long_calls(call):
    # A shell without job control starts programs in the background with Ctrl-C ignored, and that is inherited.
    code = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np, proxlift, sys, time
from proxlift import operators, prox, solver
proxlift.denoise(np.zeros((8, 8)), 0.1)
print("ready", flush=True)
try:
    {LONG[call]}
except KeyboardInterrupt:
    print("interrupted", time.time(), flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    sent = time.time()
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[0].split()
    assert said[0] == "interrupted" and float(said[1]) - sent < 10


def test_the_import_is_light():
    code = """
import sys, time
start = time.perf_counter()
import proxlift
took = time.perf_counter() - start
heavy = {"numpy", "torch", "dask", "deepinv", "tqdm", "skimage", "scipy"} & set(sys.modules)
proxlift.denoise
optional = {"torch", "dask", "deepinv", "tqdm", "skimage", "scipy"} & set(sys.modules)
print(took, heavy, optional)
"""
    took, *loaded = run(code).stdout.split(maxsplit=1)
    assert float(took) < 0.1 and loaded == ["set() set()\n"]


def test_names_and_errors_of_the_module():
    assert set(proxlift.__all__) <= set(dir(proxlift)) and proxlift.__version__.count(".") == 2
    for name in proxlift.__all__:
        assert getattr(proxlift, name).__doc__
    with pytest.raises(AttributeError, match="nothing"):
        proxlift.nothing


def test_a_large_array_is_not_copied():
    """Single precision, one after the other in memory: beside the result, a tile, not the picture."""
    code = """
import numpy as np, proxlift, resource
z = np.zeros((8192, 8192), np.float32)
z[::2] = 0.1
proxlift.denoise(z[:64, :64], 0.1, model="small")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
proxlift.denoise(z, 0.0)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    pytest.importorskip("resource")
    if sys.platform == "darwin":
        pytest.skip("memory is counted in other units there")
    assert float(run(code).stdout) < 256 + 32
