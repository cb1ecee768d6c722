"""countervail anonymize --sweep: several k side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from countervail.cli.shared.common import page_text, progress, say, say_json, table, whole_numbers
from countervail.core.errors import ParameterError
from countervail.core.files.frames import write_text
from countervail.core.table import Table

if TYPE_CHECKING:
    from countervail.protect import TableProtector

_WIDTH = 12


def compare_k(
    rows: Table,
    protector: TableProtector,
    text: str,
    encoding: Literal["midpoint", "bounds", "tf"],
    report: Path | None,
    as_json: bool,
) -> None:
    """Print loss, risk and accuracy per k, and where the knee is."""
    from countervail.measure import sweep
    from countervail.report.sweep_page import sweep_header, sweep_page, sweep_rows

    with progress("Comparing", quiet=as_json) as tick:
        found = sweep(rows, wanted(text), protector=protector, encoding=encoding, progress=tick)
    if report is not None:
        write_text(page_text(sweep_page(found)), report)
    if as_json:
        say_json({**found.to_dict(), "report": None if report is None else str(report)})
        return
    most = max((point.ncp for point in found.points), default=0.0) or 1.0
    drawn = ["█" * round(_WIDTH * point.ncp / most) for point in found.points]
    table([*sweep_header(found), "NCP drawn"], [[*row, bar] for row, bar in zip(sweep_rows(found), drawn)])
    say(found.words)
    if report is not None:
        say(f"Pictures: {report}")


def wanted(text: str) -> list[int]:
    """The values of k in `k=2,5,10`."""
    name, equals, values = text.partition("=")
    if not equals or name.strip() != "k":
        raise ParameterError(f"--sweep takes values of k, such as k=2,5,10,20. Got '{text}'.")
    return whole_numbers(values, "--sweep")
