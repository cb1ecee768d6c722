"""Running a reproduction: pieces in processes, finished ones kept, and nothing computed twice."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from countervail.core.errors import CountervailError, PrivacyWarning, bad_parameter, check_count
from countervail.core.protocols import Progress
from countervail.study.reproduce.catalogue import check_possible, find_exhibit, find_paper
from countervail.study.reproduce.kept import KeptPieces, usual_folder
from countervail.study.reproduce.record import provenance
from countervail.study.reproduce.result import Reproduction
from countervail.study.reproduce.together import Found
from countervail.study.reproduce.values import SIZES, Exhibit, Piece, Size
from countervail.study.reproduce.work import worker


def reproduce(
    paper: str,
    table: str | int,
    *,
    size: Size = "quick",
    seed: int = 0,
    store: str | Path | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Reproduction:
    """A table or a figure of a paper, computed anew: the printed figures beside ours, with intervals.

    Parameters
    ----------
    paper : str
        A name of `papers()`, or another that the paper goes by.
    table : str or int
        A table or figure, such as 6 or "fig4".
    size : {"quick", "full", "tiny"}
        Minutes; as large as the paper's (or as a night allows, which is then said); or only to see that it works.
    seed : int
        Chooses splits, samples and models. The noise of private mechanisms is never seeded.
    store : path, optional
        Where finished pieces are kept: a run that was stopped goes on. Default: the user's cache folder.
    n_jobs : int
        Processes.
    progress : callable, optional
        Told how many pieces are done, of how many.

    Examples
    --------
    >>> import tempfile, countervail as cv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = cv.study.reproduce("goethals", 4, store=folder)
    >>> [line.verdict for line in found.lines][:2], found.differing()
    (['equal', 'equal'], ())
    """
    if size not in SIZES:
        raise bad_parameter("reproduce", "size", f"one of {SIZES}", size)
    check_count("reproduce", "n_jobs", n_jobs)
    source = find_paper(paper)
    exhibit = find_exhibit(source, str(table))
    check_possible(source, exhibit)
    about = provenance(exhibit.needs, seed)
    kept = KeptPieces.open(store if store is not None else usual_folder())
    found = _all(pieces_of(exhibit, size), seed, kept, n_jobs, progress)
    return Reproduction.of(source.id, exhibit, size, found, about)


def pieces_of(exhibit: Exhibit, size: Size) -> list[Piece]:
    """Every piece that an exhibit needs, once."""
    entries = exhibit.entries(size) if exhibit.entries is not None else ()
    return list(dict.fromkeys(p for e in entries for o in e.ours.values() for p in o.pieces))


def _all(
    pieces: Sequence[Piece], seed: int, kept: KeptPieces, n_jobs: int, progress: Progress | None
) -> Mapping[Piece, Found]:
    """What every piece found, read where it is finished and computed where it is not."""
    place = {p: kept.path(p, seed, p.sets) for p in pieces}
    found: dict[Piece, Found] = {p: known for p in pieces if (known := kept.read(place[p])) is not None}
    if progress is not None:
        progress(len(found), len(pieces))
    for piece, result in _computed([p for p in pieces if p not in found], seed, n_jobs):
        kept.keep(place[piece], result)
        found[piece] = result
        if progress is not None:
            progress(len(found), len(pieces))
    return found


def _computed(todo: Sequence[Piece], seed: int, n_jobs: int) -> Iterator[tuple[Piece, dict[str, Any]]]:
    if n_jobs == 1 or len(todo) < 2:
        for piece in todo:
            yield piece, perform(piece, seed)
        return
    # Fresh processes: a fork would share locks of the libraries that were loaded here.
    with ProcessPoolExecutor(min(n_jobs, len(todo)), mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(perform, p, seed): p for p in todo}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def perform(piece: Piece, seed: int) -> dict[str, Any]:
    """Do one piece of work, and say what processor time it took."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # nothing leaves; the pages say what promises nothing
        try:
            found: dict[str, Any] = worker(piece.work)(seed=seed, **dict(piece.settings))
        except CountervailError as error:
            error.add_note(f"in {piece.told}")
            raise
    return {**found, "cpu_seconds": time.process_time() - start}
