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
from countervail.core.constraints import CONSTRAINTS, Constraints
from countervail.core.encode import Encoder
from countervail.core.errors import LedgerError
from countervail.core.guarantee import DifferentialPrivacy
from countervail.core.protocols import Progress
from countervail.explain.answering import Answers, Queries
from countervail.ledger.accounting import Cost
from countervail.ledger.ledger import Ledger
from countervail.protect.dp.grid import Grid
from countervail.protect.dp.public import Public

# The places of queries, rows on the grid, the same as numbers, and the decisions they want.
Draws = Callable[[Ints, pd.DataFrame, Matrix, Bools], Matrix]
_BATCH = 1024
_CODE = np.dtype("<i4")
_BESIDE = "The ledger also records k-anonymous releases about the same people, which no epsilon covers."


def promised(promise: DifferentialPrivacy, ledger: Any, public: Public | None = None) -> DifferentialPrivacy:
    """The promise of one answer with that of the model, where it has one, and that of all answers: the budget."""
    if public is not None and public.model_promise is not None:
        promise = promise.with_model(public.model_promise)
    return replace(promise, budget=ledger.budget) if isinstance(ledger, Ledger) else promise


def cost_of(promise: DifferentialPrivacy) -> Cost:
    """What one answer is debited with."""
    return Cost(promise.epsilon, promise.delta, promise.adjacency, promise.rho)


def beside(ledger: Ledger | None) -> tuple[str, ...]:
    """What must be said where other releases stand in the same ledger."""
    return (_BESIDE,) if ledger is not None and ledger.grouped() else ()


def spelling(
    parameters: Mapping[str, Any], shares: Sequence[Fraction], grid: Grid, public: Public | None = None
) -> bytes:
    """All that an answer depends on but for the query and the table, as a digest: settings, domains, decisions.

    Settings that mean the same are spelt alike. The model is told by its decisions on made-up records; one that decides
    them alike is taken for the same, unless the ledger is opened with another edition. A private one is told by its
    weights: what it promises covers no draw in which another model took part.
    """
    # Shares and axes spell split and missing; constraints may come from the schema or the query as well.
    left_out = {"ledger", "random_state", "split", "missing", *CONSTRAINTS}
    if parameters.get("n_counterfactuals") == 1:  # one answer is what it was before there could be several
        left_out.add("n_counterfactuals")
    parts = [_spelt({n: v for n, v in parameters.items() if n not in left_out}), _spelt([str(s) for s in shares])]
    parts += [_spelt([a.column.name, a.column.type, list(a.values), a.missing]) for a in grid.axes]
    if public is not None:
        decided = public.decide(grid.codes(public.probe.features))
        parts += [_spelt(list(public.decision.classes)), repr(decided.tolist())]
        parts += [public.model_digest] if public.model_digest else []
    return hashlib.sha256("\n".join(parts).encode()).digest()


def spell_constraints(constraints: Constraints) -> bytes:
    """All that is asked of an answer, as a digest; nothing where nothing is."""
    names = constraints.encoder.names
    ends = {names[j]: [way, end] for j, (way, end) in constraints.until.items() if constraints.ways.get(j) == way}
    asked = constraints.spelt() | ({"until": ends} if ends else {})
    return hashlib.sha256(_spelt(asked).encode()).digest() if asked else b""


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
    heads: Sequence[bytes],
    public: Public,
    frame: pd.DataFrame,
    wanted: Bools,
    draw: Draws,
    progress: Progress | None,
    at_once: int | None = None,
) -> Ints:
    """Positions on the grid that answer each row of the frame: debited, drawn, stored, and only then returned.

    `heads` tell what each row's answer depends on besides itself. One debit pays for all answers to a row, which are
    drawn together; -1 stands where there are no more.
    """
    grid = public.grid
    codes = grid.codes(frame)
    requests = [h + own.tobytes() + want.tobytes() for h, own, want in zip(heads, codes.astype(_CODE), wanted)]
    numbers, columns = grid.numbers(), np.arange(codes.shape[1])

    def drawn(positions: list[int]) -> list[bytes]:
        own, at = codes[positions], np.array(positions, dtype=np.int64)
        cells = draw(at, grid.frame(own), numbers[columns, own], wanted[positions])
        none = np.asarray(np.isnan(cells).any(axis=1))
        found = grid.codes(public.encoder.decode(np.where(none[:, None], 0.0, cells)))
        found[none] = -1
        return [rows.tobytes() for rows in found.astype(_CODE).reshape(len(own), -1)]

    answers = ledger.answer(requests, cost, name, drawn, at_once)
    if progress is not None:
        progress(len(frame), len(frame))  # once, at the end: ticks on the way would tell new questions from old ones
    return np.stack([np.frombuffer(a, _CODE) for a in answers]).astype(np.int64)


def personal(public: Public, asked: Queries, found: Ints) -> Answers:
    """Answers in the asker's own values where they agree with hers on the grid, and the decisions about them.

    `found` is query x answer x column. An answer is the same for all who are equal on the grid. Where her own values in
    between would undo the decision, the values of the grid stay; where what she asked for allows the one and not the
    other, that one does. An answer that she cannot have is none, and so is a further one that is not valid.
    """
    c, (queries, n, d) = asked.constraints, found.shape
    origin = np.repeat(np.arange(queries), n)
    flat, x = found.reshape(-1, d), asked.x[origin]
    none = np.asarray((flat < 0).any(axis=1))
    snapped = public.grid.numbers()[np.arange(d), np.maximum(flat, 0)]
    same = flat == public.grid.codes(asked.frame)[origin]
    own = np.where(same | none[:, None], x, snapped)
    if c:
        other = np.where(same, snapped, x)
        own = np.where(~c.holds(x, own) & c.holds(x, other), other, own)
    after = _decide(public, asked.encoder, own)
    undone = ~asked.wanted[origin, after] & ~none
    if c:
        undone &= _obeys(c, x, snapped)
    at = np.flatnonzero(undone)
    if len(at):
        own[at], after[at] = snapped[at], _decide(public, asked.encoder, snapped[at])
    valid = asked.wanted[origin, after]
    further = np.arange(len(flat)) % n > 0
    none |= further & ~valid
    if c:
        none |= ~_obeys(c, x, own)
    return Answers(np.where(none[:, None], x, own), np.where(none, -1, after), valid & ~none)


def _obeys(constraints: Constraints, x: Matrix, rows: Matrix) -> Bools:
    """Which rows their queries may have."""
    most = x.shape[1] if constraints.max_changes is None else constraints.max_changes
    ok: Bools = constraints.holds(x, rows).all(axis=1) & ((x != rows).sum(axis=1) <= most)
    return ok


def _decide(public: Public, encoder: Encoder, rows: Matrix) -> Ints:
    parts = [public.decision.decide(encoder.decode(rows[i : i + _BATCH])) for i in range(0, len(rows), _BATCH)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
