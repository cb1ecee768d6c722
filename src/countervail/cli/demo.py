"""countervail demo: the story on bundled data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countervail.cli.shared.common import AsJson, page_text, progress, remark, say, say_json, take_notes

if TYPE_CHECKING:
    from countervail.auditing import Audit
    from countervail.core.explanation import Explanations
    from countervail.core.table import Table
    from countervail.report.demo_page import DemoSummary


def demo(
    folder: Annotated[Path, typer.Option("--output", "-o", help="Where the report goes.")] = Path("countervail-demo"),
    as_json: AsJson = False,
) -> None:
    """The story on the bundled German credit data: what explanations expose, and what it costs to stop that.

    Example: `countervail demo -o my-demo`
    """
    from countervail.auditing import audit
    from countervail.core.files.frames import write_text
    from countervail.report.demo_page import demo_page, run_demo

    folder.mkdir(parents=True, exist_ok=True)
    remark("Explaining, protecting, attacking ...")
    audited: list[Audit] = []

    def judge(plain: Explanations, private: Explanations, members: Table, others: Table) -> None:
        audited.extend(audit(e, members, control=others, jobs=1) for e in (plain, private))

    with progress("Working", quiet=as_json) as tick:
        summary = run_demo(progress=tick, answered=judge)
    open_, ours = audited
    path, dossier = folder / "report.html", folder / "dossier.html"
    notes = take_notes([*ours.caveats, *ours.steps])
    write_text(page_text(demo_page(summary)), path)
    ours.to_html(dossier)
    ours.to_json(folder / "dossier.json")
    if as_json:
        verdicts = {"verdict": ours.verdict, "sentence": ours.sentence, "verdict_of_plain_explanations": open_.verdict}
        told = {"report": str(path), "dossier": str(dossier), **verdicts}
        say_json({**summary.to_dict(), **told})
    else:
        _tell(summary, open_, ours)
        say(f"\nReport: {path.resolve()}\nDossier to sign: {dossier.resolve()}")
    for text in notes:  # the story comes first
        remark(text)


def _tell(summary: DemoSummary, open_: Audit, ours: Audit) -> None:
    """The story on the terminal."""
    for number, text in enumerate(summary.story, 1):
        say(f"{number}. {text}")
    say(f"\nOne explanation before:\n  {summary.before}\nand after:\n  {summary.after}")
    say("\nThree explanations that may be handed out:")
    for text in summary.sentences:
        say(f"  {text}")
    say(f"\nPromise: {summary.private.promise}")
    say(f"\nMay the plain explanations leave? {open_.verdict}: {open_.sentence}")
    say(f"May the k-anonymous ones leave? {ours.verdict}: {ours.sentence}")
