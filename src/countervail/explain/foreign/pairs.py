"""Which counterfactual answers whom: through a column, equal indexes, or row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints
from countervail.core.conform import plain
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.schema import Schema
from countervail.explain.foreign.taken import OWNER, Cells

_WAYS = (
    "Name a column of the counterfactuals with query=..., or give a list with the place of each one's factual, from 0 "
    "on; frames with equal indexes, and as many counterfactuals as factuals, need none"
)


def matched(factuals: Cells, counterfactuals: Cells, query: Any, schema: Schema) -> tuple[Ints, str | None]:
    """The place of each counterfactual's factual, and the column that said so, which is no cell of theirs."""
    if query is None and isinstance(counterfactuals, pd.DataFrame):
        query = next((n for n in ("query", "query_") if n in counterfactuals.columns and n not in schema), None)
    if isinstance(query, str):
        return _by_column(factuals, counterfactuals, query), query
    if query is not None:
        return _given(query, len(factuals), len(counterfactuals)), None
    if isinstance(factuals, pd.DataFrame) and isinstance(counterfactuals, pd.DataFrame):
        places = _by_index(factuals.index, counterfactuals.index)
        if places is not None:
            return places, None
    if len(factuals) == 1:
        return np.zeros(len(counterfactuals), dtype=np.int64), None
    if len(factuals) != len(counterfactuals):
        raise SchemaError(
            f"{OWNER} got {len(counterfactuals):,} counterfactuals to {len(factuals):,} factuals, and nothing says "
            f"which belong together. {_WAYS}."
        )
    return np.arange(len(factuals), dtype=np.int64), None


def _by_column(factuals: Cells, counterfactuals: Cells, query: str) -> Ints:
    if not isinstance(counterfactuals, pd.DataFrame) or query not in counterfactuals.columns:
        raise bad_parameter(OWNER, "query", "a column of the counterfactuals, or a list of places", query)
    said = [plain(v) for v in counterfactuals[query]]
    if isinstance(factuals, pd.DataFrame):
        keys: Sequence[Any] = factuals[query].tolist() if query in factuals.columns else factuals.index.tolist()
    else:
        keys = range(len(factuals))
    places = {plain(k): i for i, k in enumerate(keys)}
    if len(places) < len(keys):
        raise bad_parameter(OWNER, "query", "a column that tells the factuals apart", query)
    if strangers := sum(v not in places for v in said):
        raise SchemaError(
            f"{strangers:,} of {len(said):,} counterfactuals given to {OWNER} name a query in '{query}' that is none "
            f"of the factuals. {_WAYS}."
        )
    return np.array([places[v] for v in said], dtype=np.int64)


def _given(query: Any, factuals: int, counterfactuals: int) -> Ints:
    places = np.asarray(query)
    whole = places.ndim == 1 and places.dtype.kind in "iu" and len(places) == counterfactuals
    if not whole or (len(places) and not 0 <= places.min() <= places.max() < factuals):
        must = f"{counterfactuals} whole numbers from 0 to {factuals - 1}, or the name of a column"
        raise bad_parameter(OWNER, "query", must, f"{type(query).__name__} of length {np.size(query)}")
    return places.astype(np.int64)


def _by_index(asked: pd.Index, answered: pd.Index) -> Ints | None:
    """By equal labels; None where the labels of the answers only count them."""
    counted = list(answered) == list(range(len(answered)))
    if not asked.is_unique or (counted and list(asked) != list(answered)):
        return None
    places = asked.get_indexer(answered)
    return None if (places < 0).any() else places.astype(np.int64)
