"""Reading a ledger: where it stands, what happened when, and whether it all adds up. No query is in any of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from countervail.core.errors import LedgerError
from countervail.core.guarantee.budget import Budget
from countervail.core.stats import plain_value
from countervail.ledger.accounting import Used, lanes, left_in_words, share_spent
from countervail.ledger.store import State, Store

KINDS = {"answer": "an answer", "draw": "one draw", "groups": "a grouping (k-anonymous, no epsilon)"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: when, what for, what it took; `request` is a keyed hash."""

    number: int
    time: int
    kind: str
    mechanism: str
    epsilon: float
    delta: float
    request: str
    spent: float
    stored: bool

    @property
    def when(self) -> str:
        """The time in words, UTC."""
        return in_words(self.time)


@dataclass(frozen=True, slots=True)
class Statement:
    """Where a ledger stands, for its owner. It is no promise: that is the budget, whatever is spent of it."""

    budget: Budget
    entries: int
    used: Used
    groupings: int
    created: int
    last: int | None

    @property
    def left(self) -> str:
        """What is left, in words."""
        return left_in_words(self.budget, self.used)

    @property
    def share_spent(self) -> float:
        """How much of the budget is spent, from 0 to 1."""
        return share_spent(self.budget, self.used)

    @property
    def promise(self) -> str:
        """What holds of all that was released with the ledger, and what epsilon says nothing about."""
        within = f"with this ledger about '{self.budget.dataset}' stays within {self.budget.claim}"
        if not self.groupings:
            return f"Everything released {within}."
        several = "" if self.groupings == 1 else "s"
        return (
            f"What was released with noise {within}. No epsilon covers the k-anonymous releases that left through it "
            f"({self.groupings:,} grouping{several}): they keep their own promise."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        counters = [
            {"name": lane.name, "spent": u / lane.unit, "allowed": lane.allowed / lane.unit}
            for lane, u in zip(lanes(self.budget), self.used)
        ]
        about: dict[str, Any] = {
            "entries": self.entries,
            "groupings": self.groupings,
            "created": self.created,
            "last": self.last,
        }
        about |= {"promise": self.promise}
        told: dict[str, Any] = plain_value({"counters": counters, "left": self.left, **about})
        return {"budget": self.budget.to_dict(), **told}


def in_words(time: int) -> str:
    """A time, UTC."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


def state_of(store: Store) -> Statement:
    """Where a ledger stands."""
    with store.reading() as db:
        return _statement(store, db, store.check_last(db))


def read_entries(store: Store, last: int | None = None) -> list[Entry]:
    """Entries, oldest first; what was spent after each is a share of the budget."""
    with store.reading() as db:
        state = store.check_last(db)
        first = 0 if last is None else max(state.entries - last, 0)
        used, found = _before(db, first, state), []
        rows = db.execute(
            "SELECT e.id, e.time, e.kind, e.mechanism, e.epsilon, e.delta, e.taken, e.request, a.entry IS NOT NULL "
            "FROM entries e LEFT JOIN answers a ON a.entry = e.id WHERE e.id > ? ORDER BY e.id",
            (first,),
        )
        for number, time, kind, mechanism, epsilon, delta, taken, request, stored in rows:
            used = tuple(u + t for u, t in zip(used, json.loads(taken)))
            spent = share_spent(store.budget, used)
            found.append(Entry(number, time, kind, mechanism, epsilon, delta, request.hex()[:16], spent, bool(stored)))
        return found


def over_time(store: Store, points: int = 400) -> list[tuple[int, float]]:
    """Times and the share of the budget that was spent by then; as many points as a picture can show."""
    with store.reading() as db:
        state = store.check_last(db)
        used, every = (0,) * len(state.used), max(state.entries // points, 1)
        found = [(_created(db), 0.0)]
        for number, time, taken in db.execute("SELECT id, time, taken FROM entries ORDER BY id"):
            used = tuple(u + t for u, t in zip(used, json.loads(taken)))
            if number % every == 0 or number == state.entries:
                found.append((time, share_spent(store.budget, used)))
        return found


def verify(store: Store) -> Statement:
    """Every seal and every sum, from the first entry to the totals."""
    with store.reading() as db:
        if (said := db.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
            raise LedgerError(f"The file of the ledger {store.name} is damaged ({said.splitlines()[0]}).")
        state = store.check_last(db)
        used, seal, count = (0,) * len(state.used), b"", 0
        for *row, found in db.execute("SELECT * FROM entries ORDER BY id"):
            seal, count = store.digest("entry", seal, *row), count + 1
            if row[0] != count or seal != found:
                raise LedgerError(f"Entry {count:,} of the ledger {store.name} is missing or was changed.")
            used = tuple(u + t for u, t in zip(used, json.loads(row[6])))
        if used != state.used:
            raise LedgerError(f"The totals of the ledger {store.name} are not the sum of its entries.")
        if any(u > lane.allowed for u, lane in zip(used, lanes(store.budget))):
            raise LedgerError(f"The ledger {store.name} has let out more than its budget.")
        strays = "SELECT COUNT(*) FROM answers a LEFT JOIN entries e ON e.id = a.entry WHERE e.request IS NOT a.request"
        if db.execute(strays).fetchone()[0]:
            raise LedgerError(f"The ledger {store.name} holds answers without an entry.")
        return _statement(store, db, state)


def _before(db: Any, first: int, state: State) -> Used:
    """The counters after the first entries: the totals without what came later."""
    used = state.used
    for (taken,) in db.execute("SELECT taken FROM entries WHERE id > ?", (first,)):
        used = tuple(u - t for u, t in zip(used, json.loads(taken)))
    return used


def _statement(store: Store, db: Any, state: State) -> Statement:
    groupings = db.execute("SELECT COUNT(*) FROM groupings").fetchone()[0]
    return Statement(store.budget, state.entries, state.used, groupings, _created(db), state.time or None)


def _created(db: Any) -> int:
    return int(db.execute("SELECT value FROM about WHERE name = 'created'").fetchone()[0])
