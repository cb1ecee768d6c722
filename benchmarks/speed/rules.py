"""Rule induction against Orange's CN2 and wittgenstein's RIPPER: the same folds, accuracy and CPU seconds per fold.

python benchmarks/speed/rules.py [--hard]

Precise rules (MLEM2) with LERS voting, fit and predict, on car and zoo; and how the cost grows with rows and attributes
on a table with planted rules: three classes, attributes of four values each as in car. With eight values each, greedy
covering needs many more and longer rules: that table is measured at full size with --hard.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sys
import tempfile
import time
import tracemalloc
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _peer import peer_python, run_peer
from _record import code, data_hash, parse, versions, write
from threadpoolctl import threadpool_limits

import countervail as cv
from countervail.core.stats import clopper_pearson
from countervail.rules import Inducer
from countervail.rules.grow import induce
from countervail.rules.inputs import build_value_table

RESULT = Path(__file__).resolve().parents[1] / "results" / "rules.json"
WORKER = Path(__file__).with_name("_rules_worker.py")
PEERS = ["Orange3==3.38.1", "wittgenstein==0.3.4", "scikit-learn<1.6", "pandas<2.3"]
SEED = 0
TARGETS = {"car_seconds": 0.1, "zoo_seconds": 0.01, "large_seconds": 60.0}
REPETITIONS = {"car": 1, "zoo": 10}  # zoo has 101 rows: one row more or less would decide a single ten-fold


def table(name: str) -> cv.Table:
    """A data set; all columns of zoo are nominal, as in the paper."""
    t = cv.load(name)
    if name != "zoo":
        return t
    # The dtype must say so too: from a plain frame a column of whole numbers is numeric, whatever the schema says.
    frame = t.frame.assign(legs=t.frame["legs"].astype(str))
    return cv.Table(frame, t.schema.with_column("legs", type="categorical"))


def folds(n: int, repetition: int) -> Any:
    """Ten folds, drawn without regard to the class."""
    fold = np.empty(n, dtype=int)
    fold[np.random.default_rng(SEED + repetition).permutation(n)] = np.arange(n) % 10
    return fold


def write_folds(folder: Path, repetitions: dict[str, int]) -> None:
    """What the peers read; levels are plain values to them, with which both do better than with ranks."""
    for name, times in repetitions.items():
        t = table(name)
        t.features.astype(str).assign(class_=t.target.astype(str)).to_csv(folder / f"{name}.csv", index=False)
        plan = {"folds": [folds(len(t), r).tolist() for r in range(times)], "numeric": []}
        (folder / f"{name}.json").write_text(json.dumps(plan), encoding="utf-8")


def ours(name: str, repetitions: int) -> dict[str, list[Any]]:
    """CPU seconds of fit and predict of each fold, and which test rows are right."""
    t = table(name)
    x, y = t.features, t.target.astype(object).to_numpy()
    cv.MLEM2().fit(x, y).predict(x)  # compiled or loaded before the clock starts
    seconds, right = [], []
    for repetition, i in product(range(repetitions), range(10)):
        inside = folds(len(t), repetition) != i
        start = time.process_time()
        found = cv.MLEM2().fit(x[inside], y[inside]).predict(x[~inside])
        seconds.append(time.process_time() - start)
        right += (found == y[~inside]).tolist()
    return {"seconds": seconds, "right": right}


def figures(found: dict[str, list[Any]]) -> dict[str, Any]:
    """Median seconds with their range, accuracy with its interval."""
    exact = clopper_pearson(sum(found["right"]), len(found["right"]))
    return {
        "seconds": float(np.median(found["seconds"])),
        "seconds_range": [min(found["seconds"]), max(found["seconds"])],
        "accuracy": exact.to_dict(),
        "folds": len(found["seconds"]),
    }


def planted(rows: int, attributes: int, values: int = 4) -> tuple[pd.DataFrame, Any]:
    """Half of the attributes are ordered, half nominal; a few of them decide the class."""
    rng = np.random.default_rng(SEED)
    x = rng.integers(0, values, (rows, attributes))
    letters = np.array(list("abcdefgh"))
    frame = pd.DataFrame({f"a{j:02}": x[:, j] if j % 2 == 0 else letters[x[:, j]] for j in range(attributes)})
    first = (x[:, 0] < values // 2) & (x[:, 1] < values // 2)
    second = (x[:, 2] >= values - values // 4) | ((x[:, 3] == 1) & (x[:, 0] >= values - values // 4))
    return frame, np.where(first, "x", np.where(second, "y", "z"))


def grown(rows: int, attributes: int, values: int = 4) -> dict[str, Any]:
    """CPU seconds and peak memory of one fit and one prediction of all rows."""
    frame, y = planted(rows, attributes, values)
    start = time.process_time()
    model = cv.MLEM2().fit(frame, y)
    fit = time.process_time() - start
    start = time.process_time()
    right = float((model.predict(frame) == y).mean())
    predict = time.process_time() - start
    peak = float("nan")
    if fit < 10:
        tracemalloc.start()
        cv.MLEM2().fit(frame, y)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
    found = {"rows": rows, "attributes": attributes, "fit_seconds": fit, "predict_seconds": predict}
    more = {"rules": len(model.rules_), "rules_tried": tried(frame, y), "right_on_training_rows": right}
    return {**found, "values": values, "peak_mb": peak if peak == peak else None, **more}


def tried(frame: pd.DataFrame, y: Any) -> int:
    """How many rules were grown, those included that others made superfluous: what the time goes into."""
    inducer = Inducer(build_value_table(frame, y, None, "benchmark"))
    found = 0
    for c in range(3):
        inside, bad = inducer.lower(1 << c)
        found += len(induce(inducer.table.coded, inside, inside, bad)[0]) - 1
    return found


def growth(hard: bool, *, quick: bool) -> dict[str, Any]:
    """Cost by rows and by attributes; the exponent is the slope of log time over log size."""
    grown(1_000, 20)
    sizes, middle = ((500, 1_000, 2_000), 1_000) if quick else ((12_500, 25_000, 50_000, 100_000), 50_000)
    by_rows = [grown(n, 20) for n in sizes]
    by_attributes = [grown(middle, m) for m in (5, 10, 20, 30)]
    for line in (*by_rows, *by_attributes):
        print(line, flush=True)

    eight = grown(100_000, 20, 8) if hard else None
    print(eight, flush=True)

    def slope(lines: list[dict[str, Any]], size: str, cost: str) -> float:
        logs = np.log([[line[size], line[cost] / max(line["rules_tried"], 1)] for line in lines])
        return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])

    return {
        "by_rows": by_rows,
        "by_attributes": by_attributes,
        "eight_values": eight,
        "exponent_rows_per_rule": slope(by_rows, "rows", "fit_seconds"),
        "exponent_attributes_per_rule": slope(by_attributes, "attributes", "fit_seconds"),
        "exponent_memory_rows": float(
            np.polyfit(np.log([x["rows"] for x in by_rows]), np.log([x["peak_mb"] for x in by_rows]), 1)[0]
        ),
    }


def misses(sets: dict[str, Any], large: dict[str, Any]) -> list[str]:
    """A sentence for each target that is missed."""
    out = []
    for name, found in sets.items():
        mine = found["Countervail MLEM2"]
        if mine["seconds"] > TARGETS[f"{name}_seconds"]:
            out.append(f"{name}: {mine['seconds']:.4f} s per fold, above {TARGETS[f'{name}_seconds']} s")
        for peer, x in found.items():
            if x["seconds"] < mine["seconds"]:
                out.append(f"{name}: {peer} is faster")
            if x["accuracy"]["value"] > mine["accuracy"]["value"]:
                out.append(f"{name}: {peer} is more accurate ({x['accuracy']['value']:.3f})")
    spent = large["fit_seconds"] + large["predict_seconds"]
    if spent > TARGETS["large_seconds"]:
        what = f"100,000 rows x 20 attributes of {large['values']} values"
        out.append(f"{what}: {spent:.1f} s, above {TARGETS['large_seconds']:.0f} s")
    return out


def main() -> None:
    """Compare, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hard", action="store_true", help="also 100,000 rows of eight values each (minutes)")
    given = parse(parser, RESULT, quick="ten folds of zoo, growth up to 2,000 rows")
    repetitions = {"zoo": 1} if given.quick else REPETITIONS
    about = code()
    python = peer_python("rules", PEERS)
    with tempfile.TemporaryDirectory() as place, threadpool_limits(1):
        folder = Path(place)
        write_folds(folder, repetitions)
        found = {name: {"Countervail MLEM2": figures(ours(name, n))} for name, n in repetitions.items()}
        run_peer(python, WORKER, str(folder))
        peers = json.loads((folder / "peers.json").read_text(encoding="utf-8"))
        grew = growth(given.hard, quick=given.quick)
    for name, sides in peers["sets"].items():
        mine = found[name]["Countervail MLEM2"]
        for peer, x in sides.items():
            found[name][peer] = figures(x) | {"ratio": figures(x)["seconds"] / mine["seconds"]}
    for name, sides in found.items():
        for side, x in sides.items():
            a = x["accuracy"]
            ratio = f", {x['ratio']:.0f}x our time" if "ratio" in x else ""
            print(f"{name:<5}{side:<22}{x['seconds']:.4f} s{ratio}; accuracy {a['value']:.3f}")
    large = [grew["by_rows"][-1], *([grew["eight_values"]] if given.hard else [])]
    missed = list(dict.fromkeys(text for one in large for text in misses(found, one)))
    print("\n".join(missed) if missed else "Every target is met.")
    rows, _ = planted(1000, 20)
    results = {
        **about,
        "seed": SEED,
        "data_sha256": {
            **{name: data_hash(name) for name in repetitions},
            "planted, first 1000 rows": hashlib.sha256(rows.to_csv(index=False).encode()).hexdigest(),
        },
        "versions": versions(),
        "peer_versions": peers["versions"],
        "time": "CPU seconds on one thread, fit and predict of one fold, median; accuracy over all test rows, 95%",
        "targets": TARGETS,
        "missed": missed,
        "sets": found,
        "growth": grew,
        "peak_process_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        / (1e6 if sys.platform == "darwin" else 1e3),
    }
    write(given, results)


if __name__ == "__main__":
    main()
