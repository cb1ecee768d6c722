"""What Mondrian tables are still good for: loss, risk, query error and models' accuracy over k, in three encodings.

python benchmarks/studies/utility.py [--sets german_credit adult] [--k 2 5 10 20 50]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))
from _record import parse, provenance, write
from mondrian import QUASI

import countervail as cv
from countervail.measure.utility import ENCODINGS

RESULT = Path(__file__).parents[1] / "results" / "utility.json"


def table(name: str) -> cv.Table:
    """Adult with its eight quasi-identifiers; others as they are declared."""
    loaded = cv.load(name)
    return loaded.with_roles(quasi=QUASI["Q8"], sensitive=[]) if name == "adult" else loaded


def run(name: str, ks: list[int]) -> dict[str, Any]:
    """A sweep per encoding."""
    out = {}
    for encoding in ENCODINGS:
        start = time.process_time()
        found = cv.measure.sweep(table(name), ks, encoding=encoding)
        out[encoding] = {**found.to_dict(), "seconds": time.process_time() - start}
        shown = ", ".join(f"k={p.k} {100 * p.model.released.value:.1f}%" for p in found.points if p.model is not None)
        print(f"{name}, {encoding}: {shown}. {found.words}", flush=True)
    return out


def main() -> None:
    """Run the study and write its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["german_credit", "adult"])
    parser.add_argument("--k", nargs="+", type=int, default=[2, 5, 10, 20, 50])
    options = parse(parser, RESULT)
    about = provenance(options.sets, seed=0)
    found = {name: run(name, options.k) for name in options.sets}
    write(options, {**about, "sets": found})


if __name__ == "__main__":
    main()
