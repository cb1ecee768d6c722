"""From queries to explanations, the same for every explainer: batches, wanted decisions, statuses, blanks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import Bools, Floats, Ints, Matrix
from countervail.core.constraints import Constraints
from countervail.core.encode import Encoder
from countervail.core.errors import SchemaError
from countervail.core.explanation import Explanations
from countervail.core.guarantee import Guarantee
from countervail.core.protocols import Progress
from countervail.core.schema import Schema
from countervail.core.table import Table
from countervail.model.decision import Decision, as_labels

Shown = Callable[[], pd.DataFrame]  # cells that are made when somebody looks at them
_EXTRA = ("scores", "pureness", "notes", "shown", "own", "behind")  # what answers may come with


@dataclass(frozen=True, eq=False, slots=True)
class Queries:
    """Rows that ask, as a frame and as numbers, with the decision about each and the decisions that it may want.

    The frame's index is each row's place among all that ask. `constraints` are what they ask for, where it is known;
    with `advice`, who gets no answer is told what stands in the way.
    """

    encoder: Encoder
    frame: pd.DataFrame
    x: Matrix
    now: Ints
    wanted: Bools
    scores: Floats | None = None
    constraints: Constraints | None = None
    advice: bool = True

    def __len__(self) -> int:
        return len(self.now)

    @property
    def already(self) -> Bools:
        """Who has a wanted decision as it is."""
        held: Bools = self.wanted[np.arange(len(self.now)), self.now]
        return held

    def only(self, at: Ints) -> Queries:
        """Some of the queries, in their order."""
        if len(at) == len(self):
            return self
        scores = None if self.scores is None else self.scores[at]
        return replace(
            self, frame=self.frame.iloc[at], x=self.x[at], now=self.now[at], wanted=self.wanted[at], scores=scores
        )

    def answer(self, find: Find, n: int = 1) -> Answers:
        """What `find` gives to those who do not have what they want; `n` rows for each query."""
        at = np.flatnonzero(~self.already)
        if len(at) == len(self):
            return find(self)
        nothing = Answers.nothing(np.repeat(self.x, n, axis=0))
        return nothing.filled((at[:, None] * n + np.arange(n)).ravel(), find(self.only(at))) if len(at) else nothing


@dataclass(frozen=True, eq=False, slots=True)
class Answers:
    """The row that answers each query, and the decision about it (-1: there is no row).

    `found` says which rows lead to a wanted decision; noise may have undone the others. `shown` makes the cells as
    people see them, where these are not the row's own values. `own` (row x feature): values that are still the
    asker's; `behind`: the number of the neighbour that the others were taken from, for attacks on the search itself.
    """

    cells: Matrix
    after: Ints
    found: Bools
    scores: Floats | None = None
    pureness: Floats | None = None
    notes: Sequence[str] | None = None
    shown: Shown | None = None
    own: Bools | None = None
    behind: Ints | None = None

    @classmethod
    def nothing(cls, cells: Matrix) -> Answers:
        """No answers yet."""
        return cls(cells, np.full(len(cells), -1, dtype=np.int64), np.zeros(len(cells), dtype=bool))

    @property
    def given(self) -> Bools:
        """Where there is a row at all."""
        there: Bools = self.after >= 0
        return there

    def only(self, at: Ints) -> Answers:
        """Some of the rows."""
        scores, pureness = (None if v is None else v[at] for v in (self.scores, self.pureness))
        own, behind = None if self.own is None else self.own[at], None if self.behind is None else self.behind[at]
        notes = None if self.notes is None else [self.notes[i] for i in at]
        shown = None if self.shown is None else _some(self.shown, at)
        return Answers(self.cells[at], self.after[at], self.found[at], scores, pureness, notes, shown, own, behind)

    def filled(self, at: Ints, part: Answers) -> Answers:
        """With the answers of some of the queries in their places."""
        cells, after, found = self.cells.copy(), self.after.copy(), self.found.copy()
        cells[at], after[at], found[at] = part.cells, part.after, part.found
        extra = {name: getattr(part, name) for name in _EXTRA}
        placed = {name: _place(at, [v], len(cells)) for name, v in extra.items() if v is not None}
        return Answers(cells, after, found, **placed)


Find = Callable[[Queries], Answers]


def constrained(find: Find, constraints: Sequence[Constraints], of: Ints, n: int = 1) -> Find:
    """Answers queries with equal constraints together; `of` says which of them each row that asks has."""

    def answer(asked: Queries) -> Answers:
        if len(constraints) == 1:
            return find(replace(asked, constraints=constraints[0].coded(asked.encoder)))
        mine = of[asked.frame.index.to_numpy()]
        kinds = np.unique(mine).tolist()
        places = [np.flatnonzero(mine == kind) for kind in kinds]
        own = [replace(asked.only(at), constraints=constraints[k].coded(asked.encoder)) for k, at in zip(kinds, places)]
        answers = join_answers([find(part) for part in own])
        if len(kinds) == 1:
            return answers
        rows = np.concatenate([(at[:, None] * n + np.arange(n)).ravel() for at in places])
        return answers.only(np.argsort(rows))

    return answer


@dataclass(frozen=True, slots=True)
class Aim:
    """The decisions that answers may lead to: every other one, the favourable ones, or those that were named."""

    decision: Decision
    target: Any
    schema: Schema
    owner: str

    def wanted(self, now: Ints) -> Bools:
        """Query x class: which classes an answer may have."""
        classes = np.arange(len(self.decision.classes))
        if isinstance(self.target, str) and self.target == "other":
            other: Bools = classes[None, :] != now[:, None]
            return other
        out = np.empty((len(now), len(classes)), dtype=bool)
        out[:] = self.aimed()
        return out

    def aimed(self) -> Bools:
        """Which classes are aimed at, whatever the decision is now."""
        labels: Any = self.target
        if isinstance(labels, str) and labels == "favourable" and labels not in self.decision.classes:
            labels = self.schema.favourable
            if not labels:
                raise SchemaError(
                    f"{self.owner} aims at the favourable decision, but the table declares none. "
                    f'Write favourable = ["..."] at the top of the schema file, or use --target; in Python, pass '
                    f"favourable=... to Table.from_frame, or target=... here."
                )
        out = np.zeros(len(self.decision.classes), dtype=bool)
        out[self.decision.codes(as_labels(labels), "target")] = True
        return out

    def ask(self, encoder: Encoder, frame: pd.DataFrame, x: Matrix, *, scored: bool = False) -> Queries:
        """Rows with the decision about each; with `scored`, the model's scores as well where it gives any."""
        scores = self.decision.scores(frame) if scored and self.decision.has_scores else None
        now = self.decision.decide(frame, scores)
        return Queries(encoder, frame, x, now, self.wanted(now), scores)

    def answer(
        self,
        encoder: Encoder,
        frame: pd.DataFrame,
        x: Matrix,
        find: Find,
        *,
        batch: int,
        n: int = 1,
        scored: bool = False,
        progress: Progress | None = None,
    ) -> tuple[Queries, Answers]:
        """Queries in batches, which bound the rows of one model call and memory, and what `find` gives to them."""
        parts = []
        for start in range(0, len(frame), batch):
            stop = min(start + batch, len(frame))
            whole = stop - start == len(frame)
            part = frame if whole else frame.iloc[start:stop]
            asked = self.ask(encoder, part, x[start:stop], scored=scored)
            parts.append((asked, asked.answer(find, n)))
            if progress is not None:
                progress(stop, len(frame))
        return join_queries([p[0] for p in parts]), join_answers([p[1] for p in parts])


