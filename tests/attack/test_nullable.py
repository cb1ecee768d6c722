"""Attacks on columns that hold pandas' own missing value."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.attack.result import right_cells, right_rows

DTYPES = {
    "Int64": pd.array([1, None, 3, None], dtype="Int64"),
    "boolean": pd.array([True, None, False, None], dtype="boolean"),
    "string": pd.array(["a", None, "c", None], dtype="string"),
    "Float64": pd.array([1.5, None, 3.5, None], dtype="Float64"),
    "category": pd.Categorical(["a", None, "c", None]),
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_missing_value_is_no_guess_and_no_error(dtype):
    truth = pd.DataFrame({"x": DTYPES[dtype], "y": list("pqrs")})
    assert right_cells(truth, truth).tolist() == [[True, True], [False, True], [True, True], [False, True]]
    assert right_rows(truth, truth).all()
    nothing = pd.DataFrame({"x": DTYPES[dtype][[1, 1, 1, 1]], "y": [None] * 4})
    assert not right_cells(nothing, truth).any() and not right_rows(nothing, truth).any()
    guess = truth.assign(x=DTYPES[dtype][[1, 0, 2, 3]])
    assert right_cells(guess, truth)[:, 0].tolist() == [False, False, True, False]


def people(n, seed):
    """Everybody's age is their own; two columns with holes are to be found out."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": np.arange(n) + 1000 * seed,
            "visits": pd.array(rng.integers(0, 5, n), dtype="Int64"),
            "smokes": pd.array(rng.integers(0, 2, n).astype(bool), dtype="boolean"),
        }
    )
    frame.loc[::4, "visits"] = pd.NA
    frame.loc[1::4, "smokes"] = pd.NA
    frame["ok"] = np.where(np.arange(n) % 2, "yes", "no")
    schema = cv.Schema(
        (
            cv.Column("age", "numeric", "quasi"),
            cv.Column("visits", "categorical", "sensitive"),
            cv.Column("smokes", "categorical", "sensitive"),
            cv.Column("ok", role="target"),
        ),
        ("yes",),
    )
    return cv.Table(frame, schema)


@pytest.mark.parametrize("attack", [cv.attack.Linkage(), cv.attack.Shallow(), cv.attack.Homogeneity()], ids=str)
def test_attacks_run_on_columns_with_holes(attack):
    table, control = people(40, 0), people(40, 1)
    release = cv.Mondrian(k=1).fit(table).protect(table)
    result = attack.run(release, table, control)
    assert result.members.value > 0.5
