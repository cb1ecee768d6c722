"""What does counting cost? Durable debits in a file: one process, four processes, and after a million entries.

A debit is a transaction on the disk (WAL, synchronous=FULL); an answer is a debit, a draw and a store, two of them.
Beside it stands the bare cost of one synchronous write on the same disk in the same run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "speed"))

from _record import code, parse, versions, write  # noqa: E402

from countervail.ledger import Cost, Ledger  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "ledger.json"
TARGETS = {"debit_ms": 1.0, "debits_per_second": 200.0}
PEOPLE, COST = "people", Cost(0.1)


def timed(job: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Milliseconds: median and the slowest in a hundred."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        found.append(1000 * (time.perf_counter() - start))
    found.sort()
    return {"median_ms": statistics.median(found), "p99_ms": found[int(0.99 * repeats)], "n": repeats}


def measure(ledger: Ledger, repeats: int) -> dict[str, Any]:
    """A debit alone, a whole answer, and a replay."""

    def debit() -> None:
        ledger._debit([secrets.token_bytes(32)], COST, "bench", "answer")

    def answer() -> None:
        ledger.answer([secrets.token_bytes(32)], COST, "bench", lambda at: [bytes(44)])

    ledger.answer([b"again"], COST, "bench", lambda at: [bytes(44)])
    return {
        "debit": timed(debit, repeats),
        "answer": timed(answer, repeats),
        "replay": timed(lambda: ledger.answer([b"again"], COST, "bench", lambda at: [bytes(44)]), repeats),
    }


def synced(folder: Path, repeats: int) -> dict[str, float]:
    """One small write and an fsync."""
    handle = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT)

    def write() -> None:
        os.write(handle, bytes(4096))
        os.fsync(handle)

    try:
        return timed(write, repeats)
    finally:
        os.close(handle)


def fill(path: Path, entries: int) -> None:
    """Entries and answers by the thousand."""
    ledger = Ledger.open(path, PEOPLE)
    for _ in range(entries // 1000):
        ledger.answer([secrets.token_bytes(16) for _ in range(1000)], COST, "bench", lambda at: [bytes(44)] * len(at))


def spend(path: str, answers: int, barrier: Any) -> None:
    """One of several processes."""
    ledger = Ledger.open(path, PEOPLE)
    barrier.wait()
    for _ in range(answers):
        ledger._debit([secrets.token_bytes(32)], COST, "bench", "answer")
    barrier.wait()


def together(path: Path, processes: int, each: int) -> float:
    """Debits per second of several processes."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes + 1)
    workers = [context.Process(target=spend, args=(str(path), each, barrier)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    barrier.wait()
    start = time.perf_counter()
    barrier.wait()
    seconds = time.perf_counter() - start
    for worker in workers:
        worker.join()
    return processes * each / seconds


def main() -> None:
    """Measure on a new ledger, then on one with a million entries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=1000)
    chosen = parse(parser, RESULTS, quick="2,000 entries, 20 repeats")
    if chosen.quick:
        chosen.entries, chosen.repeats = 2_000, 20
    found: dict[str, Any] = {**code(), "seed": None, "versions": versions(), "targets": TARGETS}
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name) / "bench.ledger"
        ledger = Ledger.create(path, PEOPLE, epsilon=1e6)
        found["bare_write"] = synced(folder, chosen.repeats)
        found["new"] = measure(ledger, chosen.repeats)
        found["four_processes_per_second"] = together(path, 4, chosen.repeats // 2)
        print(json.dumps(found["new"]), found["four_processes_per_second"])
        fill(path, chosen.entries)
        found["entries"] = ledger.statement().entries
        found["full"] = measure(ledger, chosen.repeats)
        found["full_four_processes_per_second"] = together(path, 4, chosen.repeats // 2)
        start = time.perf_counter()
        Ledger.open(path, PEOPLE)
        found["open_ms"] = 1000 * (time.perf_counter() - start)
        found["bytes_per_entry"] = path.stat().st_size / found["entries"]
    print(json.dumps(found, indent=1))
    write(chosen, found)


if __name__ == "__main__":
    main()
