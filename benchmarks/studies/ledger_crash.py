"""Does the ledger survive? kill -9 at random moments with four processes, and two processes racing for a last debit.

After every kill: each answer that was sent is the stored one and has its entry, the totals are the sum of the entries,
and the file opens. A kill shows what a crashing process leaves; what a power cut leaves is up to the disk's fsync.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks" / "speed"), str(ROOT / "tests" / "ledger")]

from _record import code, parse, versions, write  # noqa: E402
from killed_processes import crash, race  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "ledger_crash.json"


def main() -> None:
    """Run both, and write down what came out; a broken promise stops the run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--races", type=int, default=1000)
    chosen = parse(parser, RESULTS)
    where = {**code(), "seed": None, "versions": versions()}
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        found = crash(Path(folder), chosen.kills)
        seconds = time.perf_counter() - start
    crashes = {
        "kills": found.kills,
        "processes": 4,
        "killed_while": dict(sorted(found.phases.items())),
        "sent": found.sent,
        "debited": found.debited,
        "debited_without_answer": found.lost,
        "sent_without_debit": 0,
        "seconds": seconds,
    }
    print(json.dumps(crashes))
    with tempfile.TemporaryDirectory() as folder:
        winners = race(Path(folder), chosen.races)
    races = {"races": len(winners), "exactly_one": sum(n == 1 for n in winners), "none": winners.count(0)}
    print(json.dumps(races))
    write(chosen, {**where, "crashes": crashes, "races": races})
    assert races["exactly_one"] == races["races"]


if __name__ == "__main__":
    main()