def remarks(found: Bools, own: list[str]) -> list[str] | None:
    """Behind the last answer of each query, that there are no more; where there is none, why."""
    queries, n = found.shape
    held = found.sum(axis=1)
    notes = [""] * (queries * n)
    for q in range(queries):
        if held[q] == 0:
            notes[q * n] = own[q]
        elif held[q] < n:
            notes[q * n + int(held[q]) - 1] = f"{held[q]} of {n} different answers were found."
    return notes if any(notes) else None


def join_queries(parts: Sequence[Queries]) -> Queries:
    """Several batches as one; the scores stay behind."""
    if len(parts) == 1:
        return replace(parts[0], scores=None)
    x, now, wanted = (np.concatenate([getattr(p, name) for p in parts]) for name in ("x", "now", "wanted"))
    return Queries(parts[0].encoder, pd.concat([p.frame for p in parts]), x, now, wanted)


def join_answers(parts: Sequence[Answers]) -> Answers:
    """Several batches as one; what a batch does not have (nobody was answered in it) stays blank."""
    if len(parts) == 1:
        return parts[0]
    cells, after, found = (np.concatenate([getattr(p, name) for p in parts]) for name in ("cells", "after", "found"))
    ends = np.cumsum([len(p.cells) for p in parts])
    places = [np.arange(end - len(p.cells), end) for end, p in zip(ends, parts)]
    extra: dict[str, Any] = {}
    for name in _EXTRA:
        held = [(at, getattr(p, name)) for at, p in zip(places, parts) if getattr(p, name) is not None]
        if held:
            extra[name] = _place(np.concatenate([at for at, _ in held]), [v for _, v in held], len(cells))
    return Answers(cells, after, found, **extra)


