"""Rounds the numbers of model files to the precision of half floats, so that compressed they take half as much.

    python3 experiments/round_model.py crates/proxlift/models/*.safetensors

They stay single floats, of the same range; the last thirteen bits of each become zero, which moves none by more than 0.05 %.
The models in the library are rounded so before they are committed: docs/quality.md says what that changes, and docs/web.md
what it is for. Rounding again changes nothing. Knots of functions that fall stay as they are: where slopes are steep, what a function
is there depends on differences of knots, and it must not change its sign.
"""

import json
import struct
import sys
import zlib
from pathlib import Path

BITS = 10
LOST = 23 - BITS


def rounded(number: int) -> int:
    """The bits of a float, to the nearest of those with `BITS` bits, ties to even."""
    half = (1 << (LOST - 1)) - 1 + (number >> LOST & 1)
    return (number + half) >> LOST << LOST


def round_model(file: bytes) -> bytes:
    start = 8 + struct.unpack("<Q", file[:8])[0]
    header = json.loads(file[8:start])
    data = bytearray(file[start:])
    tensors = {name: tensor for name, tensor in header.items() if tensor.get("dtype") == "F32"}

    def falls(tensor: dict) -> bool:
        begin, end = tensor["data_offsets"]
        return min(struct.unpack_from(f"<{(end - begin) // 4}f", data, begin)) < 0

    falling = any(falls(tensor) for name, tensor in tensors.items() if name.startswith("slopes_"))
    for name, tensor in tensors.items():
        if falling and name.startswith("knots_"):
            continue
        begin, end = tensor["data_offsets"]
        layout = f"<{(end - begin) // 4}I"
        struct.pack_into(layout, data, begin, *map(rounded, struct.unpack_from(layout, data, begin)))
    whole = file[:start] + data
    # The checksum is that of the file with zeros in its place.
    sum_before = header.get("__metadata__", {}).get("checksum", "")
    if sum_before:
        blank = whole[:start].replace(sum_before.encode(), b"crc32:00000000", 1)
        checksum = f"crc32:{zlib.crc32(blank + data):08x}"
        whole = blank.replace(b"crc32:00000000", checksum.encode(), 1) + data
    return bytes(whole)


for path in map(Path, sys.argv[1:]):
    path.write_bytes(round_model(path.read_bytes()))
