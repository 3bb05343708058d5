#!/usr/bin/env python3
"""Compare denoising quality: BM3D, total variation and non-local means from other packages, and proxlift.

All methods get exactly the same noisy pictures, written by `proxlift evaluate --export-noisy`: white Gaussian noise,
neither rounded nor clipped. Every result is clipped to [0, 1] before it is scored. PSNR is at peak 1; SSIM uses the 11x11
Gaussian window of the original paper. Times are wall clock on at most two threads; how many a method uses is its own
choice (BM3D and scikit-image use one). Every score is written to --results as soon as it is known, so an interrupted run
continues where it stopped.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THREADS = 2
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(THREADS)

import numpy as np  # noqa: E402
import tifffile  # noqa: E402
from PIL import Image  # noqa: E402
from skimage.metrics import structural_similarity  # noqa: E402
from skimage.restoration import denoise_nl_means, denoise_tv_chambolle  # noqa: E402

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp")

# `weight / sigma` of denoise_tv_chambolle, one for grey and one for colour: the best on pictures of the BSDS500 training
# folder, as `--tune` finds it.
TV_WEIGHT = {"grey": 0.7, "colour": 0.7}

# Mean PSNR that others report for the same pictures, noise levels and kind of noise, not the same noise.
PUBLISHED = {
    "grey": {
        "BM3D": (
            {15: 31.07, 25: 28.57, 50: 25.62},
            "Zhang, Zuo, Chen, Meng, Zhang, Beyond a Gaussian denoiser, IEEE TIP 2017, Table II",
        ),
        "DnCNN": (
            {15: 31.73, 25: 29.23, 50: 26.23},
            "Zhang, Zuo, Chen, Meng, Zhang, Beyond a Gaussian denoiser, IEEE TIP 2017, Table II (DnCNN-S)",
        ),
        "DRUNet": (
            {15: 31.91, 25: 29.48, 50: 26.59},
            "Zhang, Li, Zuo, Zhang, Van Gool, Timofte, Plug-and-play image restoration, IEEE TPAMI 2021",
        ),
    },
    "colour": {
        "CBM3D": (
            {15: 33.52, 25: 30.71, 50: 27.38},
            "Zhang, Zuo, Zhang, FFDNet, IEEE TIP 2018",
        ),
        "DnCNN": (
            {15: 33.90, 25: 31.24, 50: 27.95},
            "Zhang, Li, Zuo, Zhang, Van Gool, Timofte, Plug-and-play image restoration, IEEE TPAMI 2021",
        ),
        "DRUNet": (
            {15: 34.30, 25: 31.69, 50: 28.51},
            "Zhang, Li, Zuo, Zhang, Van Gool, Timofte, Plug-and-play image restoration, IEEE TPAMI 2021",
        ),
    },
}


class Bad(Exception):
    """Something the user can mend, in a sentence."""


def axis(image):
    return -1 if image.ndim == 3 else None


def bm3d_of(noisy, sigma):
    try:
        import bm3d
    except ImportError as error:
        raise Bad("BM3D is missing: pip install bm3d, or leave it out with --methods") from error
    return (bm3d.bm3d_rgb if noisy.ndim == 3 else bm3d.bm3d)(noisy.astype(np.float64), sigma)


def nl_means_of(noisy, sigma):
    return denoise_nl_means(
        noisy, patch_size=5, patch_distance=6, h=0.8 * sigma, sigma=sigma, fast_mode=True, channel_axis=axis(noisy)
    )


def tv_of(noisy, sigma, weight=None):
    weight = weight or TV_WEIGHT["colour" if noisy.ndim == 3 else "grey"]
    return denoise_tv_chambolle(noisy, weight=weight * sigma, channel_axis=axis(noisy))


# Name -> function, and the settings that a kept score belongs to.
METHODS = {
    "bm3d": (bm3d_of, "bm3d, profile np; colour in the opponent space"),
    "nl-means": (nl_means_of, "scikit-image denoise_nl_means, 5x5 patches, distance 6, h 0.8 sigma, fast_mode"),
    "tv-chambolle": (
        tv_of,
        f"scikit-image denoise_tv_chambolle, weight {TV_WEIGHT['grey']} sigma in grey, {TV_WEIGHT['colour']} in colour",
    ),
}


def psnr(clean, estimate):
    return float(-10 * np.log10(np.mean((clean - estimate) ** 2)))


def ssim(clean, estimate):
    options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 1.0}
    return float(structural_similarity(clean, estimate, channel_axis=axis(clean), **options))


def read(path):
    if path.suffix in (".tif", ".tiff"):
        return tifffile.imread(path).astype(np.float64)
    return np.asarray(Image.open(path), dtype=np.float64) / 255


def pictures(folder, limit=None):
    found = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in PICTURES)
    if not found:
        raise Bad(f"{folder}: no pictures here")
    return found[:limit]


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Bad(f"{' '.join(map(str, command))} failed: {done.stderr.strip()}")
    return done.stdout


class Results:
    """Scores in a file: key -> settings -> picture -> numbers. Written whole, after every picture."""

    def __init__(self, path):
        self.path = Path(path)
        self.rows = json.loads(self.path.read_text()) if self.path.exists() else {}

    def scores(self, key, settings):
        """The scores of `key`, emptied if they were taken with other settings."""
        row = self.rows.setdefault(key, {"settings": settings, "pictures": {}})
        if row["settings"] != settings:
            row.update(settings=settings, pictures={})
        return row["pictures"]

    def save(self):
        draft = self.path.with_name(self.path.name + ".part")
        draft.write_text(json.dumps(self.rows, indent=1) + "\n")
        draft.replace(self.path)


def measure(results, key, method, clean_paths, noisy_folder, sigma, keep):
    """Denoises what has no score yet."""
    denoise, settings = METHODS[method]
    done = results.scores(key, settings)
    for path in clean_paths:
        kept = keep / method / f"{path.stem}.tif" if keep else None
        if path.stem in done and (kept is None or kept.exists()):
            continue
        noisy = read(noisy_folder / f"{path.stem}.tif")
        start, used = time.perf_counter(), time.process_time()
        estimate = denoise(noisy, sigma)
        seconds, processor = time.perf_counter() - start, time.process_time() - used
        estimate = np.clip(estimate, 0, 1)
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            tifffile.imwrite(kept, estimate.astype(np.float32), photometric="rgb" if estimate.ndim == 3 else None)
        clean = read(path)
        done[path.stem] = {
            "psnr": psnr(clean, estimate),
            "ssim": ssim(clean, estimate),
            "seconds": seconds,
            "cpu_seconds": processor,
        }
        results.save()
        print(f"{key} {path.stem}: {done[path.stem]['psnr']:.2f} dB, {seconds:.1f} s", file=sys.stderr)


def evaluate(arguments, folder, sigma, more):
    command = [arguments.proxlift, "evaluate", "--data", folder, "--sigma", f"{sigma}/255", "--clip", "--json", "--quiet"]
    command += ["--seed", arguments.seed, "--threads", THREADS, "--verbose", *more]
    if arguments.limit:
        command += ["--limit", arguments.limit]
    return json.loads(run(command))


def measure_proxlift(arguments, results, key, folder, sigma, choice, name):
    """proxlift's scores are taken afresh each time: they take seconds."""
    found = evaluate(arguments, folder, sigma, choice)
    done = results.scores(key, name)
    seconds = found["seconds"] / found["images"]
    for row in found["per_image"]:
        done[Path(row["image"]).stem] = {"psnr": row["psnr"], "ssim": row["ssim"], "seconds": seconds}
    results.save()


