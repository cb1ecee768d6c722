"""How fast is exact noise? Our randomiser beside OpenDP's in the same run, the noisy table, and private explanations.

Adult, eleven features, 60% of the rows for training, a forest of 100 trees. Times are CPU seconds on one thread; "own"
is what an answer costs beyond the model's time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from _record import parse, write  # noqa: E402

import countervail as cv  # noqa: E402
from _private import load_declared, provenance  # noqa: E402
from countervail.core.rng import Words, generator  # noqa: E402
from countervail.model import train_forest  # noqa: E402
from countervail.protect.dp.randomiser import Randomiser  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "dp.json"
SEED = 0
TARGETS = {"table_s": 0.3, "own_ms": 1.0, "thousand_s": 10.0, "opendp_ratio": 5.0}


class Timed:
    """The model, with its time added up."""

    def __init__(self, model: Any, names: list[str]) -> None:
        self._model, self.classes_, self.feature_names_in_ = model, model.classes_, np.array(names)
        self.seconds, self.rows = 0.0, 0

    def predict(self, frame: Any) -> Any:
        """Labels."""
        return self._ask(self._model.predict, frame)

    def predict_proba(self, frame: Any) -> Any:
        """Scores."""
        return self._ask(self._model.predict_proba, frame)

    def _ask(self, call: Callable[[Any], Any], frame: Any) -> Any:
        start = time.process_time()
        try:
            return call(frame)
        finally:
            self.seconds += time.process_time() - start
            self.rows += len(frame)


def timed(job: Callable[[], Any], repeats: int) -> list[float]:
    """CPU seconds of each repeat."""
    job()
    out = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        out.append(time.process_time() - start)
    return out


def sampler(repeats: int) -> dict[str, Any]:
    """Microseconds per value: ours on 330,000 values, OpenDP's vector Laplace and scalar randomised response."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    sizes = [101] * 6 + [16, 9, 2, 5, 24]
    ours = Randomiser.of(sizes, [True] * 6 + [False] * 5, [Fraction(1, 11)] * 11)
    rng = generator(SEED)
    codes = np.stack([rng.integers(0, m, 30_000) for m in sizes], axis=1)
    seconds = timed(lambda: ours.draw(codes, Words()), repeats)
    response = dp.m.make_randomized_response(categories=[str(i) for i in range(24)], prob=0.1)
    domain = dp.vector_domain(dp.atom_domain(T=int))
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=1100.0)
    values = codes[:, :1].ravel().tolist()
    labels = [str(v % 24) for v in values[:2000]]
    per = {
        "ours_us": 1e6 * float(np.median(seconds)) / codes.size,
        "opendp_laplace_us": 1e6 * float(np.median(timed(lambda: laplace(values), repeats))) / len(values),
        "opendp_response_us": 1e6 * float(np.median(timed(lambda: [response(v) for v in labels], repeats))) / 2000,
    }
    theirs = min(per["opendp_laplace_us"], per["opendp_response_us"])
    return {**per, "opendp_ratio": theirs / per["ours_us"], "values": int(codes.size), "repeats": repeats}


def noisy_table(table: cv.Table, missing: tuple[str, ...], repeats: int) -> dict[str, Any]:
    """DPTable on 30,000 rows, fit and release."""
    rows = table.take(np.arange(30_000))
    seconds = timed(lambda: cv.DPTable(1.0, missing=missing).fit(rows).protect(rows), repeats)
    median = float(np.median(seconds))
    return {"table_s": median, "range": [min(seconds), max(seconds)], "shape": [30_000, len(rows.schema.features)]}


def explanations(table: cv.Table, missing: tuple[str, ...], queries: int) -> dict[str, Any]:
    """A batch of private explanations for each pool."""
    train, test = table.split(test_size=0.4, random_state=SEED)
    model = Timed(train_forest(train), train.schema.features)
    refused = test.take(model.predict(test.features) != table.schema.favourable[0])
    rows = refused.features.iloc[:queries].reset_index(drop=True)
    out: dict[str, Any] = {}
    for pool in ("all", "sampled", "features"):
        start = time.process_time()
        made = cv.PrivateNeighbours(1.0, neighbours=20, pool=pool, missing=missing).fit(train, model)
        fit = time.process_time() - start
        made.explain(rows.iloc[:2])
        model.seconds = model.rows = 0
        wall, start = time.perf_counter(), time.process_time()
        answers = made.explain(rows)
        spent, wall = time.process_time() - start, time.perf_counter() - wall
        out[pool] = {
            "thousand_s": spent * 1000 / len(rows),
            "thousand_wall_s": wall * 1000 / len(rows),
            "own_ms": 1e3 * (spent - model.seconds) / len(rows),
            "rows_scored": model.rows / len(rows),
            "fit_s": fit,
            "found": float(answers.found.mean()),
            "n": len(rows),
        }
    return out


def misses(results: dict[str, Any]) -> list[str]:
    """A sentence for each target that is missed."""
    found = []
    if results["table"]["table_s"] > TARGETS["table_s"]:
        found.append(f"the noisy table takes {results['table']['table_s']:.2f} s, above {TARGETS['table_s']} s")
    if results["sampler"]["opendp_ratio"] < TARGETS["opendp_ratio"]:
        found.append(
            f"the sampler is {results['sampler']['opendp_ratio']:.1f}x OpenDP's, below {TARGETS['opendp_ratio']}x"
        )
    for pool, f in results["explanations"].items():
        found += [
            f"{pool}: {name} is {f[name]:.2f}, above {TARGETS[name]}"
            for name in ("own_ms", "thousand_s")
            if f[name] > TARGETS[name]
        ]
    return found


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parse(parser, RESULTS, quick="a handful of explanations, one repeat")
    if given.quick:
        given.queries, given.repeats = 5, 1
    results: dict[str, Any] = provenance(SEED, "adult")
    table, missing = load_declared("adult")
    with threadpool_limits(1):
        results["sampler"] = sampler(given.repeats)
        print(results["sampler"], flush=True)
        results["table"] = noisy_table(table, missing, given.repeats)
        print(results["table"], flush=True)
        results["explanations"] = explanations(table, missing, given.queries)
        print(json.dumps(results["explanations"], indent=1))
    missed = misses(results)
    print("\n".join(missed) if missed else "Every target is met.")
    results |= {"targets": TARGETS, "missed": missed, "time": "CPU seconds on one thread; medians over repeats"}
    write(given, results)


if __name__ == "__main__":
    main()
