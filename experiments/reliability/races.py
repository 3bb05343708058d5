"""Four processes start in one folder at once, in turn a training and a reproduction: one wins, the others are told who did.

    python3 experiments/reliability/races.py FOLDER [COUNT]     100 starts unless said; goes on where it was stopped
"""

import shutil
import subprocess

from common import PROGRAM, Tally, arguments

TRAIN = "train -q --depth 3 --features 3 --patch 12 --count 20 --epochs 10 --out".split()
REPRODUCE = "reproduce -q --tiny --only figure1 --out".split()


def main():
    folder, count = arguments(100)
    tally = Tally(folder, "races")
    while tally["starts of 4"] < count:
        trains = tally["starts of 4"] % 2 == 0
        place, words = folder / "run", TRAIN if trains else REPRODUCE
        shutil.rmtree(place, ignore_errors=True)
        children = [subprocess.Popen([PROGRAM, *words, place], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(4)]
        ended = [(child.communicate()[1].decode(), child.returncode) for child in children]
        winners = sum(code == 0 for _, code in ended)
        # A reproduction that starts when the first has ended goes on with it, and has nothing left to do.
        sound = winners == 1 or not trains and winners > 1 and all(code in (0, 2) for _, code in ended)
        tally.add(f"{words[0]}: " + ("one winner" if winners == 1 else "one after another" if sound else f"{winners} WINNERS"))
        told = sum(code == 2 and ("process" in said or "not empty" in said) for said, code in ended)
        tally.add("losers told why", told)
        tally.add("losers not told why", 4 - winners - told)
        if trains:
            lines = len((place / "history.jsonl").read_text().splitlines())
            tally.add("history whole" if lines == 10 else "HISTORY SPOILT")
        tally.add("starts of 4")
    tally.table()


main()
