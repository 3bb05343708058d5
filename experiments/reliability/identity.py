"""Strength 0 and sigma 0, all models, pictures of every depth: samples come back as they were.

    python3 experiments/reliability/identity.py FOLDER [COUNT]  100 pictures of each depth unless said
"""

import random
import struct
import zlib

from common import arguments, png, run


def samples(path):
    """The decompressed rows of a PNG, filters undone."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        length, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height = int.from_bytes(body[:4]), int.from_bytes(body[4:8])
            pixel = {0: 1, 2: 3, 4: 2, 6: 4}[body[9]] * body[8] // 8
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    rows, stride = zlib.decompress(packed), width * pixel
    before, out = bytearray(stride), bytearray()
    for y in range(height):
        kind, row = rows[y * (stride + 1)], bytearray(rows[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        for x in range(stride):
            a, b = (row[x - pixel] if x >= pixel else 0), before[x]
            c = before[x - pixel] if x >= pixel else 0
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            row[x] = (row[x] + (0, a, b, (a + b) // 2, paeth)[kind]) & 255
        out += row
        before = row
    return bytes(out)


def fits(path, width, height, seed):
    """A picture of floats, whose numbers are the file behind its header."""
    draw = random.Random(seed)
    cards = ["SIMPLE  =                    T", "BITPIX  =                  -32", "NAXIS   =                    2"]
    cards += [f"NAXIS1  = {width:>20}", f"NAXIS2  = {height:>20}", "END"]
    data = b"".join(struct.pack(">f", draw.uniform(-0.2, 1.3)) for _ in range(width * height))
    header = "".join(card.ljust(80) for card in cards).ljust(2880).encode()
    path.write_bytes(header + data + bytes(-len(data) % 2880))


def numbers(path):
    """The samples of a picture as they are in its file."""
    if path.suffix == ".png":
        return samples(path)
    data = path.read_bytes()
    start = next(at for at in range(0, len(data), 80) if data[at : at + 8] == b"END     ")
    return data[start // 2880 * 2880 + 2880 :]


DEPTHS = [(8, 1), (8, 3), (8, 4), (16, 1), (16, 3), (32, 1)]


def main():
    folder, count = arguments(100)
    pictures = folder / "pictures"
    pictures.mkdir(exist_ok=True)
    for i in range(count):
        for depth, channels in DEPTHS:
            size = 40 + i % 30, 30 + i % 17
            name = f"{depth}-bits-{channels}-channels-{i:03}"
            if depth == 32:
                fits(pictures / f"{name}.fits", *size, seed=i)
            else:
                png(pictures / f"{name}.png", *size, depth, channels, seed=i)
    before = {path.name: numbers(path) for path in pictures.iterdir()}
    tally = {}
    for model in ["small", "best", "photo"]:
        for none in ["--strength", "--sigma"]:
            results = folder / f"{model}{none}"
            run("denoise", "-q", pictures, "--model", model, none, "0", "--overwrite", "-o", results, check=True)
            for name, wanted in before.items():
                same = numbers(results / name) == wanted
                key = " ".join(name.split("-")[:4]) + (": same" if same else f": CHANGED by {model} {none} 0")
                tally[key] = tally.get(key, 0) + 1
    for key, number in sorted(tally.items()):
        print(f"{key:<44} {number:>10}")


main()
