"""The package as a whole: examples, notebooks, and the same bits as the command line."""

from __future__ import annotations

import doctest
import importlib
import importlib.metadata
import importlib.resources
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import noisy

import proxlift

ROOT = Path(__file__).resolve().parents[2]
NEEDS = {"torch": "torch", "deepinv": "deepinv", "dask": "dask"}
MODULES = ["proxlift", *(f"proxlift.{module.name}" for module in pkgutil.iter_modules(proxlift.__path__))]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    pytest.importorskip(NEEDS.get(name.rpartition(".")[2], "numpy"))
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_examples_are_there():
    documented = [name for name in proxlift.__all__ if ">>>" in (getattr(proxlift, name).__doc__ or "")]
    assert len(documented) >= 12


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_shortened(path, tmp_path):
    pytest.importorskip("matplotlib")
    if path.stem == "plug_and_play":
        pytest.importorskip("deepinv")
    environment = {**os.environ, "PROXLIFT_SHORT": "1", "MPLBACKEND": "Agg"}
    done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert any(tmp_path.rglob("*.png")), "a notebook shows a picture"


def test_notebooks_open_with_the_problem():
    assert len(NOTEBOOKS) == 4
    for path in NOTEBOOKS:
        text = path.read_text()
        assert text.startswith("# %% [markdown]") and "$$" in text.partition("\n# %%\n")[0], path.name


def test_typed_and_versioned():
    assert importlib.resources.files(proxlift).joinpath("py.typed").is_file()
    assert importlib.metadata.version("proxlift") == proxlift.__version__


@pytest.mark.parametrize("model", ["best", "small"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_the_same_bits_as_the_command_line(model, dtype, tmp_path):
    program = os.environ.get("PROXLIFT")
    if not program or not Path(program).exists():
        pytest.skip("the environment variable PROXLIFT does not name the program")
    tifffile = pytest.importorskip("tifffile")
    _, z = noisy((90, 70))
    z = z.astype(np.float32) if dtype == np.float32 else (z.clip(0, 1) * np.iinfo(dtype).max).astype(dtype)
    tifffile.imwrite(tmp_path / "noisy.tif", z)
    command = [program, "denoise", "noisy.tif", "-o", "clean.tif", "--model", model]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    theirs = tifffile.imread(tmp_path / "clean.tif")
    ours = proxlift.denoise(z, model=model)
    if dtype == np.float32:
        np.testing.assert_array_equal(ours, theirs)
    else:
        white = np.float32(np.iinfo(dtype).max)
        nearest = np.floor((ours.astype(np.float32) * white).astype(np.float64) + 0.5)  # halves go up
        np.testing.assert_array_equal(nearest.astype(dtype), theirs)


def test_the_code_of_the_documentation_runs(tmp_path, monkeypatch):
    for name in ("torch", "deepinv", "dask.array", "zarr"):
        pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    _, image = noisy((48, 48))
    _, colours = noisy((3, 48, 48))
    clean, batch = noisy((2, 1, 48, 48))
    names = {
        "noisy": image, "photo": np.moveaxis(colours, 0, -1), "stack": np.random.default_rng(0).poisson(20, (2, 80, 80)) * 1.0,
        "images": [noisy((48, 48), seed=i)[0] for i in range(4)], "x": clean, "z": batch,
    }  # fmt: skip
    blocks = (ROOT / "docs" / "python.md").read_text().split("```python\n")[1:]
    assert len(blocks) >= 8
    for block in blocks:
        exec(compile(block.partition("```")[0], "docs/python.md", "exec"), names)
    assert (tmp_path / "best.onnx").exists() and (tmp_path / "mine.safetensors").exists()
