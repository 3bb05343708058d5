"""Four processes start a training in one folder at once: one wins, the others are told who did.

    python3 experiments/reliability/races.py FOLDER [COUNT]     100 starts unless said; goes on where it was stopped
"""

import shutil
import subprocess

from common import PROGRAM, Tally, arguments

WORDS = "train -q --depth 3 --features 3 --patch 12 --count 20 --epochs 10 --out".split()


def main():
    folder, count = arguments(100)
    tally = Tally(folder, "races")
    while tally["starts of 4"] < count:
        place = folder / "run"
        shutil.rmtree(place, ignore_errors=True)
        children = [subprocess.Popen([PROGRAM, *WORDS, place], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(4)]
        ended = [(child.communicate()[1].decode(), child.returncode) for child in children]
        winners = sum(code == 0 for _, code in ended)
        tally.add("one winner" if winners == 1 else f"{winners} WINNERS")
        told = sum(code == 2 and ("process" in said or "not empty" in said) for said, code in ended)
        tally.add("losers told why", told)
        lines = len((place / "history.jsonl").read_text().splitlines())
        tally.add("history whole" if lines == 10 else "HISTORY SPOILT")
        tally.add("starts of 4")
    tally.table()


main()