def export(arguments, kind, folder, clean_paths, sigma, into):
    """The noisy pictures, and a proof that both programs mean the same by PSNR and SSIM."""
    more = ["--method", "tv", "--export-noisy", into, "--overwrite"] + (["--grey"] if kind == "grey" else [])
    found = evaluate(arguments, folder, sigma, more)
    ours = {Path(row["image"]).stem: row for row in found["per_image"]}
    path = clean_paths[0]
    clean, noisy = read(path), read(into / f"{path.stem}.tif")
    if clean.shape != noisy.shape:
        raise Bad(f"{path} is read with shape {clean.shape}, its noisy copy has {noisy.shape}: is it {kind}?")
    for name, score in (("noisy_psnr", psnr(clean, noisy)), ("noisy_ssim", ssim(clean, noisy))):
        if abs(score - ours[path.stem][name]) > 1e-4:
            raise Bad(f"{path}: {name} is {score} here and {ours[path.stem][name]} in proxlift")


def summary(row, stems):
    taken = [row["pictures"][stem] for stem in stems if stem in row["pictures"]]
    if not taken:
        return None
    mean = {name: float(np.mean([one[name] for one in taken])) for name in ("psnr", "ssim", "seconds")}
    if all("cpu_seconds" in one for one in taken):
        mean["cpu_seconds"] = float(np.mean([one["cpu_seconds"] for one in taken]))
    return {"pictures": len(taken), **mean}


