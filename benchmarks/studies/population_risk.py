"""Uniqueness in a population that is known: samples of Adult and of ACS income, estimates beside the truth.

The whole set is taken for the population. Simple random samples of 1 to 50% are drawn, each several times; for each the
numbers of population uniques by Pitman, Zayatz and SNB, the one of Dankar et al.'s rule, and the mean chance of finding
a person of the sample (by Pitman's formula, and by Benedetti and Franconi's, as sdcMicro's individual risk) are
compared with what is counted in the population.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))
from _record import parse, provenance, write

import countervail as cv
from countervail.measure.population import individual_risk

RESULTS = Path(__file__).resolve().parents[1] / "results" / "population_risk.json"
SETS = {
    "adult": ["age", "sex", "race", "marital-status", "education-num", "occupation"],
    "acs_income_ca_2018": ["AGEP", "SEX", "RAC1P", "OCCP", "SCHL"],
}
FRACTIONS = (0.01, 0.05, 0.1, 0.2, 0.5)
DRAWS = 10


def samples(name: str, columns: list[str], draws: int) -> dict[str, Any]:
    """All samples of one set."""
    everybody = cv.load(name).frame[columns].reset_index(drop=True)
    key = everybody.groupby(columns, dropna=False, observed=True).ngroup().to_numpy()
    sizes = np.bincount(key)
    true, n = int((sizes == 1).sum()), len(key)
    population = cv.Table.from_frame(everybody, quasi_identifiers=columns)
    rng = np.random.default_rng(0)
    rows: dict[str, Any] = {}
    for fraction in FRACTIONS:
        found: dict[str, list[float | None]] = {}
        chosen = []
        for _ in range(draws):
            at = rng.choice(n, int(fraction * n), replace=False)
            here = population.take(at)
            got = cv.measure.population_uniques(here, n)
            counted = cv.measure.k_map(here, population)
            classes = np.bincount(np.unique(key[at], return_inverse=True)[1])
            known = {
                "pitman": got.pitman,
                "zayatz": got.zayatz,
                "snb": got.snb,
                "rule": got.estimate,
                "journalist": got.journalist,
                "journalist_franconi": float(individual_risk(classes, got.fraction) @ classes) / len(at),
                "journalist_true": counted.journalist,
            }
            chosen.append(got.chosen)
            for what, value in known.items():
                found.setdefault(what, []).append(value)
        rows[str(fraction)] = {**{w: _spread(v) for w, v in found.items()}, "chosen": sorted(set(chosen))}
        row = rows[str(fraction)]
        print(f"{name} {fraction}: true {true}, rule {row['rule']}, journalist {row['journalist']}", flush=True)
    return {"n": n, "columns": columns, "uniques": true, "draws": draws, "fractions": rows}


def _spread(values: list[float | None]) -> dict[str, Any]:
    """Mean and range over the draws; how often a model did not fit."""
    there = [v for v in values if v is not None]
    if not there:
        return {"mean": None, "low": None, "high": None, "failed": len(values)}
    return {"mean": float(np.mean(there)), "low": min(there), "high": max(there), "failed": len(values) - len(there)}


def main() -> None:
    """Draw, estimate, count, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = parse(parser, RESULTS, quick="one draw of each size")
    about = provenance(SETS, seed=0)
    found = {name: samples(name, columns, 1 if given.quick else DRAWS) for name, columns in SETS.items()}
    write(given, {**about, "sets": found})


if __name__ == "__main__":
    main()
