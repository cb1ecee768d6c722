"""The value combinations of explanations as coded rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Matrix, every_combination
from countervail.core.encode import Coding, Encoder, conform_rows
from countervail.core.explanation import Explanations
from countervail.core.loss import region_values
from countervail.core.table import Table


class Combinations:
    """For each explanation, the values that every feature may take: a set's members, or training values inside."""

    def __init__(self, e: Explanations, table: Table) -> None:
        self._e, self._table = e, table
        self._names = table.schema.features
        self.encoder = Encoder.fit(table)
        if e.own is not None and e.found.any():  # an asker's own value may be one that the table never had
            self.encoder = self.encoder.extended(conform_rows(e.factuals[e.found], table, "measure"))[0]
        self._options: dict[int, list[Matrix]] = {}
        self._cells: dict[tuple[str, type, Any], Matrix] = {}

    def options(self, i: int) -> list[Matrix]:
        """The codes of each feature in explanation `i`."""
        if i not in self._options:
            cells = self._e.counterfactuals.iloc[i]
            self._options[i] = [self._codes(coding, cells[coding.name]) for coding in self.encoder.codings]
        return self._options[i]

    def _codes(self, coding: Coding, cell: Any) -> Matrix:
        """The codes of one cell; explanations share many."""
        key = (coding.name, type(cell), cell)
        if key not in self._cells:
            values = region_values(cell, self._table, coding.name)
            self._cells[key] = coding.encode(self._column(values, coding.dtype))
        return self._cells[key]

    def size(self, i: int) -> float:
        """How many combinations there are."""
        return float(np.prod([float(len(o)) for o in self.options(i)]))

    def every(self, i: int) -> Matrix:
        """All combinations."""
        return every_combination(self.options(i))

    def draw(self, i: int, n: int, rng: np.random.Generator) -> Matrix:
        """`n` combinations drawn at random."""
        return np.stack([rng.choice(o, n) for o in self.options(i)], axis=1)

    @staticmethod
    def _column(values: list[object], dtype: object) -> pd.Series:
        return pd.Series(values, dtype=dtype) if isinstance(dtype, pd.CategoricalDtype) else pd.Series(values)
