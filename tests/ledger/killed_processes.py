"""Processes that spend a ledger while others end them without warning, and processes that race for its last debit."""

from __future__ import annotations

import io
import multiprocessing
import os
import random
import secrets
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from countervail.core.errors import BudgetError
from countervail.ledger import Cost, Ledger

COST = Cost(0.1)
PEOPLE = "people of the test"
PHASES = ("debiting", "drawing", "storing", "sending")
_REPEATED = 40  # requests that all workers ask again and again, beside fresh ones


def _context():
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["countervail.ledger"])
    return made


def spend(path: str, log: str, phase: str) -> None:
    """Ask for ever; write down each answer that was sent, and where in an answer this process is."""
    sent = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    at = os.open(phase, os.O_WRONLY | os.O_CREAT)
    ledger = Ledger.open(path, PEOPLE)

    def draw(positions: list[int]) -> list[bytes]:
        os.pwrite(at, b"1", 0)
        until = time.perf_counter() + random.random() * 0.001
        while time.perf_counter() < until:
            pass
        os.pwrite(at, b"2", 0)
        return [secrets.token_bytes(12) for _ in positions]

    while True:
        fresh = random.random() < 0.7
        request = secrets.token_bytes(8) if fresh else str(random.randrange(_REPEATED)).encode().rjust(8)
        os.pwrite(at, b"0", 0)
        answer = ledger.answer([request], COST, "test", draw)[0]
        os.pwrite(at, b"3", 0)
        os.write(sent, request + answer)


@dataclass
class Crashes:
    """What a run of crashes left."""

    kills: int
    phases: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    debited: int = 0
    lost: int = 0


def crash(folder: Path, kills: int, workers: int = 4, pause: float = 0.03) -> Crashes:
    """End random workers at random moments; after each, whatever was sent must be debited and stored."""
    path = folder / "crashed.ledger"
    Ledger.create(path, PEOPLE, epsilon=100_000.0)
    context, found, sent = _context(), Crashes(kills), Sent()
    logs: list[Path] = []

    def start(number: int):
        logs.append(folder / f"sent-{len(logs)}")
        worker = context.Process(target=spend, args=(str(path), str(logs[-1]), str(folder / f"phase-{number}")))
        worker.start()
        return worker

    running = [start(i) for i in range(workers)]
    try:
        for kill in range(kills):
            unlucky = random.randrange(workers)
            place = folder / f"phase-{unlucky}"
            while random.random() < 0.99 and not place.exists():  # now and then one that is just starting
                time.sleep(0.001)
            time.sleep(random.random() * pause)
            running[unlucky].kill()
            running[unlucky].join()
            phase = int(place.read_text() or 0) if place.exists() else None
            found.phases["starting" if phase is None else PHASES[phase]] += 1
            place.unlink(missing_ok=True)
            check(path, sent, logs, whole=kill % 100 == 0)
            running[unlucky] = start(unlucky)
    finally:
        for worker in running:
            worker.kill()
            worker.join()
    statement = check(path, sent, logs, whole=True)
    found.sent, found.debited, found.lost = (
        len(sent.answers),
        statement.entries,
        sum(not e.stored for e in Ledger.open(path, None).history()),
    )
    return found


class Sent:
    """What workers wrote down; `more` gives what has come since the last time."""

    def __init__(self) -> None:
        self.answers: dict[bytes, bytes] = {}
        self._read: Counter[Path] = Counter()

    def more(self, logs: list[Path]) -> dict[bytes, bytes]:
        fresh = {}
        for log in logs:
            with log.open("rb") if log.exists() else io.BytesIO() as file:
                file.seek(self._read[log])
                data = file.read()
            whole = len(data) - len(data) % 20
            self._read[log] += whole
            for i in range(0, whole, 20):
                request, answer = data[i : i + 8], data[i + 8 : i + 20]
                assert self.answers.setdefault(request, answer) == answer, "two answers to one request were sent"
                fresh[request] = answer
        return fresh


def check(path: Path, sent: Sent, logs: list[Path], *, whole: bool):
    """Every answer that was sent is the stored one, and has its entry; the totals are the sum of the entries."""
    fresh = sent.more(logs)
    if whole:
        fresh = sent.answers
    ledger = Ledger.open(path, None)
    marks = {ledger._mark("test", r): r for r in fresh}
    stored = ledger._stored(list(marks))
    assert set(stored) == set(marks), "an answer was sent and not stored"
    assert all(ledger._unlocked(marks[m], a) == fresh[marks[m]] for m, a in stored.items())
    statement = ledger.verify() if whole else ledger.statement()
    assert statement.entries >= len(sent.answers), "an answer left without its debit"
    assert statement.used[0] == statement.entries * 10**11
    return statement


def compete(folder: str, races: int, number: int, barrier, results) -> None:
    """Try for the only debit of each ledger."""
    won = []
    for race in range(races):
        ledger = Ledger.open(Path(folder) / f"{race}.ledger", PEOPLE)
        barrier.wait()
        try:
            ledger.answer([bytes([number])], COST, "test", lambda at: [b"answer"])
            won.append(1)
        except BudgetError:
            won.append(0)
    results.put(won)


def race(folder: Path, races: int) -> list[int]:
    """How many of two processes got the last debit, race by race."""
    for number in range(races):
        Ledger.create(folder / f"{number}.ledger", PEOPLE, epsilon=0.1)
    context = _context()
    barrier, results = context.Barrier(2), context.Queue()
    both = [context.Process(target=compete, args=(str(folder), races, i, barrier, results)) for i in range(2)]
    for process in both:
        process.start()
    won = [results.get(timeout=600) for _ in both]
    for process in both:
        process.join()
    return [a + b for a, b in zip(*won)]
