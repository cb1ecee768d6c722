"""SEDC beside its authors' code: the same explanations in the same round of the search.

Source of the golden values: github.com/yramon/edc, run by `tests/golden/record_sedc.py`. Its search ends with the
first round that finds something. Of what it found then it hands out the set whose removal leaves the highest score,
the last of ours: its list is sorted by what is left, not by what has gone.
"""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import countervail as cv

FOLDER = Path(__file__).resolve().parents[1] / "golden"
SPEC = importlib.util.spec_from_file_location("record_sedc", FOLDER / "record_sedc.py")
recorder = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(recorder)
GOLDEN = json.loads((FOLDER / "sedc.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("seed", range(recorder.SETS))
def test_explanations_equal_the_authors(seed):
    rows, weights, bias = recorder.made(seed)
    names = [f"w{i}" for i in range(recorder.WORDS)]

    def model(frame):
        positive = recorder.score(frame.to_numpy(), weights, bias)
        return np.column_stack([positive < 0.5, positive >= 0.5]) * 1e-9 + np.column_stack([1 - positive, positive])

    known = pd.DataFrame(np.vstack([rows, 0 * rows[:1]]), columns=names)
    table = cv.Table.from_frame(known.assign(ok=["p", "n"] * (len(known) // 2) + ["n"]), target="ok", favourable="n")
    fitted = cv.SEDC(neutral=dict.fromkeys(names, 0), target="n", n_counterfactuals=recorder.WORDS)
    e = fitted.fit(table, model).explain(known.iloc[:-1])
    checked = 0
    for i, told in enumerate(GOLDEN[seed]):
        mine = np.flatnonzero((e.query == i) & e.found)
        if told is None:
            assert e.before[np.flatnonzero(e.query == i)[0]] == "n"
            continue
        gone = [np.flatnonzero(rows[i] != e.counterfactuals.iloc[m].to_numpy(float)).tolist() for m in mine]
        assert gone[told["found"] - 1 : told["found"]] == told["sets"]
        checked += 1
    assert checked
