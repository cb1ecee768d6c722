"""NICE against the recorded answers of the reference package.

Source of the golden values: NICEx 0.2.3 (PyPI), run by `tests/golden/record_nice_german.py` on the bundled German
credit rows with the fixed scoring function written there.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.schema import Column, Schema

_FOLDER = Path(__file__).resolve().parents[1] / "golden"


def _recorder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record_nice_german", _FOLDER / "record_nice_german.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


recorder = _recorder()


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads(gzip.decompress((_FOLDER / "nice_german.json.gz").read_bytes()))


def _codes(frame: pd.DataFrame) -> np.ndarray:
    """Numbers as they are, categories by their position."""
    columns = [frame[n].cat.codes if frame[n].dtype == "category" else frame[n] for n in frame.columns]
    return np.column_stack([np.asarray(c, dtype=float) for c in columns])


def _model(frame: pd.DataFrame) -> np.ndarray:
    return recorder.score(_codes(frame))


def _as_text() -> cv.Table:
    """The table as it is loaded: labels as text, ordinal columns with their levels."""
    return cv.load("german_credit")


def _as_codes() -> cv.Table:
    """The same rows as whole numbers; ranks of ordinal columns are plain numbers."""
    table = cv.load("german_credit")
    frame = pd.DataFrame(_codes(table.frame), columns=table.frame.columns).astype("int64")
    kind = {c.name: "categorical" if c.type == "categorical" else "numeric" for c in table.schema}
    return cv.Table(frame, Schema(tuple(Column(c.name, kind[c.name], c.role) for c in table.schema)))


@pytest.mark.parametrize("build", [_as_text, _as_codes])
def test_both_sides_score_the_same_rows_to_the_last_bit(build: Any, golden: dict[str, Any]) -> None:
    features = build().features
    for rows in ("train", "query"):
        picked = features.iloc[golden["train" if rows == "train" else "queries"]]
        assert recorder.bits(_model(picked)) == golden[f"{rows}_scores"]


@pytest.mark.parametrize("reward", recorder.REWARDS)
@pytest.mark.parametrize("build", [_as_text, _as_codes])
def test_counterfactuals_equal_the_reference_row_for_row(build: Any, reward: Any, golden: dict[str, Any]) -> None:
    table = build()
    explainer = cv.NICE(reward=reward).fit(table.take(golden["train"]), _model)
    answers = explainer.explain(table.features.iloc[golden["queries"]])
    assert (answers.status == "found").all()
    np.testing.assert_array_equal(_codes(answers.counterfactuals), np.array(golden[reward]))


def test_the_recording_holds_whole_numbers_only_and_enough_queries(golden: dict[str, Any]) -> None:
    flat = [v for part in golden.values() for row in part for v in (row if isinstance(row, list) else [row])]
    assert all(type(v) is int for v in flat)
    assert all(len(golden[reward]) >= 120 for reward in recorder.REWARDS)
