"""What a tool wrote, taken apart: who asked, what was answered, and which answer belongs to whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Ints
from countervail.core.errors import SchemaError

OWNER = "read_explanations"
Cells = pd.DataFrame | np.ndarray  # rows with names, or without


@dataclass(frozen=True, eq=False, slots=True)
class Taken:
    """Rows as a tool wrote them, encoded or not.

    `query` says which factual each counterfactual answers (None: that has still to be found out). `before` and `after`
    are decisions as the tool calls them, of the factuals and of the counterfactuals. `remarks` become caveats.
    """

    format: str
    counterfactuals: Cells
    factuals: Cells | None = None
    query: Ints | None = None
    before: Sequence[Any] | None = None
    after: Sequence[Any] | None = None
    remarks: tuple[str, ...] = ()

    def only(self, rows: Any) -> Taken:
        """Some of the counterfactuals, in their order."""
        after = None if self.after is None else [self.after[i] for i in rows]
        query = None if self.query is None else self.query[rows]
        cells = self.counterfactuals
        kept = cells.iloc[rows] if isinstance(cells, pd.DataFrame) else cells[rows]
        return replace(self, counterfactuals=kept, query=query, after=after)


def as_rows(values: Any, what: str) -> np.ndarray:
    """An array of rows: one row may come as a list of cells."""
    rows = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if rows.ndim == 1 and any(isinstance(v, (list, tuple, np.ndarray)) for v in rows.tolist()):
        raise SchemaError(f"The {what} given to {OWNER} have rows of different lengths.")
    rows = rows.reshape(1, -1) if rows.ndim == 1 else rows
    if rows.ndim != 2:
        raise SchemaError(f"The {what} given to {OWNER} must be rows and columns. Got {rows.ndim} dimensions.")
    return rows


def joined(parts: Sequence[Taken]) -> Taken:
    """Several of one tool's outputs as one: each about people of its own, or each about the next one."""
    formats = list(dict.fromkeys(p.format for p in parts))
    if len(formats) > 1:
        raise SchemaError(f"{OWNER} takes outputs of one tool at a time. Got several: {', '.join(formats)}.")
    alone = [p.factuals is None for p in parts]
    if any(alone) and not all(alone):
        raise SchemaError(f"Some of the outputs given to {OWNER} hold the rows that were explained, others do not.")
    query, start = [], 0
    for part in parts:
        asked = 1 if part.factuals is None else len(part.factuals)
        own = np.zeros(len(part.counterfactuals), dtype=np.int64) if part.query is None else part.query
        if part.query is None and asked != 1:
            raise SchemaError(f"An output given to {OWNER} is about several rows and does not say which is which.")
        query.append(own + start)
        start += asked
    return replace(
        parts[0],
        counterfactuals=stacked([p.counterfactuals for p in parts]),
        factuals=None if any(alone) else stacked([p.factuals for p in parts if p.factuals is not None]),
        query=np.concatenate(query),
        before=_said([p.before for p in parts]),
        after=_said([p.after for p in parts]),
        remarks=tuple(dict.fromkeys(r for p in parts for r in p.remarks)),
    )


def stacked(parts: Sequence[Cells]) -> Cells:
    """Rows of several outputs below one another; an output without any row has nothing to say."""
    held = [p for p in parts if len(p)] or list(parts[:1])
    frames = [p for p in held if isinstance(p, pd.DataFrame)]
    if len(frames) == len(held):
        return pd.concat([f.reset_index(drop=True) for f in frames], ignore_index=True)
    if frames or len({p.shape[1] for p in held}) > 1:
        raise SchemaError(f"The outputs given to {OWNER} do not have the same columns.")
    return np.concatenate([np.asarray(p, dtype=object) for p in held])


def _said(parts: Sequence[Sequence[Any] | None]) -> list[Any] | None:
    known = [p for p in parts if p is not None]
    return [v for p in known for v in p] if len(known) == len(parts) else None
