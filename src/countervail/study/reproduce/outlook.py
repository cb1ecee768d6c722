"""Which full records are missing, and how long they take: from measured pieces, else scaled up from the quick run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from countervail.core.errors import SchemaError
from countervail.core.files.frames import write_text
from countervail.study.reproduce.catalogue import papers
from countervail.study.reproduce.kept import KeptPieces
from countervail.study.reproduce.record import code_state, read_record, record_path
from countervail.study.reproduce.run import pieces_of
from countervail.study.reproduce.values import Exhibit, Piece, Publication, Size

TIMES = "reproduce_times.json"  # beside the folder of records
# Settings that say how often the same work is done: pieces that differ in them alone take about as long.
_REPEATED = ("split", "repetition", "sample")
# Settings that work grows with: by themselves, or by how many they are.
_GROWING = ("people", "runs", "parts", "samples", "folds")
_SIZES: tuple[Size, ...] = ("quick", "full")
_LISTED = ("epsilons", "ks", "trees", "leaves")


@dataclass(frozen=True, slots=True)
class Outlook:
    """A full run that has not been recorded: its pieces, and processor seconds of all of them, as far as known.

    `measured` says how many of the pieces, or others like them, were timed; the rest is by others of the same work
    on the same data (`alike`), or scaled from the quick run.
    """

    paper: str
    exhibit: Exhibit
    pieces: int
    measured: int
    seconds: float | None
    alike: bool = False


def missing_full(records: Path) -> list[Outlook]:
    """Everything that can be reproduced and has no full record."""
    known = read_times(records)
    return [
        _outlook(records, paper, e, known)
        for paper in papers().values()
        for e in paper.exhibits
        if e.entries is not None and not record_path(records, paper.id, e.id, "full").is_file()
    ]


def quick_seconds(records: Path) -> float:
    """Processor seconds of all quick runs, by their records, or by what part of its full record's work each is.

    Pieces that several tables share count once.
    """
    total, before = 0.0, set[Piece]()
    for paper in papers().values():
        for e in paper.exhibits:
            sizes: list[Size] = [s for s in _SIZES if record_path(records, paper.id, e.id, s).is_file()]
            new = [p for p in pieces_of(e, "quick") if p not in before]
            if new and sizes:
                before.update(new)
                found = read_record(record_path(records, paper.id, e.id, sizes[0]))
                total += found.cpu_seconds * _work(new) / _work(pieces_of(e, sizes[0]))
    return total


def _work(pieces: Iterable[Piece]) -> float:
    return sum(amount(p) for p in pieces)


def _outlook(records: Path, paper: Publication, exhibit: Exhibit, known: Mapping[str, float]) -> Outlook:
    pieces = pieces_of(exhibit, "full")
    timed = [known.get(like(p)) for p in pieces]
    measured = sum(t is not None for t in timed)
    # What was never timed takes as long as other pieces of the same work on the same data, per amount of it.
    paces = _paces(known)
    times = [_guess(p, paces) if t is None else t for p, t in zip(pieces, timed)]
    rest = [p for p, t in zip(pieces, times) if t is None]
    spent = sum(t for t in times if t is not None)
    if not rest:
        return Outlook(paper.id, exhibit, len(pieces), measured, spent, alike=True)
    scaled = _scaled(records, paper, exhibit, rest)
    return Outlook(paper.id, exhibit, len(pieces), measured, None if scaled is None else spent + scaled)


def _paces(known: Mapping[str, float]) -> dict[tuple[str, tuple[str, ...]], float]:
    """For each kind of work on each data set: seconds per amount of it, over everything that was timed."""
    spent: dict[tuple[str, tuple[str, ...]], list[float]] = {}
    for spelt, seconds in known.items():
        work, settings = json.loads(spelt)
        piece = Piece(work, tuple((n, v) for n, v in settings))
        total = spent.setdefault((work, piece.sets), [0.0, 0.0])
        total[0] += seconds
        total[1] += amount(piece)
    return {kind: seconds / much for kind, (seconds, much) in spent.items()}


def _guess(piece: Piece, paces: Mapping[tuple[str, tuple[str, ...]], float]) -> float | None:
    pace = paces.get((piece.work, piece.sets))
    return None if pace is None else pace * amount(piece)


def _scaled(records: Path, paper: Publication, exhibit: Exhibit, rest: Sequence[Piece]) -> float | None:
    """The time of the quick run, as many times as there is more to do."""
    path = record_path(records, paper.id, exhibit.id, "quick")
    if not path.is_file():
        return None
    return read_record(path).cpu_seconds * _work(rest) / _work(pieces_of(exhibit, "quick"))


def amount(piece: Piece) -> float:
    """How much work a piece is, beside others of its kind."""
    given = dict(piece.settings)
    numbers = [max(float(given[n]), 1.0) for n in _GROWING if n in given]
    return prod([*numbers, *(len(given[n]) for n in _LISTED if n in given)])


def like(piece: Piece) -> str:
    """What pieces that take about as long have in common."""
    settings = [[n, v] for n, v in piece.settings if n not in _REPEATED]
    return json.dumps([piece.work, settings], sort_keys=True, default=str)


def write_times(records: Path, store: str | Path, seed: int = 0) -> Path:
    """Write down what the finished pieces of a store took, by kind; kinds that are not in it stay as they were.

    Pieces of another version of the code count too: times are no figures.
    """
    kept = KeptPieces(Path(store))
    found: dict[str, list[float]] = {}
    for piece in dict.fromkeys(_full_pieces()):
        if (done := kept.read(kept.path(piece, seed, piece.sets))) is not None:
            found.setdefault(like(piece), []).append(float(done["cpu_seconds"]))
    means = {k: round(sum(v) / len(v), 3) for k, v in found.items()}
    path = records.parent / TIMES
    told = {**code_state(), "cpu_seconds": dict(sorted({**read_times(records), **means}.items()))}
    write_text(json.dumps(told, indent=1) + "\n", path)
    return path


def read_times(records: Path) -> dict[str, float]:
    """The times of single pieces that were written down, by kind."""
    path = records.parent / TIMES
    if not path.is_file():
        return {}
    try:
        held: Any = json.loads(path.read_text(encoding="utf-8"))["cpu_seconds"]
        return {str(k): float(v) for k, v in held.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SchemaError(
            f"'{path.name}' is no list of times. Write it anew: countervail reproduce --times."
        ) from error


def _full_pieces() -> Iterable[Piece]:
    for paper in papers().values():
        for exhibit in paper.exhibits:
            yield from pieces_of(exhibit, "full")