def kinds(arguments):
    return [(kind, Path(folder)) for kind, folder in (("grey", arguments.grey), ("colour", arguments.colour)) if folder]


def work(arguments, results, scratch):
    """All that was asked for, one block for each folder and noise level: (kind, sigma, stems)."""
    models = {}
    for path in arguments.model:
        channels = json.loads(run([arguments.proxlift, "inspect", path, "--json"]))["architecture"]["channels"]
        models.setdefault("grey" if channels == 1 else "colour", []).append(path)
    for kind, folder in kinds(arguments):
        paths = pictures(folder, arguments.limit)
        for sigma in arguments.sigma:
            block = f"{kind}-{sigma:g}"
            keep = Path(arguments.keep) / block if arguments.keep else None
            noisy = (keep or scratch / block) / "noisy"
            noisy.mkdir(parents=True, exist_ok=True)
            export(arguments, kind, folder, paths, f"{sigma:g}", noisy)
            variation = ["--method", "tv"] + (["--grey"] if kind == "grey" else [])
            measure_proxlift(arguments, results, f"{block}/proxlift tv", folder, f"{sigma:g}", variation, "--method tv")
            for path in models.get(kind, []):
                name = f"{block}/proxlift {Path(path).stem}"
                measure_proxlift(arguments, results, name, folder, f"{sigma:g}", ["--model", path], str(path))
            for method in arguments.methods:
                measure(results, f"{block}/{method}", method, paths, noisy, sigma / 255, keep)
            yield kind, sigma, [path.stem for path in paths]


