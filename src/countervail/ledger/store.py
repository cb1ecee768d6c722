"""The ledger in SQLite: one file, written by many processes, durable before anything is sent.

WAL with synchronous=FULL: a transaction is on the disk when it is over. Writers take turns (BEGIN IMMEDIATE), so what
one reads before it writes no other can change in between.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakSet

from countervail.core.errors import LedgerError
from countervail.core.guarantee.budget import Budget
from countervail.ledger.accounting import Used, lanes

FORMAT = 1
_APPLICATION = 0x43564C47  # tells our files from other SQLite files
_WAIT = 60.0  # seconds to wait for a turn
_BACK = 60  # seconds by which a clock may be set right without anybody being asked
_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE state (
  id INTEGER PRIMARY KEY CHECK (id = 1), entries INTEGER NOT NULL, time INTEGER NOT NULL, used TEXT NOT NULL,
  seal BLOB NOT NULL, proof BLOB NOT NULL);
CREATE TABLE entries (
  id INTEGER PRIMARY KEY, time INTEGER NOT NULL, kind TEXT NOT NULL, mechanism TEXT NOT NULL, epsilon REAL NOT NULL,
  delta REAL NOT NULL, taken TEXT NOT NULL, request BLOB NOT NULL, seal BLOB NOT NULL);
CREATE TABLE answers (
  entry INTEGER PRIMARY KEY, request BLOB NOT NULL UNIQUE, answer BLOB NOT NULL);
CREATE TABLE groupings (
  entry INTEGER PRIMARY KEY, partition BLOB NOT NULL, lineage BLOB NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class State:
    """Where a ledger stands: how many entries, the time of the last, the counters, and the seal of the last entry."""

    entries: int
    time: int
    used: Used
    seal: bytes


class Store:
    """A ledger's file (or, without a path, its place in memory), and the turns of those who write to it."""

    def __init__(self, path: Path | None, budget: Budget | None = None) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._place: tuple[int, int] | None = None
        self._db: sqlite3.Connection | None = self._connected()
        _around_forks().add(self)
        if path is None:
            assert budget is not None
            _fill(self._here(), budget)
        with self.errors():
            self.key, self.budget = self._about()
        with self.reading() as db:
            self.check_last(db)

    @classmethod
    def create(cls, path: Path, budget: Budget) -> None:
        """A new file, whole or not at all; never in the place of another."""
        if not path.parent.is_dir():
            raise LedgerError(f"No folder '{path.parent}' to keep the ledger '{path.name}' in. Create it first.")
        for place in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            if place.exists():
                raise LedgerError(
                    f"There is a file '{place}' already. A new ledger would forget what the old one counted."
                )
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".countervail-")
        os.close(handle)
        try:
            with _translated(path), closing(sqlite3.connect(name, isolation_level=None)) as db:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = FULL")
                _fill(db, budget)
            try:
                os.link(name, path)  # unlike a rename, it fails where somebody was quicker
            except FileExistsError:
                raise LedgerError(f"There is a file '{path}' already. Nothing was changed.") from None
            _settle(path)
        finally:
            for left in (name, f"{name}-wal", f"{name}-shm"):
                Path(left).unlink(missing_ok=True)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A turn: all of it is durable at the end, or none of it happened."""
        with self._lock, self.errors():
            db = self._here()
            try:
                db.execute("BEGIN IMMEDIATE")
                self._check_place()
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view."""
        with self._lock, self.errors():
            db = self._here()
            try:
                db.execute("BEGIN")
                yield db
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    def state(self, db: sqlite3.Connection) -> State:
        """The running totals, checked against their seal."""
        row = db.execute("SELECT entries, time, used, seal, proof FROM state").fetchone()
        if row is None or not hmac.compare_digest(row[4], self.digest("state", *row[:4])):
            raise LedgerError(f"The totals of the ledger {self.name} are damaged. {_NOTHING}")
        return State(row[0], row[1], tuple(json.loads(row[2])), row[3])

    def write_state(self, db: sqlite3.Connection, state: State) -> None:
        """The running totals after a change."""
        row = (state.entries, state.time, json.dumps(state.used), state.seal)
        db.execute(
            "UPDATE state SET entries = ?, time = ?, used = ?, seal = ?, proof = ?", (*row, self.digest("state", *row))
        )

    def now(self, state: State) -> int:
        """The time, if the clock has not been set back since the last entry."""
        seconds = int(time.time())
        if seconds < state.time - _BACK:
            raise LedgerError(
                f"The clock is {state.time - seconds:,} seconds behind the last entry of the ledger {self.name}. "
                f"Set the clock right. {_NOTHING}"
            )
        return max(seconds, state.time)

    def digest(self, *parts: Any) -> bytes:
        """A keyed hash; nobody without the ledger's key can test a guess against it."""
        return digest(self.key, *parts)

    def check_last(self, db: sqlite3.Connection) -> State:
        """Totals and entries end at the same place."""
        state = self.state(db)
        last = db.execute("SELECT id, seal FROM entries ORDER BY id DESC LIMIT 1").fetchone() or (0, b"")
        if last != (state.entries, state.seal):
            raise LedgerError(f"The entries of the ledger {self.name} do not end where its totals do. {_NOTHING}")
        return state

    @property
    def name(self) -> str:
        """What messages call it."""
        return "in memory" if self.path is None else f"'{self.path.name}'"

    def errors(self) -> Any:
        """Whatever SQLite complains about, as an error of ours."""
        return _translated(self.path)

    def before_fork(self) -> None:
        """Let go of the file: SQLite's locks do not survive a fork, and a copy of them would spoil both processes."""
        self._lock.acquire()
        if self.path is not None and self._db is not None:
            self._db.close()
            self._db = None

    def after_fork(self, *, child: bool) -> None:
        """Go on; the file is opened again when it is needed."""
        if child:
            self._lock = threading.RLock()
        else:
            self._lock.release()

    def _here(self) -> sqlite3.Connection:
        """The connection of this process."""
        if self.path is None and self._process != os.getpid():
            raise LedgerError(
                "A ledger in memory lives in the process that made it: a copy elsewhere would be a second budget. "
                f"Use Ledger.create(path, ...). {_NOTHING}"
            )
        if self._db is None:
            self._db = self._connected()
        return self._db

    def _connected(self) -> sqlite3.Connection:
        with self.errors():
            if self.path is None:
                return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            if not self.path.is_file():
                raise LedgerError(f"No ledger at '{self.path}'. Make one with `countervail ledger create`.")
            db = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=_WAIT,
            )
            ours, version = (db.execute(f"PRAGMA {p}").fetchone()[0] for p in ("application_id", "user_version"))
            if ours != _APPLICATION:
                db.close()
                raise LedgerError(f"The file '{self.path.name}' is not a ledger, or is damaged. {_NOTHING}")
            if version != FORMAT:
                db.close()
                raise LedgerError(
                    f"The ledger '{self.path.name}' has format {version}; this version of Countervail knows format "
                    f"{FORMAT}. Use the version that wrote it. {_NOTHING}"
                )
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            opened = os.stat(self.path)
            self._place = (opened.st_dev, opened.st_ino)
            return db

    def _check_place(self) -> None:
        """The file is still the one that was opened, and has one name only.

        SQLite keeps a journal beside each name: two names of one file would be two budgets, and a file that was moved
        away would go on counting where nobody looks.
        """
        if self.path is None:
            return
        try:
            now = os.stat(self.path)
        except FileNotFoundError:
            raise LedgerError(f"The ledger {self.name} was moved or deleted while it was in use. {_NOTHING}") from None
        if self._place is not None and (now.st_dev, now.st_ino) != self._place:
            raise LedgerError(f"The ledger {self.name} was replaced by another file while it was in use. {_NOTHING}")
        if now.st_nlink > 1:
            raise LedgerError(
                f"The file of the ledger {self.name} has a second name (a hard link), which would be a second budget. "
                f"Remove the other name. {_NOTHING}"
            )

    def _about(self) -> tuple[bytes, Budget]:
        found = dict(self._here().execute("SELECT name, value FROM about").fetchall())
        try:
            budget = Budget(**json.loads(found["budget"]))
            if not hmac.compare_digest(found["proof"], digest(found["key"], "about", found["budget"])):
                raise KeyError("proof")
        except (KeyError, TypeError, ValueError):
            raise LedgerError(f"The budget of the ledger {self.name} is damaged. {_NOTHING}") from None
        return found["key"], budget


