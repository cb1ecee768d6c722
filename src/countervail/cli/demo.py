"""countervail demo: the story on bundled data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from countervail.cli._common import AsJson, progress, say, say_json, table


def demo(
    folder: Annotated[Path, typer.Option("--output", "-o", help="Where the report goes.")] = Path("countervail-demo"),
    as_json: AsJson = False,
) -> None:
    """Explain the refused applicants of the bundled German credit data, and write a report to open.

    Example: `countervail demo -o my-demo`
    """
    from countervail.report import write_page
    from countervail.report.demo import demo_page, run_demo

    with progress("Explaining the refused applicants", quiet=as_json) as tick:
        summary = run_demo(progress=tick)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.html"
    write_page(demo_page(summary), path)
    if as_json:
        say_json({**summary.to_dict(), "report": str(path)})
        return
    say(summary.opening)
    for text in summary.sentences:
        say(f"\n  {text}")
    say("")
    table(list(summary.header), [list(r) for r in summary.rows])
    say(f"\n{summary.promise}")
    say(f"\nReport: {path.resolve()}")
