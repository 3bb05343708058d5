"""What each direct dependency costs to compile: processor seconds of the crates that would go with it, and of those that
others need too.

    python3 experiments/dependencies.py FOLDER      builds everything once, without what was built before, in FOLDER
"""

import json
import os
import pathlib
import subprocess
import sys

WRAPPER = """#!/usr/bin/env bash
exec 3>&2
TIMEFORMAT="$CARGO_PKG_NAME %U %S"
{ time "$@" 2>&3; } 2>> "$COSTS"
"""
OURS = ["proxlift", "proxlift-cli"]


def graph():
    """Names of all crates that are built, with those that each of them needs, on this machine."""
    target = next(line.split()[1] for line in text("rustc", "-vV").splitlines() if line.startswith("host"))
    data = json.loads(text("cargo", "metadata", "--format-version", "1", "--filter-platform", target))
    names = {package["id"]: package["name"] for package in data["packages"]}
    needs = {}
    for node in data["resolve"]["nodes"]:
        of_use = [d for d in node["deps"] if any(kind["kind"] != "dev" for kind in d["dep_kinds"])]
        needs.setdefault(names[node["id"]], set()).update(names[d["pkg"]] for d in of_use)
    return needs


def text(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def reached(needs, without=None):
    found, open_ends = set(), [crate for crate in OURS]
    while open_ends:
        crate = open_ends.pop()
        if crate not in found and crate != without:
            found.add(crate)
            open_ends += needs[crate]
    return found


def below(needs, crate):
    return reached({**needs, OURS[0]: {crate}, OURS[1]: set()}) - set(OURS)


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    folder = pathlib.Path(sys.argv[1]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    wrapper, costs = folder / "wrapper", folder / "costs.txt"
    wrapper.write_text(WRAPPER)
    wrapper.chmod(0o755)
    if not costs.exists():
        partial = folder / "costs.new"
        partial.unlink(missing_ok=True)
        added = {"RUSTC_WRAPPER": str(wrapper), "COSTS": str(partial), "CARGO_TARGET_DIR": str(folder / "target")}
        subprocess.run(["cargo", "build", "--release"], check=True, env={**os.environ, **added})
        partial.rename(costs)
    seconds = {}
    for line in costs.read_text().splitlines():
        words = line.split()
        # Lines of calls that compile nothing have no name.
        if len(words) == 3:
            seconds[words[0]] = seconds.get(words[0], 0) + float(words[1]) + float(words[2])
    needs = graph()
    everything = reached(needs)
    direct = sorted((needs[OURS[0]] | needs[OURS[1]]) - set(OURS))
    print(f"{'dependency':<18} {'alone':>8} {'in all':>8}  seconds; crates that it alone brings")
    for crate in direct:
        alone = everything - reached(needs, without=crate)
        cost = [sum(seconds.get(name, 0) for name in names) for names in (alone, below(needs, crate))]
        more = ", ".join(sorted(alone - {crate}))
        print(f"{crate:<18} {cost[0]:>8.1f} {cost[1]:>8.1f}  {more}")
    others = sum(seconds.get(crate, 0) for crate in everything - set(OURS))
    ours = sum(seconds.get(crate, 0) for crate in OURS)
    print(f"all dependencies {others:.0f} s, proxlift itself {ours:.0f} s")


if __name__ == "__main__":
    main()