_NOTHING = "No answer was given, and nothing was changed."


@cache
def _around_forks() -> WeakSet[Store]:
    """All open stores, looked after when the process forks."""
    stores: WeakSet[Store] = WeakSet()
    held: list[Store] = []

    def before() -> None:
        for store in list(stores):
            store.before_fork()
            held.append(store)

    def after(child: bool) -> None:
        while held:
            held.pop().after_fork(child=child)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=lambda: after(False), after_in_child=lambda: after(True))
    return stores


def digest(key: bytes, *parts: Any) -> bytes:
    """HMAC-SHA-256 of several parts, each with its length, so that no two lists of parts read alike."""
    mac = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        mac.update(len(data).to_bytes(8, "little") + data)
    return mac.digest()


def _fill(db: sqlite3.Connection, budget: Budget) -> None:
    key, text = secrets.token_bytes(32), json.dumps(budget.to_dict())
    state = (0, 0, json.dumps([0] * len(lanes(budget))), b"")
    db.executescript(
        f"BEGIN IMMEDIATE; {_TABLES} PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT};"
    )
    about = {"key": key, "budget": text, "proof": digest(key, "about", text), "created": int(time.time())}
    db.executemany("INSERT INTO about VALUES (?, ?)", about.items())
    db.execute("INSERT INTO state VALUES (1, ?, ?, ?, ?, ?)", (*state, digest(key, "state", *state)))
    db.execute("COMMIT")


def _settle(path: Path) -> None:
    """The file and its name on the disk."""
    for place in (path, path.parent):
        handle = os.open(place, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _translated(path: Path | None) -> Iterator[None]:
    name = "in memory" if path is None else f"'{path.name}'"
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        code = None if code is None else code & 0xFF
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            what = "cannot be written: the disk is full or fails"
        elif code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            what = f"was held by another process for {_WAIT:g} seconds"
        elif code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            what = "cannot be opened for writing"
        else:
            what = "is damaged, or is not a ledger"
        raise LedgerError(f"The ledger {name} {what}. No answer was given; what it held it still holds.") from None
