"""Private answers that a ledger counts: queries on the public grid, answers as positions on it.

Everything here but the draw itself is a function of the query, the declaration and the public model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Ints, Matrix
from countervail.core.encode import Encoder
from countervail.core.errors import LedgerError
from countervail.core.guarantee import DifferentialPrivacy
from countervail.core.protocols import Progress
from countervail.ledger.accounting import Cost
from countervail.ledger.ledger import Ledger
from countervail.protect.dp.grid import Grid
from countervail.protect.dp.public import Public

Draws = Callable[[pd.DataFrame, Matrix, Bools], Matrix]  # rows on the grid, as numbers, and the decisions they want
_BATCH = 1024
_CODE = np.dtype("<i4")
_BESIDE = "The ledger also records k-anonymous releases about the same people, which no epsilon covers."


def promised(promise: DifferentialPrivacy, ledger: Any) -> DifferentialPrivacy:
    """The promise of one answer with that of all of them: the budgeted maximum."""
    return replace(promise, budget=ledger.budget) if isinstance(ledger, Ledger) else promise


def cost_of(promise: DifferentialPrivacy) -> Cost:
    """What one answer is debited with."""
    return Cost(promise.epsilon, adjacency=promise.adjacency)


def beside(ledger: Ledger | None) -> tuple[str, ...]:
    """What must be said where other releases stand in the same ledger."""
    return (_BESIDE,) if ledger is not None and ledger.grouped() else ()


def spelling(
    parameters: Mapping[str, Any], shares: Sequence[Fraction], grid: Grid, public: Public | None = None
) -> bytes:
    """All that an answer depends on but for the query and the table, as a digest: settings, domains, decisions.

    Settings that mean the same are spelt alike. The model is told by its decisions on made-up records; one that decides
    them alike is taken for the same, unless the ledger is opened with another edition.
    """
    left_out = ("ledger", "random_state", "split", "missing")  # shares and axes spell the last two
    parts = [_spelt({n: v for n, v in parameters.items() if n not in left_out}), _spelt([str(s) for s in shares])]
    parts += [_spelt([a.column.name, a.column.type, list(a.values), a.missing]) for a in grid.axes]
    if public is not None:
        decided = public.decide(grid.codes(public.probe.features))
        parts += [_spelt(list(public.decision.classes)), repr(decided.tolist())]
    return hashlib.sha256("\n".join(parts).encode()).digest()


def _spelt(value: Any) -> str:
    """A value so that equal ones are spelt alike in every process: 1 and 1.0, sets in any order, whole estimators."""
    if value is None or isinstance(value, (bool, np.bool_, str)):
        return repr(bool(value)) if isinstance(value, np.bool_) else repr(value)
    if isinstance(value, (int, float, np.integer, np.floating)):
        return repr(float(value)) if float(value) == value else repr(int(value))
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{_spelt(k)}:{_spelt(v)}" for k, v in value.items())) + "}"
    if isinstance(value, (set, frozenset)):
        return "{" + ",".join(sorted(map(_spelt, value))) + "}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return "[" + ",".join(map(_spelt, value)) + "]"
    if hasattr(value, "get_params") and not isinstance(value, type):
        kind = type(value)
        return f"{kind.__module__}.{kind.__qualname__}({_spelt(value.get_params(deep=False))})"
    if callable(value) or " at 0x" in repr(value):
        raise LedgerError(
            f"A ledger tells equal questions by the parameters of the protector, and a {type(value).__name__} among "
            f"them looks different in every process. Use plain values, or an estimator with get_params."
        )
    return repr(value)


def counted(
    ledger: Ledger,
    cost: Cost,
    name: str,
    head: bytes,
    public: Public,
    frame: pd.DataFrame,
    wanted: Bools,
    draw: Draws,
    progress: Progress | None,
) -> Ints:
    """Positions on the grid that answer each row of the frame: debited, drawn, stored, and only then returned."""
    grid = public.grid
    codes = grid.codes(frame)
    requests = [head + own.tobytes() + want.tobytes() for own, want in zip(codes.astype(_CODE), wanted)]
    numbers, columns = grid.numbers(), np.arange(codes.shape[1])

    def drawn(positions: list[int]) -> list[bytes]:
        own = codes[positions]
        cells = draw(grid.frame(own), numbers[columns, own], wanted[positions])
        return [row.tobytes() for row in grid.codes(public.encoder.decode(cells)).astype(_CODE)]

    answers = ledger.answer(requests, cost, name, drawn)
    if progress is not None:
        progress(len(frame), len(frame))  # once, at the end: ticks on the way would tell new questions from old ones
    return np.stack([np.frombuffer(a, _CODE) for a in answers]).astype(np.int64)


def personal(public: Public, encoder: Encoder, frame: pd.DataFrame, queries: Matrix, found: Ints, wanted: Bools) -> Any:
    """Answers in the asker's own values where they agree with hers on the grid, and the decisions about them.

    An answer is the same for all who are equal on the grid. Where her own values in between would undo the decision,
    the values of the grid stay.
    """
    columns = np.arange(found.shape[1])
    snapped = public.grid.numbers()[columns, found]
    own = np.where(found == public.grid.codes(frame), queries, snapped)
    after = _decide(public, encoder, own)
    undone = np.flatnonzero(~wanted[np.arange(len(after)), after])
    if len(undone):
        again = _decide(public, encoder, snapped[undone])
        own[undone], after[undone] = snapped[undone], again
    return own, after


def _decide(public: Public, encoder: Encoder, rows: Matrix) -> Ints:
    parts = [public.decision.decide(encoder.decode(rows[i : i + _BATCH])) for i in range(0, len(rows), _BATCH)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
