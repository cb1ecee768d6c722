"""Numbers as secrets: put into groups of about equally many people, in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from countervail.core.errors import bad_parameter
from countervail.core.table import Table


def group_numbers(table: Table, name: str, groups: Any, owner: str) -> Table:
    """The table with a column of numbers as levels "1 of 5", "2 of 5", ...; equal numbers are in one group.

    What is missing stays so. Where many numbers are equal there are fewer groups than asked for.
    """
    if isinstance(groups, bool) or not isinstance(groups, (int, np.integer)) or groups < 2:
        raise bad_parameter(owner, "groups", "None or a whole number of at least 2", groups)
    if not table.schema[name].numeric:
        raise bad_parameter(owner, "groups", f"None: the sensitive column '{name}' holds no numbers", groups)
    values = table.frame[name].to_numpy(dtype=float, na_value=np.nan)
    known = ~np.isnan(values)
    if len(np.unique(values[known])) < 2:
        raise bad_parameter(owner, "sensitive", "a column with at least two values", name)
    ends = np.quantile(values[known], np.linspace(0, 1, int(groups) + 1)[1:-1], method="lower")
    ends = np.unique(ends)
    ends = ends[ends < values[known].max()]
    levels = [f"{i + 1} of {len(ends) + 1}" for i in range(len(ends) + 1)]
    codes = np.where(known, np.searchsorted(ends, np.where(known, values, 0.0), side="left"), -1)
    grouped = pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(levels, ordered=True))
    schema = table.schema.with_column(name, type="ordinal", levels=tuple(levels))
    return Table(table.frame.assign(**{name: grouped}), schema)
