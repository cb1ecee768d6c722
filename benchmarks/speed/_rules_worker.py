"""The peers' side of the rules benchmark, run in an environment of its own: Orange's CN2 and wittgenstein's RIPPER.

python _rules_worker.py FOLDER: reads FOLDER/<set>.csv and FOLDER/<set>.json (folds, kinds of columns), writes
FOLDER/peers.json with predictions and CPU seconds of each fold (fit and predict).
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd


def cn2(train: pd.DataFrame, y: pd.Series, test: pd.DataFrame, numeric: list[str]) -> tuple[list[str], float]:
    """Orange's unordered CN2 with its defaults; encoding is left out of the clock."""
    from Orange.classification.rules import CN2UnorderedLearner
    from Orange.data import ContinuousVariable, DiscreteVariable, Domain, Table

    whole = pd.concat([train, test])
    columns = [
        ContinuousVariable(n) if n in numeric else DiscreteVariable(n, values=sorted(whole[n].astype(str).unique()))
        for n in train.columns
    ]
    classes = sorted(y.unique())
    domain = Domain(columns, DiscreteVariable("class_", values=classes))

    def coded(frame: pd.DataFrame) -> np.ndarray:
        return np.column_stack(
            [
                frame[v.name].to_numpy(float) if v.is_continuous else [v.values.index(str(x)) for x in frame[v.name]]
                for v in columns
            ]
        ).astype(float)

    data = Table.from_numpy(domain, coded(train), y.map(classes.index).to_numpy(float))
    asked = Table.from_numpy(domain, coded(test), np.zeros(len(test)))
    start = time.process_time()
    model = CN2UnorderedLearner()(data)
    found = np.asarray(model(asked)).astype(int)
    return [classes[i] for i in found], time.process_time() - start


def ripper(train: pd.DataFrame, y: pd.Series, test: pd.DataFrame, numeric: list[str]) -> tuple[list[str], float]:
    """wittgenstein's RIPPER, one class against the rest; the class whose rules are surest wins."""
    import wittgenstein

    start = time.process_time()
    classes = sorted(y.unique())
    scores = np.zeros((len(test), len(classes)))
    for i, c in enumerate(classes):
        model = wittgenstein.RIPPER(random_state=0)
        model.fit(train.reset_index(drop=True), (y == c).astype(int).reset_index(drop=True), pos_class=1)
        scores[:, i] = np.nan_to_num(np.asarray(model.predict_proba(test.reset_index(drop=True)))[:, -1])
    return [classes[i] for i in scores.argmax(axis=1)], time.process_time() - start


def main() -> None:
    """Every peer on every fold."""
    warnings.filterwarnings("ignore")
    folder = Path(sys.argv[1])
    out: dict[str, dict[str, dict[str, list]]] = {}
    for about in sorted(folder.glob("*.json")):
        if about.name == "peers.json":
            continue
        plan = json.loads(about.read_text(encoding="utf-8"))
        frame = pd.read_csv(about.with_suffix(".csv"), dtype=str).astype(dict.fromkeys(plan["numeric"], float))
        x, y = frame.drop(columns="class_"), frame["class_"]
        for name, learner in (("Orange CN2", cn2), ("wittgenstein RIPPER", ripper)):
            seconds, right = [], []
            for fold, i in product(np.array(plan["folds"]), range(10)):
                inside = fold != i
                found, spent = learner(x[inside], y[inside], x[~inside], plan["numeric"])
                seconds.append(spent)
                right.append([a == b for a, b in zip(found, y[~inside])])
            out.setdefault(about.stem, {})[name] = {"seconds": seconds, "right": [bool(v) for r in right for v in r]}
            print(f"{about.stem} {name}: {np.mean([v for r in right for v in r]):.3f}, {np.median(seconds):.3f} s")
    versions = {p: version(p) for p in ("Orange3", "wittgenstein", "numpy", "pandas", "scikit-learn")}
    (folder / "peers.json").write_text(json.dumps({"versions": versions, "sets": out}), encoding="utf-8")


if __name__ == "__main__":
    main()
