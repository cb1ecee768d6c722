"""Records what NICEx 0.2.3 answers on German credit, for `tests/explain/test_nice_golden.py`.

Run it by the Python of an environment that holds NICEx 0.2.3 (`benchmarks/speed/nice.py` builds one); it needs
nothing of ours and reads the bundled file itself. Everything recorded is a whole number: row numbers, codes of cells,
and the bit patterns of scores.
"""

from __future__ import annotations

import csv
import gzip
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

REWARDS = ("none", "sparsity", "proximity")
TRAIN, QUERIES = range(600), range(600, 800)
GOLDEN = Path(__file__).with_name("nice_german.json.gz")
BUNDLED = Path(__file__).resolve().parents[2] / "src" / "countervail" / "data" / "bundled"


def score(x: Any) -> Any:
    """Scores of (bad, good) for rows of codes: a fixed formula whose every operation IEEE 754 rounds in one way."""
    checking, duration, history, purpose, amount, savings, employment, rate = (x[:, j] for j in range(8))
    guarantors, residence, age, plans, housing = (x[:, j] for j in (9, 10, 12, 13, 14))
    z = 0.875 - duration * 0.03125
    z = z - amount * 0.0001220703125
    z = z + age * 0.015625
    z = z + savings * 0.1875
    z = z + employment * 0.125
    z = z - rate * 0.25
    z = z - (checking == 1) * 1.25
    z = z - (checking == 2) * 0.75
    z = z + (checking == 0) * 0.5
    z = z + (history == 1) * 0.75
    z = z - (purpose == 5) * 0.375
    z = z + (guarantors == 1) * (checking != 0) * 0.625
    z = z - (plans != 1) * 0.25
    z = z + (housing == 1) * employment * 0.0625
    z = z - duration * (savings <= 1) * 0.0078125
    z = z + residence * (age <= 25) * 0.0625
    good = 0.5 + 0.5 * (z / (1.0 + abs(z)))
    return np.column_stack([1.0 - good, good])


def bits(scores: Any) -> list[int]:
    """The 64-bit patterns of the scores of "good", as whole numbers."""
    return [int(b) for b in np.ascontiguousarray(scores[:, 1]).view(np.int64)]


def read() -> tuple[Any, Any, list[int]]:
    """Codes of the feature columns, codes of the class, and which features are categorical.

    Numbers stand as they are, ordinal values as ranks, labels as their place in sorted order.
    """
    with gzip.open(BUNDLED / "german_credit.csv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = tomllib.loads((BUNDLED / "german_credit.toml").read_text(encoding="utf-8"))["columns"]
    coded = {}
    for name, column in columns.items():
        values = [row[name] for row in rows]
        if column["type"] == "numeric":
            coded[name] = [int(v) for v in values]
        else:
            known = column.get("levels") or sorted(set(values))
            coded[name] = [known.index(v) for v in values]
    features = [n for n, c in columns.items() if c.get("role") != "target"]
    (target,) = set(columns) - set(features)
    labels = [j for j, n in enumerate(features) if columns[n]["type"] == "categorical"]
    return np.array([coded[n] for n in features], dtype=float).T, np.array(coded[target]), labels


def main() -> None:
    """Ask NICEx and write the file."""
    from nice import NICE

    x, y, labels = read()
    train, queries = x[list(TRAIN)], x[list(QUERIES)]
    record = {
        "train": list(TRAIN),
        "queries": list(QUERIES),
        "train_scores": bits(score(train)),
        "query_scores": bits(score(queries)),
    }
    for reward in REWARDS:
        explainer = NICE(score, train.copy(), labels, y_train=y[list(TRAIN)], optimization=reward)
        answers = np.vstack([explainer.explain(q[None, :].copy()) for q in queries])
        if not (answers == np.rint(answers)).all():
            raise SystemExit("NICEx answered with fractions although all data are whole numbers.")
        record[reward] = answers.astype(int).tolist()
    text = json.dumps(record, separators=(",", ":"))
    GOLDEN.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
