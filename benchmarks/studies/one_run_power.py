"""Which share of the noise a one-run audit misses at the rho of epsilon 1 and delta 1e-6, by the number of canaries.

Counts of a column in which every canary is alone; each run is wrong with a chance of 1e-3 at most.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "speed"), str(ROOT / "tests" / "protect" / "dp")]

from _record import parse, write  # noqa: E402
from one_run_mechanisms import DELTA, EPSILON, GUESSES, MANY, TINY, VERY_MANY, a_count  # noqa: E402

from _private import provenance  # noqa: E402
from countervail.core.guarantee.composition import zcdp_epsilon, zcdp_rho  # noqa: E402
from countervail.testing import audit_one_run  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "one_run_power.json"
CASES = ((MANY, DELTA), (1_000_000, 1e-8), (VERY_MANY, TINY))
PARTS = (1.0, 1.5, 2.0, 3.0)


def power(canaries: int, delta: float, part: float, runs: int) -> dict[str, Any]:
    """How many runs refute the rho that the noise would have if it were whole."""
    rho, start = zcdp_rho(EPSILON, DELTA), time.process_time()
    seen = [audit_one_run(a_count(part), canaries, guesses=GUESSES, delta=delta, alpha=1e-3) for _ in range(runs)]
    caught, spent = sum(e.refutes_rho(rho) for e in seen), (time.process_time() - start) / runs
    bound, claim = float(np.median([e.epsilon for e in seen])), zcdp_epsilon(rho, delta)
    said = f"{caught} of {runs}, median {bound:.2f} of {claim:.2f}"
    print(f"{canaries:>9,} delta {delta:g} noise / {part:g}: {said}", flush=True)
    return {"caught": caught, "runs": runs, "median_epsilon": bound, "claim": claim, "cpu_seconds": spent}


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="of the largest case; ten times as many of the smallest")
    given = parse(parser, RESULTS, quick="one run each of the smallest case")
    cases = CASES[:1] if given.quick else CASES
    about, found = provenance(None), []
    for many, delta in cases:
        runs = 1 if given.quick else given.runs * (10 if many == MANY else 1)
        by_part = {f"{p:g}": power(many, delta, p, runs) for p in PARTS}
        found.append({"canaries": many, "delta": delta, "by_part": by_part})
    write(given, {**about, "guesses": GUESSES, "alpha": 1e-3, "cases": found})


if __name__ == "__main__":
    main()
