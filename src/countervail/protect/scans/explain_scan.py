"""Explanations for as many queries as an engine can read: the answers of one call, wherever they are made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from countervail.core.errors import CountervailError, SchemaError, bad_parameter, listed
from countervail.core.explanation import Explanations
from countervail.core.files.frames import write_text
from countervail.core.guarantee import Guarantee
from countervail.core.stats import plain_value
from countervail.engine.files.folder import check_new, whole_folder
from countervail.engine.interface import COUNT
from countervail.engine.pool import small
from countervail.engine.scan import Scan
from countervail.protect._fitted import snapshot
from countervail.protect.dp.base import PrivateExplainer
from countervail.protect.scans.sent import ANSWER, SentExplainer, answer_table, beside

_OWNER = "explain_scan"
BESIDE = "_explanations.json"  # beside the answers; readers of Parquet folders pass over such names


@dataclass(frozen=True, eq=False, slots=True)
class ScanAnswers:
    """Answers in a folder of Parquet files: how many there are, and what is promised of them."""

    folder: Path
    queries: int
    status: Mapping[str, int]
    guarantee: Guarantee
    provenance: Mapping[str, Any]
    caveats: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        told: dict[str, Any] = plain_value(
            {
                "kind": "scan_answers",
                "version": 1,
                "queries": self.queries,
                "status": dict(self.status),
                "provenance": self.provenance,
                "caveats": list(self.caveats),
            }
        )
        return {**told, "guarantee": self.guarantee.to_dict()}


def explain_scan(
    explainer: Any,
    scan: Scan,
    folder: str | Path,
    *,
    id: str,
    jobs: int | None = None,
    caveats: Sequence[str] = (),
) -> ScanAnswers:
    """Explain every row of a scan, and write the answers as Parquet files into a new folder.

    Each answer is the one that `explainer.explain` gives. The folder comes into being when all answers are in it.

    Parameters
    ----------
    explainer : fitted explainer or protector
        It is sent to the processes that answer. A protector with groups goes without rows; a plain explainer takes the
        rows it answers from along. Noise that is drawn for each answer needs a ledger, which is debited here, once for
        each query, before anything is drawn, however often a part of the work is repeated.
    scan : Scan
        The queries: `Table.scan("asked/*.parquet", engine=...)`.
    folder : path
        A folder that does not exist yet.
    id : str
        The column of the queries that names each: rows in an engine have no order.
    jobs : int, optional
        How many processes of this machine answer; default: one for each processor. A cluster has its own.
    caveats : list of str
        What else must be said of the answers, besides what the explainer says itself.

    Examples
    --------
    >>> import tempfile, countervail as cv
    >>> from countervail.testing import small_model, small_table
    >>> people = cv.CFK(k=4).fit(small_table(90), small_model)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     asked = small_table(30, seed=4).frame[["id", *small_table(1).schema.features]]
    ...     asked.to_parquet(f"{place}/asked.parquet")
    ...     found = cv.explain_scan(people, cv.Table.scan(f"{place}/asked.parquet"), f"{place}/out", id="id", jobs=1)
    >>> found.queries, found.guarantee.k
    (30, 4)
    """
    place = Path(folder)
    check_new(place, _OWNER)
    if not isinstance(scan, Scan):
        raise bad_parameter(_OWNER, "scan", "a Scan", type(scan).__name__, "Open the files as a scan first.")
    noisy = bool(getattr(type(explainer), "draws_noise", False)) and not getattr(type(explainer), "keeps_draw", False)
    if noisy and (not isinstance(explainer, PrivateExplainer) or explainer.ledger is None):
        hint = "It counts every query once, however often a part of the work is repeated."
        raise bad_parameter(_OWNER, "explainer", "one with a ledger, as it draws noise for each answer", None, hint)
    columns = _columns(scan, id)
    if noisy:
        made, told = _counted(explainer, scan, columns, id, jobs)
    else:
        made, told = None, _first(explainer, scan, columns, id)
    sent = None if made is not None else SentExplainer.of(explainer, id)
    with whole_folder(place, _OWNER) as part:
        if sent is None:
            import pyarrow.parquet as pq

            pq.write_table(made, part / "part-00000.parquet", store_schema=False)
        else:
            fields = answer_table(told, sent.regions).schema
            scan.relation.worked_on(columns, sent, fields, part, jobs=jobs)
        queries, status = _checked(scan, part, told)
        answers = ScanAnswers(place, queries, status, told.guarantee, told.provenance, (*told.caveats, *caveats))
        write_text(json.dumps(answers.to_dict(), allow_nan=False), part / BESIDE)
    return answers


def _columns(scan: Scan, name: str) -> list[str]:
    """What is read of the queries: all but other identifiers, and the target, which nobody explains."""
    kinds = scan.relation.kinds
    if name not in kinds:
        raise bad_parameter(_OWNER, "id", f"a column of the queries: {listed(list(kinds))}", name)
    kept = [c.name for c in scan.schema if c.role not in ("identifier", "target")]
    return [name, *(n for n in kept if n != name)]


def _first(explainer: Any, scan: Scan, columns: list[str], name: str) -> Explanations:
    """The answer to one query: it tells what all answers share, and whether queries can be answered at all."""
    batch = next(small(scan.relation.rows(columns, limit=1)), None)
    if batch is None:
        raise SchemaError("The scan holds no queries.")
    frame = batch.to_pandas()
    found: Explanations = explainer.explain(frame.drop(columns=name))
    return found.with_ids(frame[name].astype(object).where(frame[name].notna(), ""), name)


def _counted(explainer: PrivateExplainer, scan: Scan, columns: list[str], name: str, jobs: int | None) -> Any:
    """All answers with noise: debited here as one batch, whole or not at all, and drawn where the work is done."""
    import pyarrow as pa

    parts = list(scan.relation.rows(columns))
    if not parts or not sum(p.num_rows for p in parts):
        raise SchemaError("The scan holds no queries.")
    frame: pd.DataFrame = pa.Table.from_batches(parts).to_pandas()
    ids = frame.pop(name)
    if count := int(ids.isna().sum()):
        raise bad_parameter(_OWNER, "id", "a column that has a value for everybody", name, f"{count} have none.")
    told = snapshot(explainer)._explained(
        frame, None, None, lambda work, drawn: scan.relation.spread(work, drawn, jobs=jobs)
    )
    told = told.with_ids(ids, name)
    return answer_table(told, bool(getattr(type(explainer), "gives_regions", False))), told


def _checked(scan: Scan, folder: Path, told: Explanations) -> tuple[int, dict[str, int]]:
    """How many queries were answered, and how, counted by the engine on what was written: all of them, each once."""
    written = scan.relation.reopened(folder)
    which, status = (beside(n, told) for n in (ANSWER, "status"))
    counts = written.grouped([which, status]).to_pandas()
    first = counts[counts[which] == 0]
    queries = int(first[COUNT].sum())
    if queries != scan.relation.count():
        raise CountervailError(
            f"{queries:,} queries were answered of {scan.relation.count():,}: files may have changed meanwhile. "
            f"Nothing has left. Run it again."
        )
    return queries, {str(s): int(n) for s, n in zip(first[status], first[COUNT])}
