"""Microaggregation beside its published losses, and beside Mondrian on numbers: SSE / SST, NCP, query error, time.

The reference sets "Census" (CASC, 1,080 x 13) and "Tarragona" (834 x 13) come with R's sdcMicro (CASCrefmicrodata.rda
and Tarragona.rda of its folder data; write each with write.csv(row.names=FALSE)); name the folder of census.csv and
tarragona.csv with --reference, or they are left out. Published: the losses of MDAV (100 SSE / SST) that Domingo-Ferrer,
Martinez-Balleste, Mateo-Sanz, Sebe: Efficient multivariate data-oriented microaggregation (2006) report, and many
others after it. Numbers of default_credit, ACS income and Adult are compared with Mondrian's at the same k; NCP is that
of the ranges of groups.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))
from _record import parse, provenance, write

import countervail as cv

RESULTS = Path(__file__).resolve().parents[1] / "results" / "microaggregation.json"
REPORTED = {
    "census": {3: 5.6922, 5: 9.0884, 10: 14.1560},
    "tarragona": {3: 16.9326, 5: 22.4617, 10: 33.1929},
}
SETS = {
    "default_credit": ["LIMIT_BAL", "AGE", "BILL_AMT1", "PAY_AMT1"],
    "acs_income_ca_2018": ["AGEP", "SCHL", "WKHP"],
    "adult": ["age", "education-num", "hours-per-week", "capital-gain"],
}
METHODS = {
    "mdav": lambda k: cv.Microaggregation(k),
    "v-mdav": lambda k: cv.Microaggregation(k, method="v-mdav"),
    "mondrian": lambda k: cv.Mondrian(k),
}
ROWS = 50_000


def reference(folder: Path) -> dict[str, Any]:
    """Losses of both methods on the reference sets, beside the published ones."""
    found: dict[str, Any] = {}
    for name, reported in REPORTED.items():
        path = folder / f"{name}.csv"
        frame = pd.read_csv(path)
        table = cv.Table.from_frame(frame, quasi_identifiers=list(frame.columns))
        rows = {}
        for k, theirs in reported.items():
            ours = {
                m: 100 * cv.measure.squared_loss(table, METHODS[m](k).fit(table).cell_of_) for m in ("mdav", "v-mdav")
            }
            rows[str(k)] = {**ours, "mdav_reported": theirs}
            print(f"{name} k={k}: {ours['mdav']:.4f} (reported {theirs}), v-mdav {ours['v-mdav']:.4f}", flush=True)
        found[name] = {"n": len(frame), "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "loss_percent": rows}
    return found


def numbers(name: str, columns: list[str], k: int, rows: int) -> dict[str, Any]:
    """One set's numbers, each method at the same k."""
    table = cv.load(name)
    frame = table.frame[columns].astype(float)
    frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))[:rows]].reset_index(drop=True)
    people = cv.Table.from_frame(frame, quasi_identifiers=columns)
    out: dict[str, Any] = {"n": len(frame), "columns": columns}
    for method, make in METHODS.items():
        make(k).fit(people.take(np.arange(500)))
        start = time.process_time()
        fitted = make(k).fit(people)
        seconds = time.process_time() - start
        release = fitted.protect(people)
        out[method] = {
            "fit_cpu_seconds": seconds,
            "sse_percent": 100 * cv.measure.squared_loss(people, fitted.cell_of_),
            "ncp_percent": 100 * float(cv.measure.ncp(release).mean()),
            "query_error_median": cv.measure.query_error(release, columns=2).median,
            "classes": len(release.regions),
            "smallest_class": int(np.bincount(release.classes()).min()),
        }
        row = out[method]
        print(
            f"{name} n={len(frame)} {method}: SSE {row['sse_percent']:.3f}%, NCP {row['ncp_percent']:.3f}%, "
            f"query error {row['query_error_median']:.3f}, {seconds:.2f} s",
            flush=True,
        )
    return out


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", type=Path, help="a folder with census.csv and tarragona.csv")
    parser.add_argument("--k", type=int, default=10)
    given = parse(parser, RESULTS, quick="2,000 rows of each set")
    rows = 2_000 if given.quick else ROWS
    about = provenance(SETS, seed=0)
    found = {name: numbers(name, columns, given.k, rows) for name, columns in SETS.items()}
    write(
        given,
        {**about, "k": given.k, "reference": reference(given.reference) if given.reference else {}, "sets": found},
    )


if __name__ == "__main__":
    main()
