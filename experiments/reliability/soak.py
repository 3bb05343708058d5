"""A folder of many pictures, bad ones among them: memory stays, every bad one is named, the exit code says it.

    python3 experiments/reliability/soak.py FOLDER [COUNT]      20,000 pictures unless said
"""

import shutil
import subprocess
import time

from common import PROGRAM, arguments, png


def resident(process):
    """Kilobytes in memory, if the process lives."""
    try:
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    except (OSError, StopIteration):
        return None


def main():
    folder, count = arguments(20_000)
    pictures, results = folder / "pictures", folder / "results"
    pictures.mkdir(exist_ok=True)
    bad = []
    for i in range(count):
        path = pictures / f"{i:06}.png"
        if not path.exists():
            png(path, 40 + i % 23, 40 + i % 19, channels=1 if i % 3 else 3, seed=i)
            if i % 100 == 99:
                data = path.read_bytes()
                path.write_bytes(data[: len(data) // 2])
        if i % 100 == 99:
            bad.append(path.name)
    # Those of an earlier run would count as done.
    shutil.rmtree(results, ignore_errors=True)
    words = [PROGRAM, "denoise", "-q", pictures, "--model", "small", "--overwrite", "-o", results]
    start, samples = time.time(), []
    with open(folder / "said.txt", "w+", encoding="utf-8") as said:
        process = subprocess.Popen(words, stderr=said)
        while process.poll() is None:
            # A directory listing of thousands takes its time, but counts.
            done = sum(1 for _ in results.glob("*.png")) if results.exists() else 0
            memory = resident(process)
            if memory:
                samples.append((done, memory))
            time.sleep(1)
        said.seek(0)
        text = said.read()
    # From the thousandth picture on; the last samples are of a process that gives its memory back.
    late = [memory for done, memory in samples if done >= min(1000, count // 10)]
    first = late[: max(1, len(late) // 10)]
    growth = 100 * (max(late) / max(first) - 1) if late else float("nan")
    print(f"{'pictures':<36} {count:>10}")
    print(f"{'bad ones':<36} {len(bad):>10}")
    print(f"{'bad ones named':<36} {sum(name in text for name in bad):>10}")
    print(f"{'written':<36} {sum(1 for _ in results.glob('*.png')):>10}")
    print(f"{'exit code':<36} {process.returncode:>10}")
    print(f"{'largest memory in MB':<36} {max(m for _, m in samples) / 1000 if samples else 0:>10.1f}")
    print(f"{'growth from the thousandth on, in %':<36} {growth:>10.1f}")
    print(f"{'seconds':<36} {time.time() - start:>10.0f}")


main()
