#!/usr/bin/env python3
"""Tests of pytorch.py with a stand-in for proxlift: python3 peers/test_pytorch.py"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import pytorch

SCRIPT = Path(__file__).resolve().parent / "pytorch.py"
STAND_IN = """#!{python}
import json, shutil, sys
if "--export" in sys.argv:
    shutil.copy({export!r}, sys.argv[sys.argv.index("--export") + 1])
else:
    print(json.dumps({report!r}))
"""
REPORT = {
    "training_pass_patches_per_second": 1000.0,
    "training_pass_gflops": 26.2,
    "forward_megapixels_per_second": 5.0,
    "fma_peak_gflops": 200.0,
    "threads": 2,
}


class Comparison(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)
        # Not seed 0: there, one pre-activation of 11 million rounds to exactly -lambda in single precision, and
        # PyTorch's own single- and double-precision gradients of theta_2 differ by 1.5e-4 (see README.md).
        problem = pytorch.Problem.random(seed=1)
        tensors = {name: t.float() for name, t in pytorch.recompute(problem, torch.float64).items()}
        tensors |= {f"theta_{k}": t for k, t in enumerate(problem.theta)}
        tensors |= {"z": problem.z, "x": problem.x, "image": problem.image, "tau": torch.tensor(problem.tau)}
        tensors["lambda"] = torch.full((pytorch.FEATURES,), pytorch.THRESHOLD)
        cls.export = str(cls.path / "export.safetensors")
        save_file({name: t.contiguous() for name, t in tensors.items()}, cls.export)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def stand_in(self, export=None, **changes):
        path = self.path / "proxlift"
        report = {name: value for name, value in (REPORT | changes).items() if value is not None}
        path.write_text(STAND_IN.format(python=sys.executable, export=export or self.export, report=report))
        os.chmod(path, 0o755)
        return str(path)

    def run_script(self, *arguments):
        command = [sys.executable, str(SCRIPT), "--seconds", "0.01", "--rounds", "1", "--no-compile", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    def fails(self, message, *arguments):
        done = self.run_script(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn(message, done.stderr)

    def test_writings_agree(self):
        p = pytorch.Problem.random().to(torch.float64)
        outputs = [pytorch.network(w, p.theta, p.tau, p.bound, p.z) for w in pytorch.WRITINGS]
        for other in outputs[1:]:
            torch.testing.assert_close(other, outputs[0])

    def test_flop_of_the_standard_network(self):
        self.assertEqual(pytorch.Problem.random().flop(), ((12 * 14 + 10) * 144 * 1024, 60 * 144))

    def test_compares(self):
        done = self.run_script("--json", "--channels-last", "no", "--proxlift", self.stand_in())
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        theirs = result["pytorch"]["training_pass_patches_per_second"]
        self.assertAlmostEqual(result["ratio"]["training_pass_patches_per_second"], 1000 / theirs)
        self.assertLess(max(max(gaps.values()) for gaps in result["differences"].values()), 1e-4)

    def test_missing_program(self):
        self.fails("cannot run", "--proxlift", str(self.path / "nothing"))

    def test_missing_figure(self):
        program = self.stand_in(fma_peak_gflops=None)
        self.fails("does not report fma_peak_gflops", "--channels-last", "no", "--proxlift", program)

    def test_unequal_threads(self):
        self.fails("threads", "--channels-last", "no", "--proxlift", self.stand_in(threads=1))

    def test_wrong_gradient(self):
        tensors = load_file(self.export)
        tensors["grad_theta_3"] = tensors["grad_theta_3"] * 1.001
        wrong = str(self.path / "wrong.safetensors")
        save_file(tensors, wrong)
        self.fails("grad_theta_3 differs", "--proxlift", self.stand_in(export=wrong))

    def test_incomplete_export(self):
        tensors = load_file(self.export)
        del tensors["image_output"]
        wrong = str(self.path / "incomplete.safetensors")
        save_file(tensors, wrong)
        self.fails("no tensor image_output", "--export", wrong)

    def test_unreadable_export(self):
        wrong = self.path / "broken.safetensors"
        wrong.write_bytes(b"nothing")
        self.fails("cannot read the export", "--export", str(wrong))


if __name__ == "__main__":
    unittest.main()
