"""Answers to as many queries as an engine can read, on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from countervail import registry
from countervail.cli.shared.at_scale import as_source
from countervail.cli.shared.common import remark, say_json
from countervail.core.errors import ParameterError
from countervail.engine.files.folder import check_new

if TYPE_CHECKING:
    from countervail.engine import Scan
    from countervail.protect.scans.explain_scan import ScanAnswers


def check_asked(rows: Path | None, name: str | None, outputs: Sequence[Path]) -> tuple[Path, str, Path]:
    """What --engine needs: queries in files, what names them, and a folder for the answers."""
    output = outputs[0] if len(outputs) == 1 else None
    if rows is None or name is None or output is None:
        lost = [flag for flag, v in (("--rows", rows), ("--id", name), ("-o", output)) if v is None]
        raise ParameterError(f"--engine needs {lost[0]}: queries in Parquet files, their names, and a new folder.")
    check_new(output, "explain")
    return rows, name, output


def check_counted(kind: Any, method: str, ledger: Any) -> None:
    """Noise that is drawn for each answer is counted before it is drawn elsewhere."""
    if registry.fact(kind, "draws_noise") and not registry.fact(kind, "keeps_draw") and ledger is None:
        raise ParameterError(f"--engine with --method {method} needs --ledger, which pays once for each query.")


def open_queries(rows: Path, engine: str, memory: str | None, threads: int | None, master: str | None) -> Scan:
    """The queries of files, in an engine; what their columns are is the explainer's to say."""
    from countervail.core.table import Table

    found: Scan = Table.scan(as_source(rows), engine=engine, memory=memory or "2 GB", threads=threads, master=master)
    return found


def answer_scan(
    explainer: Any, scan: Scan, output: Path, name: str, threads: int | None, caveats: Sequence[str]
) -> ScanAnswers:
    """All answers, written whole or not at all."""
    from countervail.protect import explain_scan

    try:
        return explain_scan(explainer, scan, output, id=name, jobs=threads, caveats=caveats)
    finally:
        scan.close()


def tell_answers(found: ScanAnswers, output: Path, as_json: bool) -> None:
    """The result, for a person or a program."""
    counts = ", ".join(f"{n:,} {status}" for status, n in sorted(found.status.items()))
    remark(f"{found.queries:,} queries answered ({counts}) in {output}.")
    if as_json:
        told = {"guarantee": found.guarantee.to_dict(), "status": dict(found.status), "caveats": found.caveats}
        say_json({**told, "output": str(output)})