def tune(arguments):
    """The best weight of total variation on pictures that no test set has: the middles of 20, evenly spaced."""
    paths = pictures(arguments.tune)
    paths = paths[:: max(1, len(paths) // 20)][:20]
    side = 160
    grid = [round(0.6 + 0.1 * i, 2) for i in range(13)]
    for kind in ("grey", "colour"):
        total = dict.fromkeys(grid, 0.0)
        for index, path in enumerate(paths):
            image = Image.open(path).convert("L" if kind == "grey" else "RGB")
            left, top = (image.width - side) // 2, (image.height - side) // 2
            clean = np.asarray(image.crop((left, top, left + side, top + side)), dtype=np.float64) / 255
            for sigma in arguments.sigma:
                noisy = clean + sigma / 255 * np.random.default_rng((1, index)).standard_normal(clean.shape)
                for weight in grid:
                    total[weight] += psnr(clean, np.clip(tv_of(noisy, sigma / 255, weight), 0, 1))
        mean = {weight: value / len(paths) / len(arguments.sigma) for weight, value in total.items()}
        best = max(mean, key=mean.get)
        others = ", ".join(f"{weight} {score:.2f}" for weight, score in mean.items())
        print(f"{kind}: weight {best} sigma ({mean[best]:.2f} dB); all: {others}")


def show(results, blocks):
    table = []
    for kind, sigma, stems in blocks:
        prefix = f"{kind}-{sigma:g}/"
        rows = {key[len(prefix) :]: summary(row, stems) for key, row in results.rows.items() if key.startswith(prefix)}
        rows = {name: row for name, row in rows.items() if row}
        published = {name: {"psnr": values[0].get(sigma), "source": values[1]} for name, values in PUBLISHED[kind].items()}
        published = {name: row for name, row in published.items() if row["psnr"]}
        table.append({"kind": kind, "sigma_255": sigma, "measured": rows, "published": published})
    return table


def print_table(table):
    for block in table:
        print(f"\n{block['kind']}, sigma {block['sigma_255']:g}/255 (results clipped to [0, 1])")
        print(f"  {'':<32} {'PSNR':>7} {'SSIM':>8} {'s/picture':>10} {'CPU s':>8} {'pictures':>9}")
        for name, row in sorted(block["measured"].items(), key=lambda item: item[1]["psnr"]):
            cpu = f"{row['cpu_seconds']:.2f}" if "cpu_seconds" in row else "-"
            numbers = f"{row['psnr']:7.2f} {row['ssim']:8.4f} {row['seconds']:10.3f} {cpu:>8} {row['pictures']:9}"
            print(f"  {name:<32} {numbers}")
        for name, row in block["published"].items():
            print(f"  {name + ', published':<32} {row['psnr']:7.2f}   {row['source']}")


def points(block):
    """(name, seconds, PSNR) of what was measured. A method on one thread has its processor time, which other programs
    on the machine do not lengthen."""
    for name, row in sorted(block["measured"].items(), key=lambda item: item[1]["psnr"]):
        yield name, min(row["seconds"], row.get("cpu_seconds", row["seconds"])), row["psnr"]


STYLE = """
text{fill:#333}.faint{fill:#666}.grid{stroke:#e4e4e4}.level{stroke:#999;stroke-dasharray:4 4}.paper{fill:#fff}
.ours{fill:#d55e00}.others{fill:#0072b2}
@media(prefers-color-scheme:dark){text{fill:#ddd}.faint{fill:#aaa}.grid{stroke:#363b45}.paper{fill:#1b1e24}
.ours{fill:#ff8c42}.others{fill:#56b4e9}}
"""
NAMES = {"bm3d": "BM3D", "nl-means": "non-local means", "tv-chambolle": "total variation", "proxlift tv": "proxlift TV"}
LETTER = 7.2  # the width of a letter, about
LINE = 16  # the height of a line of text


def plot(block, path):
    """PSNR against time as an SVG: a point for what was measured, a line for what others published without a time."""
    measured = list(points(block))
    published = [(f"{name}, published {row['psnr']:.2f}", row["psnr"]) for name, row in block["published"].items()]
    # Lines are named to the right of the frame, so the longest name makes the room.
    right = 16 + LETTER * max((len(words) for words, _ in published), default=0)
    left, top, bottom, frame_width, frame_height = 58, 56, 56, 600, 360
    width, height = left + frame_width + right, top + frame_height + bottom
    low = int(np.floor(np.log10(min(seconds for _, seconds, _ in measured))))
    high = max(int(np.ceil(np.log10(max(seconds for _, seconds, _ in measured)))), low + 1)
    scores = [score for *_, score in measured] + [score for _, score in published]
    least, most = np.floor(min(scores) * 2) / 2, np.ceil(max(scores) * 2) / 2

    def across(seconds):
        return left + (np.log10(seconds) - low) / (high - low) * frame_width

    def up(score):
        return top + (most - score) / (most - least) * frame_height

    def text(x, y, words, anchor="start", kind=""):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{words}</text>'

    def line(x1, y1, x2, y2, kind):
        return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'

    title = f"Denoising {block['kind']} pictures, noise {block['sigma_255']:g}/255"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"'
        f' font-family="Helvetica, Arial, sans-serif" font-size="13" role="img" aria-label="{title}">',
        f"<style>{STYLE}</style>",
        '<rect width="100%" height="100%" class="paper"/>',
        f'<text x="{left}" y="24" font-size="16" font-weight="bold">{title}</text>',
        text(left, 43, "PSNR in dB against seconds a picture: better is higher, faster is further left", kind="faint"),
    ]
    for power in range(low, high + 1):
        x = across(10.0**power)
        parts += [line(x, top, x, top + frame_height, "grid")]
        parts += [text(x, top + frame_height + 20, f"{10.0**power:g} s", "middle")]
    for score in np.arange(least, most + 0.01, 0.5):
        parts += [line(left, up(score), left + frame_width, up(score), "grid")]
        parts += [text(left - 8, up(score) + 4, f"{score:.1f}", "end")]
    taken, named = [], top - LINE
    for words, score in sorted(published, key=lambda one: -one[1]):
        # Names of lines that are near each other are pushed apart.
        named = max(up(score) + 4, named + LINE)
        parts += [line(left, up(score), left + frame_width, up(score), "level")]
        parts += [text(left + frame_width + 8, named, words, kind="faint")]
    dots = [(across(seconds), up(score)) for _, seconds, score in measured]
    levels = [up(score) for _, score in published]
    for (x, y), (name, _, score) in zip(dots, measured):
        kind, words = "ours" if name.startswith("proxlift") else "others", f"{NAMES.get(name, name)} {score:.2f}"
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" class="{kind}"/>']
        box = label_place(x, y, LETTER * len(words), taken, dots, levels, (left, left + frame_width))
        taken.append(box)
        parts += [text(box[0], box[3] - 4, words, kind=kind)]
    Path(path).write_text("\n".join([*parts, "</svg>"]) + "\n")


def label_place(x, y, wide, taken, dots, levels, frame):
    """The box (left, top, right, bottom) of a point's label: beside it, else further up or down, where nothing is."""

    def free(box):
        left, top, right, bottom = box
        inside = left >= frame[0] and right <= frame[1] and not any(top < level < bottom for level in levels)
        no_label = all(right < a or c < left or bottom < b or d < top for a, b, c, d in taken)
        return inside and no_label and not any(left - 6 < a < right + 6 and top - 6 < b < bottom + 6 for a, b in dots)

    def boxes():
        for away in range(0, 8 * LINE, LINE // 2):
            for middle in (y - away, y + away):
                for start in (x + 10, x - 10 - wide, x - wide / 2):
                    yield start, middle - LINE / 2, start + wide, middle + LINE / 2

    # Where there is no room at all, the right place is beside the point.
    return next(filter(free, boxes()), (x + 10, y - LINE / 2, x + 10 + wide, y + LINE / 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grey", metavar="DIR", help="grey pictures, such as BSD68")
    parser.add_argument("--colour", metavar="DIR", help="colour pictures, such as CBSD68")
    parser.add_argument("--model", metavar="FILE", action="append", default=[], help="a proxlift model; may be repeated")
    parser.add_argument("--methods", default=",".join(METHODS), help="of others, with commas; 'none' for none")
    parser.add_argument("--sigma", default="15,25,50", help="noise levels, in grey levels of 8 bits")
    parser.add_argument("--seed", type=int, default=0, help="of the noise")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N pictures of each folder")
    parser.add_argument("--results", default="quality.json", metavar="FILE", help="scores, kept to go on with")
    parser.add_argument("--keep", metavar="DIR", help="keep all noisy and denoised pictures, as float TIFF")
    parser.add_argument("--proxlift", default="target/release/proxlift", metavar="PATH")
    parser.add_argument("--tune", metavar="DIR", help="only find the weight of total variation, on these pictures")
    parser.add_argument("--plot", metavar="FILE", help="an SVG of PSNR against time, of the first folder and noise level")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    arguments.sigma = [float(part) for part in arguments.sigma.split(",")]
    arguments.methods = [] if arguments.methods == "none" else arguments.methods.split(",")
    unknown = set(arguments.methods) - set(METHODS)
    if unknown:
        raise Bad(f"--methods: {', '.join(sorted(unknown))} is none of {', '.join(METHODS)}")
    if arguments.tune:
        return tune(arguments)
    if not kinds(arguments):
        raise Bad("give --grey DIR, --colour DIR or both")
    results = Results(arguments.results)
    with tempfile.TemporaryDirectory() as scratch:
        blocks = list(work(arguments, results, Path(scratch)))
    table = show(results, blocks)
    if arguments.plot:
        plot(table[0], arguments.plot)
    if arguments.json:
        return print(json.dumps(table, indent=2))
    print_table(table)


if __name__ == "__main__":
    try:
        main()
    except (Bad, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped; what was measured is kept", file=sys.stderr)
        sys.exit(130)
