"""What the attacks share: the program, a folder to work in, counts that survive an interruption, a table."""

import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import zlib

PROGRAM = os.environ.get("PROXLIFT", "target/release/proxlift")


def arguments(count):
    """The folder to work in, and how many times: SCRIPT FOLDER [COUNT]."""
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER [COUNT]")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    return folder, int(sys.argv[2]) if len(sys.argv) > 2 else count


def run(*words, **options):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, **options)


class Tally:
    """Numbers in a file: a script that is started again goes on counting."""

    def __init__(self, folder, name):
        self.path = folder / f"{name}.json"
        self.numbers = json.loads(self.path.read_text()) if self.path.exists() else {}

    def __getitem__(self, key):
        return self.numbers.get(key, 0)

    def add(self, key, number=1):
        self.numbers[key] = self[key] + number
        partial = self.path.with_suffix(".new")
        partial.write_text(json.dumps(self.numbers))
        partial.replace(self.path)

    def table(self):
        for key, number in sorted(self.numbers.items()):
            print(f"{key:<44} {number:>10}")


def png(path, width, height, depth=8, channels=1, seed=0, flat=False):
    """A picture of shapes and noise, or of noise alone, without any library."""
    draw = random.Random(seed)
    size = depth // 8
    rows = bytearray()
    row_bytes = width * channels * size
    for y in range(height):
        rows.append(0)
        noise = draw.randbytes(row_bytes)
        if flat or size > 1:
            rows += noise
        else:
            rows += bytes(((x // 9 + y // 7) % 3) * 80 + (n >> 3) for x, n in enumerate(noise))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    colours = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, 0)
    data = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(rows), 1)) + chunk(b"IEND", b"")
    pathlib.Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + data)


def partials(folder):
    return sorted(pathlib.Path(folder).rglob(".proxlift-*.partial"))
