"""Differential inference testing on Adult: the fast path, the general path, and naive re-running with scikit-learn.

All three in one run, so that the ratios are of one machine in one state. Naive: for each person anonymise the others
with this package, write the release as a frame of cells, ask cell by cell whether it contains the person's value, fit
scikit-learn's BernoulliNB on the rows with text labels, twice. The general path does the same on columns of regions.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _dit_sets import ADULT, adult, adult_settings
from _record import parse, provenance, write
from sklearn.naive_bayes import BernoulliNB

import countervail as cv
from countervail.core.cells import fits

RESULTS = Path(__file__).resolve().parents[1] / "results" / "dit.json"
KS, LS = (1, 2, 5, 20, 64), (2, 3, 5)
OURS_KS = (2, 5, 20)
GENERAL, NAIVE = 160, 6


def timed(work: Callable[[], Any], runs: int = 3) -> tuple[float, float, Any]:
    """Least processor time, least time by the clock, and the last result."""
    spent, passed, result = [], [], None
    for _ in range(runs):
        a, b = time.process_time(), time.perf_counter()
        result = work()
        spent.append(time.process_time() - a)
        passed.append(time.perf_counter() - b)
    return min(spent), min(passed), result


def naive(protector: cv.published.BasicMondrian, table: cv.Table, rows: list[int]) -> list[float]:
    """As one would write it first."""
    out = []
    for row in rows:
        predictions = []
        for others in (np.arange(len(table)), np.delete(np.arange(len(table)), row)):
            part = table.take(others)
            shown = cv.published.BasicMondrian(**protector.get_params(deep=False)).fit(part).protect(part).to_frame()
            person = table.frame.iloc[row]
            features = np.column_stack([[fits(person[n], cell) for cell in shown[n]] for n in ADULT])
            model = BernoulliNB().fit(features, shown["occupation"].astype(str))
            predicted = model.predict_proba(np.ones((1, len(ADULT))))[0]
            predictions.append(dict(zip(model.classes_, predicted)))
        a, b = predictions
        out.append(sum(abs(a.get(s, 0) - b.get(s, 0)) for s in {*a, *b}) / 2)
    return out


def speed(protector: cv.Mondrian | cv.published.BasicMondrian, table: cv.Table, whole: cv.Table) -> dict[str, float]:
    """Seconds of the fast path on the sample and on all rows."""
    test = cv.DifferentialInferenceTest(protector, beside=0, path="fast")
    cpu, clock, result = timed(lambda: test.run(table))
    cpu_all, clock_all, _ = timed(lambda: test.run(whole), 2)
    shown = {n: v for n, v in protector.get_params(deep=False).items() if n in ("k", "l", "choose")}
    shown["kind"] = protector.name
    print(f"{shown!s:<70} {len(table):,} rows {cpu:.3f} s   {len(whole):,} rows {cpu_all:.3f} s (processor)")
    figures = {"cpu_10000": cpu, "clock_10000": clock, "cpu_45222": cpu_all, "clock_45222": clock_all}
    return {**figures, "mean": result.mean}


def main() -> None:
    """Measure, compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    chosen = parse(parser, RESULTS, quick="500 rows of Adult, a handful of people")
    about = provenance(["adult"], 0)
    rows, all_rows, people, slowly = (500, 1000, 4, 1) if chosen.quick else (10_000, None, GENERAL, NAIVE)
    table, whole, common = adult(rows, 0), adult(all_rows, 0), adult_settings()
    settings = [{"k": k} for k in KS] + [{"k": 1, "l": x, "diversity": "frequency"} for x in LS]
    small = table.take(np.arange(200))
    basic = cv.published.BasicMondrian
    for protector in (basic(k=2, **common), cv.Mondrian(k=2)):
        cv.DifferentialInferenceTest(protector, beside=0).run(small)
    found_fast = [{**given, **speed(basic(**given, **common), table, whole)} for given in settings]
    settings = [{"choose": c, "k": k} for c in ("gain", "span") for k in OURS_KS]
    diverse = [{"l": 2, "diversity": d, "sensitive": "occupation"} for d in ("distinct", "frequency")]
    settings += [{"choose": c, "k": 2, **d} for c in ("gain", "span") for d in diverse]
    ours = [{**given, **speed(cv.Mondrian(**given), table, whole)} for given in settings]
    five = basic(k=5, **common)
    fast_cpu, fast_clock, fast = timed(lambda: cv.DifferentialInferenceTest(five, beside=0).run(table))
    speeds = {}
    for jobs in (1, 2):
        test = cv.DifferentialInferenceTest(five, beside=0, path="general", n_records=people, n_jobs=jobs)
        test.run(small)
        _, clock, general = timed(lambda test=test: test.run(table), 2)
        speeds[jobs] = people / clock
        print(f"general path, {jobs} process(es): {speeds[jobs]:.1f} people per second")
    found = dict(zip(fast.rows.tolist(), fast.d_pp.tolist()))
    gap = max(abs(found[i] - d) for i, d in zip(general.rows.tolist(), general.d_pp.tolist()))
    _, clock, slow = timed(lambda: naive(five, table, general.rows[:slowly].tolist()), 1)
    naive_gap = max(abs(found[i] - d) for i, d in zip(general.rows.tolist(), slow))
    fast_speed = len(table) / fast_clock
    ratios = {"fast_to_general_one_process": fast_speed / speeds[1], "fast_to_general": fast_speed / speeds[2]}
    ratios["fast_to_naive"] = fast_speed / (slowly / clock)
    ratios["general_one_process_to_naive"] = speeds[1] / (slowly / clock)
    for name, value in ratios.items():
        print(f"{name}: {value:,.0f}x")
    print(f"largest difference to the general path {gap:.1e}, to naive re-running {naive_gap:.1e}")
    out = {
        **about,
        "fast": found_fast,
        "fast_ours": ours,
        "fast_people_per_second": fast_speed,
        "fast_cpu": fast_cpu,
        "general_people_per_second": {str(j): s for j, s in speeds.items()},
        "naive_people_per_second": slowly / clock,
        "ratios": ratios,
        "largest_difference": {"general": gap, "naive": naive_gap},
        "n": {"general": people, "naive": slowly},
    }
    write(chosen, out)


if __name__ == "__main__":
    main()
