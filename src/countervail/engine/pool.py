"""Work on batches of rows in processes of this machine: as many rows as are being worked on, and no more, are held."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from countervail.core.errors import CountervailError, check_count
from countervail.engine.files.parts import disk_error
from countervail.engine.interface import ROWS_PER_FILE, Work

ROWS_AT_ONCE: Final = 2048  # of one piece of work
# Of each process: threads of several processes wait for each other's processors.
ONE_THREAD: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_AHEAD: Final = 2  # pieces for each process that wait or are done and not yet taken


def usable(jobs: int | None) -> int:
    """How many processes: those that were asked for, or one for each processor that this one may use."""
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    check_count("explain_scan", "jobs", jobs)
    return int(jobs)


def in_processes(work: Work, pieces: Iterable[Any], jobs: int) -> Iterator[Any]:
    """What `work` makes of each piece, in the order of the pieces; with one job, in this process."""
    if jobs == 1:
        yield from map(work, pieces)
        return
    from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor
    from joblib.externals.loky.backend.reduction import dumps

    given = (bytes(dumps(work)),)
    pool = ProcessPoolExecutor(max_workers=jobs, initializer=_remember, initargs=given, env=ONE_THREAD)
    waiting: deque[Any] = deque()
    try:
        for piece in pieces:
            waiting.append(pool.submit(_remembered, piece))
            if len(waiting) > _AHEAD * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise CountervailError(
            "A process that worked on a part of the rows was ended by the system, which may be short of memory. "
            "Nothing was written. Use fewer jobs."
        ) from None
    finally:
        pool.shutdown(wait=False, kill_workers=True)


_WORK: list[Work] = []  # of the process that does it


def _remember(pickled: bytes) -> None:
    import pickle

    _WORK[:] = [pickle.loads(pickled)]


def _remembered(piece: Any) -> Any:
    return _WORK[0](piece)


def small(batches: Iterable[Any], rows: int = ROWS_AT_ONCE) -> Iterator[Any]:
    """Arrow batches cut into pieces of at most so many rows; none is empty."""
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def work_on(batches: Iterable[Any], work: Work, fields: Any, folder: Path, jobs: int | None) -> None:
    """Write what `work` makes of batches of rows as Parquet files."""
    _write(in_processes(work, small(batches), usable(jobs)), fields, folder, ROWS_PER_FILE)


def _write(tables: Iterable[Any], fields: Any, folder: Path, rows_per_file: int) -> None:
    """Write Arrow tables of one schema as `part-00000.parquet` and so on."""
    import pyarrow.parquet as pq

    writer, held, made = None, 0, 0
    try:
        for table in tables:
            if writer is None or held + table.num_rows > rows_per_file:
                if writer is not None:
                    writer.close()
                writer = pq.ParquetWriter(folder / f"part-{made:05d}.parquet", fields, store_schema=False)
                held, made = 0, made + 1
            writer.write_table(table)
            held += table.num_rows
    except OSError as error:
        raise disk_error(folder, error) from None
    finally:
        if writer is not None:
            writer.close()


def spread_over(work: Work, parts: Sequence[bytes], jobs: int | None) -> list[bytes]:
    """What `work` makes of each part, in their order."""
    return list(in_processes(work, parts, max(min(usable(jobs), len(parts)), 1)))
