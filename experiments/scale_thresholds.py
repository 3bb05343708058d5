"""Multiplies the thresholds of a model file: what --strength does when it is used, once for all.

    python3 experiments/scale_thresholds.py 1.08 IN.safetensors OUT.safetensors

Patches of a training count by the norm of their errors, but what is judged is the mean PSNR of whole pictures, which smooth parts decide:
convex and weakly convex functions, which have one strength for all pictures, are best a little stronger than they are trained. The factor
is chosen on held-out pictures (docs/log.md). Needs numpy.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np


def scaled(file: bytes, factor: float) -> bytes:
    start = 8 + struct.unpack("<Q", file[:8])[0]
    header, data = json.loads(file[8:start]), bytearray(file[start:])
    for name, tensor in header.items():
        if name.startswith(("knots_", "lambda")):
            begin, end = tensor["data_offsets"]
            data[begin:end] = (np.frombuffer(data[begin:end], "<f4") * np.float32(factor)).astype("<f4").tobytes()
    return file[:start] + bytes(data)


if __name__ == "__main__":
    factor, source, target = sys.argv[1:]
    Path(target).write_bytes(scaled(Path(source).read_bytes(), float(factor)))
