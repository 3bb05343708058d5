"""Pictures that no camera takes: one-pixel stripes and chequered boards, text, line art, gradients, stars.

    python3 experiments/handmade.py OUT MODEL... [--sigma 25/255] [--proxlift PROGRAM]

Draws the pictures into OUT, scores every MODEL (`best`, `small` or a file) on each with `proxlift evaluate`, and prints PSNR in
dB as a table in Markdown, the noisy picture first. OUT/sheet.png shows them: clean, noisy, and what each model makes of them.
Needs numpy and pillow.
"""

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SIDE = 128


def text(ink, paper):
    picture = Image.new("L", (SIDE, SIDE), paper)
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default()
    words = "The proximity operator of a convex function is firmly non-expansive. 0123456789 +-*/ {}[]".split()
    x = y = 2
    for word in words:
        width = draw.textlength(word + " ", font=font)
        if x + width > SIDE:
            x, y = 2, y + 12
        draw.text((x, y), word, fill=ink, font=font)
        x += width
    return np.asarray(picture) / 255


def line_art():
    picture = Image.new("L", (SIDE, SIDE), 255)
    draw = ImageDraw.Draw(picture)
    for radius in range(6, 62, 8):
        draw.ellipse([64 - radius, 64 - radius, 64 + radius, 64 + radius], outline=0)
    for end in range(0, SIDE, 16):
        draw.line([0, end, end, SIDE - 1], fill=0)
        draw.line([SIDE - 1, end, SIDE - 1 - end, 0], fill=0)
    return np.asarray(picture) / 255


def stars():
    random = np.random.default_rng(1)
    picture = np.full((SIDE, SIDE), 0.05)
    y, x = np.mgrid[:SIDE, :SIDE]
    for _ in range(60):
        row, column = random.uniform(0, SIDE, 2)
        picture += random.exponential(0.5) * np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * 0.8**2))
    return picture.clip(0, 1)


def pictures():
    y, x = np.mgrid[:SIDE, :SIDE]
    return {
        "stripes, 1 pixel, upright": 0.2 + 0.6 * (x % 2),
        "stripes, 1 pixel, level": 0.2 + 0.6 * (y % 2),
        "stripes, 2 pixels, oblique": 0.2 + 0.6 * ((x + y) // 2 % 2),
        "chequered board, 1 pixel": 0.2 + 0.6 * ((x + y) % 2),
        "chequered board, 4 pixels": 0.2 + 0.6 * ((x // 4 + y // 4) % 2),
        "rings, finer outward": 0.5 + 0.4 * np.sin(((x - 64) ** 2 + (y - 64) ** 2) / 40),
        "text, dark on light": text(20, 240),
        "text, light on dark": text(240, 20),
        "line art": line_art(),
        "gradient": (x + y) / (2 * SIDE - 2),
        "gradient, round": 1 - np.hypot(x - 64, y - 64) / 100,
        "steps": (x // 16) / 7.0,
        "stars": stars(),
    }


def score(program, model, folder, sigma):
    command = [program, "evaluate", "--quiet", "--json", "--grey", "--model", model, "--data", folder, "--sigma", sigma]
    result = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return result["noisy_psnr"], result["psnr"]


def denoised(program, model, noisy, sigma, out):
    command = [program, "denoise", "--quiet", noisy, "--model", model, "--sigma", sigma, "--noise", "gaussian"]
    subprocess.run([*map(str, command), "--overwrite", "-o", out], check=True)
    return Image.open(out).convert("L")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--sigma", default="25/255")
    parser.add_argument("--proxlift", default="target/release/proxlift")
    arguments = parser.parse_args()
    top, bottom = map(float, (arguments.sigma + "/1").split("/")[:2])
    random, rows, sums = np.random.default_rng(0), [], []
    print("| picture | noisy |" + "".join(f" {Path(model).stem} |" for model in arguments.models))
    print("|---|---|" + "---|" * len(arguments.models))
    for name, picture in pictures().items():
        folder = arguments.out / name.replace(", ", "-").replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        clean = Image.fromarray((255 * picture).round().astype(np.uint8))
        clean.save(folder / "clean.png")
        scores = [score(arguments.proxlift, model, folder, arguments.sigma) for model in arguments.models]
        numbers = [scores[0][0]] + [psnr for _, psnr in scores]
        print(f"| {name} |" + "".join(f" {number:.2f} |" for number in numbers))
        sums.append(numbers)
        noisy = np.asarray(clean) + 255 * top / bottom * random.standard_normal((SIDE, SIDE))
        parts = arguments.out / "parts"
        parts.mkdir(exist_ok=True)
        Image.fromarray(noisy.clip(0, 255).round().astype(np.uint8)).save(parts / "noisy.png")
        results = [
            denoised(arguments.proxlift, model, parts / "noisy.png", arguments.sigma, parts / "denoised.png")
            for model in arguments.models
        ]
        rows.append([clean, Image.open(parts / "noisy.png").copy(), *results])
    print("| mean |" + "".join(f" {number:.2f} |" for number in np.mean(sums, axis=0)))
    gap = 4
    sheet = Image.new("L", (len(rows[0]) * (SIDE + gap) - gap, len(rows) * (SIDE + gap) - gap), 255)
    for i, row in enumerate(rows):
        for j, picture in enumerate(row):
            sheet.paste(picture, (j * (SIDE + gap), i * (SIDE + gap)))
    sheet.save(arguments.out / "sheet.png")


if __name__ == "__main__":
    main()
