"""Private answers that a ledger counts: queries on the public grid, answers as positions on it.

Everything here but the draw itself is a function of the query, the declaration and the public model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.encode import Encoder, Matrix
from countervail.core.grid import Grid, Ints
from countervail.core.guarantee import DifferentialPrivacy
from countervail.core.protocols import Progress
from countervail.ledger.accounting import Cost
from countervail.ledger.ledger import Ledger
from countervail.protect._public import Public

Bools = NDArray[np.bool_]
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


def spelling(parameters: Mapping[str, Any], grid: Grid, public: Public | None = None) -> bytes:
    """All that an answer depends on but for the query and the table, as a digest: settings, domains, the model.

    The model is told by its decisions and scores on made-up records. Scores are rounded: they may differ in the last
    digits from run to run, and a question taken for a new one would only cost again.
    """
    parts = [repr(sorted((n, v) for n, v in parameters.items() if n not in ("ledger", "random_state")))]
    parts += [repr((a.column.name, a.column.type, a.values, str(a.dtype), a.missing)) for a in grid.axes]
    if public is not None:
        frame, decision = grid.frame(grid.codes(public.probe.features)), public.decision
        scores = decision.scores(frame) if decision.has_scores else None
        parts += [repr(list(decision.classes)), repr(decision.decide(frame, scores).tolist())]
        parts += [] if scores is None else [repr(np.round(scores, 6).tolist())]
    return hashlib.sha256("\n".join(parts).encode()).digest()


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
    numbers, columns, done = grid.numbers(), np.arange(codes.shape[1]), 0

    def drawn(positions: list[int]) -> list[bytes]:
        nonlocal done
        own = codes[positions]
        cells = draw(grid.frame(own), numbers[columns, own], wanted[positions])
        done += len(positions)
        if progress is not None:
            progress(done, len(frame))
        return [row.tobytes() for row in grid.codes(public.encoder.decode(cells)).astype(_CODE)]

    answers = ledger.answer(requests, cost, name, drawn)
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
