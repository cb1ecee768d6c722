"""What the recording scripts beside this file share: the bundled German credit rows, a model, and where records go.

Needs pandas and scikit-learn only, and nothing of ours: it runs in the environments of other tools.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

FOLDER = Path(__file__).resolve().parent
BUNDLED = FOLDER.parents[2] / "src" / "countervail" / "data" / "bundled"
TARGET = "class"
TRAIN = 600  # the rows before it are the tool's data; queries come from those after it


def read() -> pd.DataFrame:
    """The rows, labels as text."""
    return pd.read_csv(BUNDLED / "german_credit.csv.gz", keep_default_na=False)


def numeric(frame: pd.DataFrame) -> list[str]:
    """The columns that hold numbers."""
    return [n for n in frame.columns if frame[n].dtype.kind in "if"]


def labels(frame: pd.DataFrame) -> dict[str, list[str]]:
    """The labels of every other feature, sorted: their places are their codes."""
    return {n: sorted(frame[n].unique()) for n in frame.columns if n not in (*numeric(frame), TARGET)}


def forest(rows: pd.DataFrame, good: Any, categories: list[Any]) -> Any:
    """A small forest behind one-hot codes of the columns `categories`; decision 1 is good."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    one_hot = ColumnTransformer(
        [("labels", OneHotEncoder(handle_unknown="ignore"), categories)], remainder="passthrough"
    )
    return make_pipeline(one_hot, RandomForestClassifier(30, random_state=0)).fit(rows, good)


def refused(predict: Any, rows: pd.DataFrame, n: int) -> list[int]:
    """The first rows after the training rows that the model decides against."""
    decided = predict(rows.iloc[TRAIN:])
    return [TRAIN + i for i, label in enumerate(decided) if label == 0][:n]


def record(name: str, packages: tuple[str, ...], rows: list[int], outputs: dict[str, Any], **more: Any) -> None:
    """Write what a tool gave, as it gave it, beside its version."""
    held = {"versions": {p: version(p) for p in packages}, "rows": rows, **more, "outputs": outputs}
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(held) + "\n", encoding="utf-8")
    print(f"{path.name}: {path.stat().st_size:,} bytes")  # noqa: T201