def _place(at: Ints, values: list[Any], n: int) -> Any:
    """Parts of what was answered in their places among `n`; blanks in the others."""
    if callable(values[0]):
        return values[0] if len(values) == 1 and len(at) == n else lambda: _place_cells(at, [v() for v in values], n)
    if isinstance(values[0], np.ndarray):
        blank = {"b": False, "i": -1}.get(values[0].dtype.kind, np.nan)
        out = np.full((n, *values[0].shape[1:]), blank, dtype=values[0].dtype)
        out[at] = np.concatenate(values)
        return out
    words = dict(zip(at.tolist(), [note for part in values for note in part]))
    return [words.get(i, "") for i in range(n)]


def _place_cells(at: Ints, parts: list[pd.DataFrame], n: int) -> pd.DataFrame:
    whole = pd.concat(parts, ignore_index=True)
    return whole if len(at) == n else widened(whole).set_axis(at).reindex(range(n))


def _some(shown: Shown, at: Ints) -> Shown:
    return lambda: shown().iloc[at].reset_index(drop=True)


def explanations(
    asked: Queries,
    answers: Answers,
    decision: Decision,
    schema: Schema,
    guarantee: Guarantee,
    provenance: Mapping[str, Any],
    *,
    caveats: tuple[str, ...] = (),
    undone: str = "",
    scored: bool = False,
    audit: Table | None = None,
    clean: Callable[[Explanations], Explanations] | None = None,
) -> Explanations:
    """All that the asker gets: a query's first row always stands, with its status; further ones only with an answer.

    `undone` is said where a row is given that does not lead to a wanted decision. Frames are made when they are first
    looked at, and go through `clean`.
    """
    n = len(answers.cells) // len(asked)
    stands = np.flatnonzero(answers.given | (np.arange(len(answers.given)) % n == 0))
    query = np.repeat(np.arange(len(asked)), n)[stands]
    answers = answers if n == 1 else answers.only(stands)
    given, found = answers.given, answers.found
    notes = answers.notes
    if undone:
        notes = [undone if bad else said for bad, said in zip(given & ~found, notes or [""] * len(given))]
    held: dict[str, Any] = {
        "guarantee": guarantee,
        "provenance": provenance,
        "caveats": caveats,
        "query": query,
        "notes": None if notes is None else tuple(notes),
        "pureness": answers.pureness,
        "own": answers.own,
        "audit": audit,
    }

    def make() -> Explanations:
        cells = answers.shown() if answers.shown is not None else asked.encoder.decode(answers.cells)
        already = asked.already[query]
        made = Explanations(
            asked.frame.iloc[query].reset_index(drop=True),
            cells if given.all() else blanked(cells, ~given),
            pd.Series(np.where(found, "found", np.where(already, "already_favourable", "no_counterfactual"))),
            decision.labels(asked.now[query]),
            decision.labels(answers.after),
            schema,
            scores=_score_frame(answers, decision) if scored and decision.has_scores else None,
            **held,
        )
        return made if clean is None else clean(made)

    return Explanations.later(make, **held)


def _score_frame(answers: Answers, decision: Decision) -> pd.DataFrame:
    """The scores of the rows; blank where there is none."""
    blank = np.full((len(answers.cells), len(decision.classes)), np.nan)
    shown = blank if answers.scores is None else answers.scores
    return pd.DataFrame(shown, columns=[str(c) for c in decision.classes])


def blanked(frame: pd.DataFrame, gone: Bools) -> pd.DataFrame:
    """The frame with some rows blank."""
    rows = np.arange(len(frame))
    return widened(frame).set_axis(rows).reindex(np.where(gone, -1, rows)).set_axis(frame.index)


def widened(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with dtypes that can hold blanks: whole numbers and truth values become nullable."""
    tight = {n: t for n, t in zip(frame.columns, frame.dtypes) if isinstance(t, np.dtype) and t.kind in "biu"}
    return frame.astype({n: "boolean" if t.kind == "b" else "Int64" for n, t in tight.items()}) if tight else frame
