"""Scores with names: a frame's columns are matched with the labels, whatever their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def score_names(answer: Any) -> list[Any] | None:
    """The names of the columns of a model's answer; None where it has none (an array, a frame with plain numbering)."""
    names = getattr(answer, "columns", None)
    if names is None or (isinstance(names, pd.RangeIndex) and (names.start, names.step) == (0, 1)):
        return None
    return list(names)


def place_labels(names: Sequence[Any], labels: Sequence[Any]) -> NDArray[np.int64] | None:
    """Where the column of each label stands; None unless there is one for each label and no other.

    A name is the label itself, or its text: whoever reads a file has text for names.
    """
    for spell in (lambda v: v, str):
        at = {spell(name): i for i, name in enumerate(names)}
        wanted = [spell(label) for label in labels]
        if len(at) == len(names) == len(labels) and set(wanted) == set(at):
            return np.array([at[w] for w in wanted], dtype=np.int64)
    return None
