"""Training helpers: rows without a label are not learnt from in silence."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.model import train_forest, train_paper_model

TRAINERS = {
    "train_forest": lambda table: train_forest(table, trees=3),
    "train_paper_model": lambda table: train_paper_model(table, "forest"),
}


def table(labels):
    return cv.Table.from_frame(pd.DataFrame({"age": range(len(labels)), "ok": labels}), target="ok")


@pytest.mark.parametrize("owner", TRAINERS)
@pytest.mark.parametrize(
    "labels",
    [
        ["Xanthippe", None, "no", None],
        pd.Categorical(["Xanthippe", None, "no", None]),
        pd.array([True, None, False, None], dtype="boolean"),
        [1.0, np.nan, 0.0, np.nan],
    ],
    ids=["text", "category", "boolean", "number"],
)
def test_missing_labels_are_counted_and_not_shown(owner, labels):
    with pytest.raises(cv.SchemaError, match=rf"'ok' of the table given to {owner} has 2 missing label") as caught:
        TRAINERS[owner](table(labels))
    assert "Drop those rows" in str(caught.value) and "Xanthippe" not in str(caught.value)


@pytest.mark.parametrize("owner", TRAINERS)
def test_without_these_rows_a_model_is_trained(owner):
    rows = table(["yes", None, "no", "yes"])
    model = TRAINERS[owner](rows.take(rows.target.notna()))
    assert set(model.classes_) == {"no", "yes"}
