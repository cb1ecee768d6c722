"""Ledger: what has been let out about some people, and how much more may be."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NoReturn, Self

from countervail.core.errors import BudgetError, LedgerError, RefusedError, bad_parameter
from countervail.core.guarantee.budget import Budget, Composition
from countervail.ledger.accounting import Cost, charges, left_in_words, plus, room
from countervail.ledger.history import Entry, Statement, over_time, read_entries, state_of, verify
from countervail.ledger.locked import lock, unlock
from countervail.ledger.store import State, Store

Draw = Callable[[list[int]], Sequence[bytes]]
_CHUNK = 256  # answers drawn and stored at a time


class Ledger:
    """A privacy budget that belongs to people: all that is ever let out about them is counted here, beforehand.

    `Ledger(...)` lives in memory and in one process, and every one is a budget of its own; `Ledger.create` and
    `Ledger.open` keep it in a file that many processes may use at once. Pass it to every protector of tables of these
    people, as `ledger=`.

    Parameters
    ----------
    dataset : str
        A name for the people. Clones, refits, pickles, other processes and a table with one row more share a budget
        because they name the same people; it is never derived from the rows.
    epsilon, delta : float
        The budgeted maximum: what every label promises, from the first answer to the last.
    rho : float, optional
        A budget of zero-concentrated privacy instead of epsilon and delta.
    composition : {"basic", "optimal", "zcdp"}, optional
        How answers add up. "basic" (default without delta): epsilons and deltas are summed. "zcdp" (default with
        delta): epsilon**2 / 2 is summed, which is less for many small answers. "optimal": the exact sum for a `plan`.
    plan : float or mapping, optional
        For "optimal": the epsilon of every answer (as many as fit), or epsilon to number of answers.
    adjacency : {"replace-one", "add-remove"}
        What the budget is about. Answers that are private when a record is added or removed cost twice where one is
        replaced; answers that are private only when one is replaced cannot be counted under "add-remove".
    edition : str
        A name for the state of table and model, such as a date. Equal questions get equal answers within an edition,
        even if the table has changed; another edition draws, and pays, anew from the same budget.

    Notes
    -----
    *Threat model*: someone who chooses every query and every protector by what was answered before, stops when it
    suits him, crashes processes, and asks through many at once. Not covered: whoever can write to the file, or puts an
    old copy of it back; releases that were not made with this ledger; how long an answer takes.

    References
    ----------
    Proofs, and the order of debit, draw, store and send: docs/decisions/ledger.md. How to choose a budget:
    docs/guide/budgets.md.

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> ledger = cv.Ledger("people of the example", epsilon=2.0)
    >>> private = cv.PrivateNeighbours(0.5, ledger=ledger).fit(small_table(), small_model)
    >>> e = private.explain(small_table(1, seed=2))
    >>> ledger.left(0.5), private.explain(small_table(1, seed=2)).to_frame().equals(e.to_frame()), ledger.left(0.5)
    (3, True, 3)
    """

    def __init__(
        self,
        dataset: str,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        composition: Composition | None = None,
        plan: float | Mapping[float, int] | None = None,
        adjacency: Literal["replace-one", "add-remove"] = "replace-one",
        edition: str = "",
    ) -> None:
        budget = Budget.of(
            dataset, epsilon=epsilon, delta=delta, rho=rho, composition=composition, plan=plan, adjacency=adjacency
        )
        self._store = Store(None, budget)
        self._named, self.edition = True, str(edition)

    @classmethod
    def create(
        cls,
        path: str | Path,
        dataset: str,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        composition: Composition | None = None,
        plan: float | Mapping[float, int] | None = None,
        adjacency: Literal["replace-one", "add-remove"] = "replace-one",
        edition: str = "",
    ) -> Self:
        """A new ledger in a file of its own; an existing file is never touched."""
        budget = Budget.of(
            dataset, epsilon=epsilon, delta=delta, rho=rho, composition=composition, plan=plan, adjacency=adjacency
        )
        Store.create(Path(path), budget)
        return cls.open(path, dataset, edition)

    @classmethod
    def open(cls, path: str | Path, dataset: str | None, edition: str = "") -> Self:
        """The ledger in a file. `dataset` must be the name it was created for; None only to look at it."""
        ledger = cls.__new__(cls)
        ledger._store = Store(Path(path).absolute())
        ledger._named, ledger.edition = dataset is not None, str(edition)
        if dataset is not None and dataset != ledger.dataset:
            raise LedgerError(
                f"The ledger {ledger._store.name} belongs to '{ledger.dataset}', not to '{dataset}'. No answer was "
                f"given. Use the ledger of '{dataset}'; if they are the same people, use the name of the ledger."
            )
        return ledger

    @property
    def budget(self) -> Budget:
        """The budgeted maximum."""
        return self._store.budget

    @property
    def dataset(self) -> str:
        """The name of the people."""
        return self._store.budget.dataset

    @property
    def path(self) -> Path | None:
        """The file, if there is one."""
        return self._store.path

    def left(self, epsilon: float) -> int:
        """How many more answers of this epsilon the budget covers. For the owner: it changes with every answer."""
        with self._store.reading() as db:
            return room(self.budget, self._store.state(db).used, Cost(epsilon))

    def statement(self) -> Statement:
        """Where the ledger stands. For the owner; no promise: the promise is the budget."""
        return state_of(self._store)

    def history(self, last: int | None = None) -> list[Entry]:
        """The entries, oldest first, or only the last of them. Keyed hashes stand for queries; no value is in it."""
        return read_entries(self._store, last)

    def over_time(self, points: int = 400) -> list[tuple[int, float]]:
        """Seconds since 1970, and the share of the budget that was spent by then; for a picture."""
        return over_time(self._store, points)

    def verify(self) -> Statement:
        """Read the whole ledger and check every seal and every sum; an error says what does not fit."""
        return verify(self._store)

    def answer(
        self, requests: Sequence[bytes], cost: Cost, mechanism: str, draw: Draw, at_once: int | None = None
    ) -> list[bytes]:
        """Answers to requests: stored ones again, the others debited, drawn, stored; only then do they leave.

        Requests are bytes that spell all an answer depends on, but for the table. `draw` gets positions in `requests`
        and gives their answers as bytes. Whether the budget covers them is decided as if all were new, so that being
        refused does not tell whether somebody has asked before. `at_once` answers are drawn and stored at a time.
        """
        marks = [self._mark(mechanism, r) for r in requests]
        first: dict[bytes, int] = {}
        for place, mark in enumerate(marks):
            first.setdefault(mark, place)
        entries = self._debit(list(first), cost, mechanism, "answer")
        new = [mark for mark in first if mark in entries]
        step = at_once or _CHUNK
        for start in range(0, len(new), step):
            part = new[start : start + step]
            drawn = draw([first[mark] for mark in part])
            self._keep(
                [
                    (entries[m], m, lock(self._store.key, requests[first[m]], a))
                    for m, a in zip(part, drawn, strict=True)
                ]
            )
        found = self._stored(list(first))
        return [self._unlocked(r, found[m]) for r, m in zip(requests, marks)]

    def once(self, request: bytes, cost: Cost, mechanism: str, draw: Callable[[], bytes]) -> bytes:
        """One draw that everything else is computed from: debited and stored the first time, the same ever after."""
        self._check_named()
        mark = self._mark(mechanism, request)
        if not (found := self._stored([mark])):
            entries = self._debit([mark], cost, mechanism, "draw")
            if mark in entries:
                self._keep([(entries[mark], mark, lock(self._store.key, request, draw()))])
            found = self._stored([mark])
        return self._unlocked(request, found[mark])

    def record_grouping(self, partition: bytes, mechanism: str, *, before: bytes = b"", after: bytes = b"") -> None:
        """Record who hides with whom, unless these people were grouped otherwise before.

        `partition` is a digest of the grouping. The same again is no news. `before` and `after` are digests of stored
        groups that a fit was given and those it left: groups that only grew from the last recorded grouping may follow.
        """
        self._check_named()
        with self._store.writing() as db:
            state = self._store.check_last(db)
            now = self._store.now(state)
            last = db.execute("SELECT partition FROM groupings ORDER BY entry DESC LIMIT 1").fetchone()
            same = last is not None and partition == last[0]
            known = {row[0] for row in db.execute("SELECT lineage FROM groupings WHERE partition = ?", last or (b"",))}
            if same and (after in known or not after):
                return
            if last is not None and not same and before not in known - {b""}:
                raise RefusedError(
                    f"The people of '{self.dataset}' have been grouped before, and otherwise: what two groupings say "
                    f"about a person can be intersected. Nothing has left. Release the first grouping again, or pass "
                    f"the roster of the latest fit to CFK(previous=...), which only adds to it."
                )
            entry = self._entry(db, state, now, "groups", mechanism, 0.0, 0.0, [0] * len(state.used), partition)
            db.execute("INSERT INTO groupings VALUES (?, ?, ?)", (entry.entries, partition, after))
            self._store.write_state(db, entry)

    def grouped(self) -> bool:
        """Whether k-anonymous releases about these people are recorded."""
        with self._store.reading() as db:
            return db.execute("SELECT 1 FROM groupings LIMIT 1").fetchone() is not None

    def keyed(self, *parts: Any) -> bytes:
        """A hash under the ledger's own key, for what must be recognised and not be read."""
        return self._store.digest("keyed", *parts)

    def _debit(self, marks: list[bytes], cost: Cost, mechanism: str, kind: str) -> dict[bytes, int]:
        """Entries for the requests without a stored answer, durable on return; all of them or none."""
        self._check_named()
        with self._store.writing() as db:
            state = self._store.check_last(db)
            now = self._store.now(state)
            if charges(self.budget, state.used, cost, len(marks)) is None:
                raise _over_budget(self.dataset, self.budget, state, cost, len(marks))
            new = [m for m in marks if db.execute("SELECT 1 FROM answers WHERE request = ?", (m,)).fetchone() is None]
            taken = charges(self.budget, state.used, cost, len(new))
            assert taken is not None
            found = {}
            used = plus(state.used, taken)
            for mark, each in zip(new, taken):
                state = self._entry(db, state, now, kind, mechanism, cost.epsilon, cost.delta, list(each), mark)
                found[mark] = state.entries
            if new:
                self._store.write_state(db, replace(state, used=used))
            return found

    def _mark(self, mechanism: str, request: bytes) -> bytes:
        """A keyed hash: equal questions are recognised, and cannot be read."""
        return self._store.digest("request", self.edition, mechanism, request)

    def _check_named(self) -> None:
        if not self._named:
            raise LedgerError(
                f"The ledger {self._store.name} was opened without saying whose it is, to be looked at only. "
                f"No answer was given. Use Ledger.open(path, dataset)."
            )

    def _entry(
        self,
        db: sqlite3.Connection,
        state: State,
        now: int,
        kind: str,
        mechanism: str,
        epsilon: float,
        delta: float,
        taken: list[int],
        mark: bytes,
    ) -> State:
        """One more line; its seal covers all lines before it."""
        row = (state.entries + 1, now, kind, mechanism, float(epsilon), float(delta), json.dumps(taken), mark)
        seal = self._store.digest("entry", state.seal, *row)
        db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, seal))
        return replace(state, entries=row[0], time=now, seal=seal)

    def _keep(self, answers: list[tuple[int, bytes, bytes]]) -> None:
        """Store answers. Where another process was quicker its answer stays; both were paid for."""
        with self._store.writing() as db:
            db.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", answers)

    def _stored(self, marks: list[bytes]) -> dict[bytes, bytes]:
        with self._store.reading() as db:
            rows = (db.execute("SELECT request, answer FROM answers WHERE request = ?", (m,)).fetchone() for m in marks)
            return dict(row for row in rows if row is not None)

    def _unlocked(self, request: bytes, stored: bytes) -> bytes:
        answer = unlock(self._store.key, request, stored)
        if answer is None:
            raise LedgerError(f"A stored answer of the ledger {self._store.name} is damaged. No answer was given.")
        return answer

    def __repr__(self) -> str:
        place = "in memory" if self.path is None else repr(self.path.name)
        edition = f", edition {self.edition!r}" if self.edition else ""
        return f"Ledger({self.dataset!r}, {self.budget.claim}, {place}{edition})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The same ledger: a clone of a protector spends the same budget."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            self._no_pickle()
        return (type(self).open, (str(self.path), self.dataset if self._named else None, self.edition))

    def _no_pickle(self) -> NoReturn:
        raise LedgerError(
            "A ledger in memory cannot be pickled: its copy would be a second budget for the same people. "
            "Use Ledger.create(path, ...), whose copies share the file."
        )


def check_ledger(ledger: Any, owner: str, random_state: Any = None) -> None:
    """A protector's `ledger` parameter."""
    if ledger is None:
        return
    if not isinstance(ledger, Ledger):
        hint = "Use cv.Ledger(name, epsilon=...), Ledger.create(path, ...) or Ledger.open(path, name)."
        raise bad_parameter(owner, "ledger", "a Ledger", type(ledger).__name__, hint)
    if random_state is not None:
        must = "None with a ledger: noise that somebody can take off would break the promise for all answers"
        raise bad_parameter(owner, "random_state", must, "a seed")


def _over_budget(dataset: str, budget: Budget, state: State, cost: Cost, answers: int) -> BudgetError:
    asked = "One answer" if answers == 1 else f"{answers:,} answers"
    more = room(budget, state.used, cost)
    still = {0: "no such answer is", 1: "one such answer is"}.get(more, f"{more:,} such answers are")
    return BudgetError(
        f"{asked} of epsilon = {cost.epsilon:g}{' each' if answers > 1 else ''} would exceed the budget of "
        f"'{dataset}' ({budget.claim}): {still} left ({left_in_words(budget, state.used)}). Nothing "
        f"was answered or debited. A larger budget is a new promise to the same people: it takes a new ledger."
    )
