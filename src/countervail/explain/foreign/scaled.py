"""Do numbers look scaled? Nobody is found in scaled numbers, so an attack on them would call everything safe."""

from __future__ import annotations

import numpy as np
import pandas as pd

from countervail.core.arrays import Floats
from countervail.core.errors import SchemaError
from countervail.core.schema import Column
from countervail.explain.foreign.taken import OWNER

_UNLIKELY = 0.01  # that people like those of the table would all have such values
_SMALL = 10.0  # standardised numbers stay below it


def check_scale(numbers: Floats, asked: int, held: pd.Series, column: Column) -> None:
    """Refuse a column whose numbers are not on the scale of the table's: the first `asked` of them are people's own."""
    people = held.dropna().to_numpy(dtype=float)
    factuals, answers = (part[~np.isnan(part)] for part in (numbers[:asked], numbers[asked:]))
    if not len(people):
        return
    if _elsewhere(factuals, people, column) or _squeezed(factuals, people) or _standardised(factuals, held, people):
        raise _error(column, "factuals")
    # Answers may be pushed to an end of the scale, but not all of them beside where every asker is.
    if len(answers) > 1 and _squeezed(answers, people) and (answers != np.rint(answers)).any():
        raise _error(column, "counterfactuals")


def _elsewhere(values: Floats, people: Floats, column: Column) -> bool:
    """All outside what is declared; without that, all farther from everybody than everybody is from each other."""
    if not len(values):
        return False
    if column.domain is not None:
        low, high = float(column.domain[0]), float(column.domain[1])
    else:
        span = float(np.ptp(people))
        low, high = float(people.min()) - span, float(people.max()) + span
    return bool(((values < low) | (values > high)).all())


def _squeezed(values: Floats, people: Floats) -> bool:
    """All between 0 and 1, where hardly anybody of the table is."""
    return _all_in(values, people, 0.0, 1.0)


def _standardised(values: Floats, held: pd.Series, people: Floats) -> bool:
    """Small fractions where people have whole numbers, most of them larger."""
    whole = pd.api.types.is_integer_dtype(held) or bool((people == np.rint(people)).all())
    return whole and bool((values != np.rint(values)).any()) and _all_in(values, people, -_SMALL, _SMALL)


def _all_in(values: Floats, people: Floats, low: float, high: float) -> bool:
    if not len(values) or not ((low <= values) & (values <= high)).all():
        return False
    share = (int(((low <= people) & (people <= high)).sum()) + 1) / (len(people) + 2)
    return share ** len(np.unique(values)) < _UNLIKELY


def _error(column: Column, what: str) -> SchemaError:
    return SchemaError(
        f"The numbers of column '{column.name}' in the {what} given to {OWNER} are not on the table's scale: they look "
        f"scaled. Give the inverse as decode=..., such as the scaler itself, or a function."
    )
