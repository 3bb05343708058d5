"""Strength 0 and sigma 0, all models, pictures of every depth: samples come back as they were.

    python3 experiments/reliability/identity.py FOLDER [COUNT]  100 pictures of each depth unless said
"""

import zlib

from common import Tally, arguments, png, run


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


def main():
    folder, count = arguments(100)
    tally = Tally(folder, "identity")
    for i in range(count):
        for depth, channels in [(8, 1), (8, 3), (8, 4), (16, 1), (16, 3)]:
            key = f"{depth} bits, {channels} channels"
            if tally[f"{key}: pictures"] > i:
                continue
            source, result = folder / "in.png", folder / "out.png"
            png(source, 40 + i % 30, 30 + i % 17, depth, channels, seed=i)
            before = samples(source)
            for model in ["small", "best", "photo"]:
                for none in ["--strength", "--sigma"]:
                    run("denoise", "-q", source, "--model", model, none, "0", "--overwrite", "-o", result, check=True)
                    tally.add(f"{key}: same" if samples(result) == before else f"{key}: CHANGED")
            tally.add(f"{key}: pictures")
    tally.table()


main()
