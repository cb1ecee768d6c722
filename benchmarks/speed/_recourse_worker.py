"""The other side of `actionable.py`: DiCE and NICEx, asked about the same people with the same forest.

Run by the Python of their environment: `_recourse_worker.py FOLDER METHOD`. FOLDER holds train.pkl, asked.pkl (columns
as plain lists), the pickled model and about.json; answers are written beside them as METHOD.json, one entry for each
person until `patience` seconds have passed: CPU seconds, and the row found.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TARGET = "decision"  # as numbers, in the order of the labels
METHODS = ("dice_random", "dice_kdtree", "nicex_sparsity")


class Numbered:
    """A model whose decisions are numbers, in the order of its labels."""

    def __init__(self, model: Any) -> None:
        self.model, self.classes_ = model, np.arange(len(model.classes_))

    def predict(self, frame: Any) -> Any:
        """The number of each decision."""
        return self.model.predict_proba(frame).argmax(axis=1)

    def predict_proba(self, frame: Any) -> Any:
        """The model's scores."""
        return self.model.predict_proba(frame)


def read(path: Path, labels: list[str]) -> pd.DataFrame:
    """A frame from columns as plain lists: labels as objects."""
    columns = pickle.loads(path.read_bytes())
    return pd.DataFrame({n: pd.Series(v, dtype=object) if n in labels else pd.Series(v) for n, v in columns.items()})


def permitted(asked: pd.Series, train: pd.DataFrame, limits: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The limits in DiCE's terms, for one person: which features vary, and in which range."""
    varied = [n for n in asked.index if n not in limits.get("immutable", ())]
    ranges: dict[str, Any] = {n: list(r) for n, r in limits.get("ranges", {}).items()}
    for name, way in limits.get("monotone", {}).items():
        if pd.api.types.is_numeric_dtype(train[name]):
            low, high = train[name].min(), train[name].max()
            ranges[name] = [min(asked[name], high), high] if way == "up" else [low, max(asked[name], low)]
    return varied, ranges


def dice(train: pd.DataFrame, asked: pd.DataFrame, model: Any, about: dict[str, Any], method: str) -> Any:
    """DiCE's answers one by one; None where it finds nothing."""
    os.environ["TQDM_DISABLE"] = "1"
    import dice_ml

    labels, limits = about["labels"], about["limits"]

    numbers = [n for n in asked.columns if n not in labels]
    data = dice_ml.Data(dataframe=train, continuous_features=numbers, outcome_name=TARGET)
    explainer = dice_ml.Dice(data, dice_ml.Model(model=model, backend="sklearn"), method=method)
    for i in range(len(asked)):
        more: dict[str, Any] = {"random_seed": 0} if method == "random" else {}
        if limits:
            varied, ranges = permitted(asked.iloc[i], train, limits)
            more |= {"features_to_vary": varied, "permitted_range": ranges}
        start = time.process_time()
        try:
            found = explainer.generate_counterfactuals(
                asked.iloc[[i]], total_CFs=1, desired_class=about["desired"], verbose=False, **more
            )
            row = found.cf_examples_list[0].final_cfs_df
        except Exception as error:  # noqa: BLE001 -- what it says when there is no answer differs by version
            row = None
            print(f"{method}: {type(error).__name__}: {error}"[:160])
        seconds = time.process_time() - start
        yield seconds, None if row is None or not len(row) else row.iloc[0][list(asked.columns)].tolist()


def nicex(train: pd.DataFrame, asked: pd.DataFrame, model: Any, labels: list[str]) -> Any:
    """NICEx's answers one by one; labels as codes, which the model is given back as labels."""
    from nice import NICE

    names = list(asked.columns)
    spelt = {n: {str(v): v for v in (*train[n], *asked[n])} for n in labels}  # of what is missing there is one
    known = {n: [spelt[n][text] for text in sorted(spelt[n])] for n in labels}
    place = {n: {text: i for i, text in enumerate(sorted(spelt[n]))} for n in labels}

    def coded(frame: pd.DataFrame) -> Any:
        columns = [frame[n].map(str).map(place[n]) if n in known else frame[n] for n in names]
        return np.column_stack(columns).astype(float)

    def decoded(rows: Any) -> pd.DataFrame:
        columns = {n: rows[:, j] for j, n in enumerate(names)}
        return pd.DataFrame(
            {n: np.array(known[n], dtype=object)[v.astype(int)] if n in known else v for n, v in columns.items()}
        )

    explainer = NICE(
        lambda rows: model.predict_proba(decoded(rows)),
        coded(train),
        [names.index(n) for n in labels],
        y_train=train[TARGET].to_numpy(),
        optimization="sparsity",
    )
    for row in coded(asked):
        start = time.process_time()
        found = explainer.explain(row[None].copy())
        yield time.process_time() - start, decoded(np.asarray(found, dtype=float)).iloc[0].tolist()


def versions() -> dict[str, str]:
    """What this environment holds."""
    from importlib.metadata import version

    return {name: version(name) for name in ("dice-ml", "NICEx", "numpy", "pandas", "scikit-learn")}


def main() -> None:
    """Ask one method, and write what it says."""
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("method", choices=METHODS)
    given = parser.parse_args()
    about = json.loads((given.folder / "about.json").read_text(encoding="utf-8"))
    labels = about["labels"]
    train, asked = read(given.folder / "train.pkl", labels), read(given.folder / "asked.pkl", labels)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        model = Numbered(pickle.loads((given.folder / "model.pkl").read_bytes()))
        name, _, way = given.method.partition("_")
        answers = nicex(train, asked, model, labels) if name == "nicex" else dice(train, asked, model, about, way)
        said: list[dict[str, Any]] = []
        for seconds, row in answers:
            said.append({"seconds": seconds, "row": row})
            if sum(one["seconds"] for one in said) > about["patience"]:
                break
        scores = model.predict_proba(asked)[:, about["desired"]].tolist()
    told = json.dumps({"answers": said, "scores": scores, "versions": versions()}, default=lambda v: v.item())
    (given.folder / f"{given.method}.json").write_text(told, encoding="utf-8")


if __name__ == "__main__":
    main()
