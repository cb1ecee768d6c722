"""The pages of docs/studies, written from records alone: nothing in them is typed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from countervail.core.files.frames import write_text
from countervail.study.reproduce.catalogue import papers
from countervail.study.reproduce.lessons import LESSONS
from countervail.study.reproduce.outlook import Outlook, missing_full, quick_seconds
from countervail.study.reproduce.record import read_record, record_path
from countervail.study.reproduce.result import Reproduction, counted, why
from countervail.study.reproduce.shown import grid, reasons
from countervail.study.reproduce.values import Exhibit, Publication

_HEAD = (
    "Written by `countervail reproduce --pages` from the records in `benchmarks/results/reproduce`. *Reported* figures "
    "are the paper's; ours stand below them with 95% intervals over our own people or samples, and `≠` marks those "
    "whose interval, and the rounding of the print, do not reach the reported one. The paper's own figures have an "
    "interval too, which is not known."
)
_MOST = 60  # lines of a table on a page; the record has all


def write_pages(records: Path, folder: Path) -> list[Path]:
    """One page per paper with its pictures, the page of findings, and the list of pages."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for paper in papers().values():
        found = {e.id: latest(records, paper, e) for e in paper.exhibits}
        for record in (r for r in found.values() if r is not None and _pictured(r)):
            _write(record.plot() + "\n", folder / _picture(record), written)
        _write(paper_page(paper, found), folder / f"{paper.id}.md", written)
    _write(findings_page(), folder / "findings.md", written)
    _write(index_page(records), folder / "README.md", written)
    return written


def _write(text: str, path: Path, written: list[Path]) -> None:
    write_text(text, path)
    written.append(path)


def latest(records: Path, paper: Publication, exhibit: Exhibit) -> Reproduction | None:
    """The full record of an exhibit, else the quick one."""
    for size in ("full", "quick"):
        path = record_path(records, paper.id, exhibit.id, size)
        if path.is_file():
            return _worded(read_record(path), exhibit)
    return None


def _worded(found: Reproduction, exhibit: Exhibit) -> Reproduction:
    """A record with the reasons and notes as they are declared now: its figures stay as they were recorded."""
    lines = tuple(replace(x, reason=why(x, exhibit.reasons)) for x in found.lines)
    notes = (*exhibit.notes, *([exhibit.sizes[found.size]] if found.size in exhibit.sizes else []))
    return replace(found, lines=lines, notes=notes)


def paper_page(paper: Publication, found: dict[str, Reproduction | None]) -> str:
    """All tables and figures of a paper."""
    parts = [f"# {paper.title}", f"{paper.authors}. `countervail reproduce {paper.id}`", _HEAD]
    for exhibit in paper.exhibits:
        parts += _section(paper, exhibit, found.get(exhibit.id))
    return "\n\n".join(parts) + "\n"


def _section(paper: Publication, exhibit: Exhibit, found: Reproduction | None) -> list[str]:
    head = [f"## {exhibit.name}: {exhibit.title}"]
    if exhibit.entries is None:
        return [*head, f"Not reproducible: {exhibit.why_not}."]
    if found is None:
        return [*head, f"Not recorded yet: `countervail reproduce {paper.id} {exhibit.id} --record`."]
    # What has a place on an axis and no printed number is in the picture.
    lines = [line for line in found.lines if line.printed is not None or line.x is None] or list(found.lines)
    header, body = grid(lines)
    parts = [*head, _table(header, body[:_MOST])]
    if len(body) > _MOST:
        parts.append(f"The record has {len(body) - _MOST} more lines.")
    if _pictured(found):
        parts.append(f"![{exhibit.name}]({_picture(found)})")
    parts.append(f"{counted(found.lines).capitalize()}.")
    if notes := [f"- ≠ {r}" for r in reasons(found.lines)] + [f"- {n}" for n in found.notes]:
        parts.append("\n".join(notes))
    parts.append(_origin(found))
    return parts


def _origin(found: Reproduction) -> str:
    about = found.about
    return (
        f"<sub>{found.size}; seed {about['seed']}; commit {str(about['commit'])[:12]}; "
        f"{found.cpu_seconds:.0f} CPU seconds.</sub>"
    )


def _pictured(found: Reproduction) -> bool:
    return "fig" in found.id


def _picture(found: Reproduction) -> str:
    return f"{found.paper}-{found.id}.svg"


def _table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(_cell(c, row) for c in row)} |" for row in rows)


def _cell(cell: str, row: Sequence[str]) -> str:
    text = cell.replace("|", "\\|").replace("_", "\\_")
    return f"*{text}*" if text and len(row) > 1 and row[1] == "reported" and cell != row[0] else text


def findings_page() -> str:
    """What we found in the papers."""
    parts = [
        "# What we found in the papers",
        "Each with the test that shows it. Written by `countervail reproduce --pages`.",
    ]
    for paper in papers().values():
        parts.append(f"## {paper.title}")
        parts += [f"**{x.title}.** {x.text}\n`{x.test}`" for x in LESSONS if x.paper == paper.id]
    return "\n\n".join(parts) + "\n"


def index_page(records: Path) -> str:
    """Which tables and figures are recorded, at which size, and how they compare."""
    parts = ["# Papers, reproduced", _HEAD, "[What we found in the papers](findings.md)"]
    for paper in papers().values():
        rows = []
        for e in paper.exhibits:
            found = latest(records, paper, e)
            if e.entries is None:
                rows.append([e.name, e.title, "", f"not reproducible: {e.why_not}", ""])
            elif found is None:
                rows.append([e.name, e.title, "not recorded", "", ""])
            else:
                rows.append([e.name, e.title, found.size, counted(found.lines), f"{found.cpu_seconds:.0f}"])
        parts.append(f"## [{paper.title}]({paper.id}.md)")
        parts.append(_table(["", "what", "recorded", "figures", "CPU seconds"], rows))
    return "\n\n".join([*parts, *_sizes(records)]) + "\n"


def _sizes(records: Path) -> list[str]:
    """What all quick runs take together, and which full records are missing."""
    left, quick = missing_full(records), _time(quick_seconds(records))
    parts = ["## How long it takes", f"All quick runs together: {quick} of one processor, by their records."]
    if not left:
        return [*parts, "Every table and figure has a full record."]
    rows = [[x.paper, x.exhibit.name, *_told(x)] for x in left]
    return [
        *parts,
        f"{len(left)} tables and figures have no full record yet; the quick one stands in its place. A run that is "
        "stopped goes on, `--jobs` does several pieces at once, and what tables share is done once. "
        "`countervail reproduce --times` writes down what finished pieces took. "
        "What is known by the quick run alone is more than it will be: what a run does once is scaled up too.",
        _table(["", "without a full record", "one processor takes about", "known by"], rows),
    ]


def _told(x: Outlook) -> tuple[str, str]:
    scaled = "how much more there is to do than in the quick run"
    if x.seconds is None:
        return "not known", "nothing: there is no quick record"
    if x.alike and x.measured < x.pieces:
        return _time(
            x.seconds
        ), f"{x.measured} of {x.pieces} pieces, which were timed; the rest by the same work on the same data"
    if not x.measured:
        return f"up to {_time(x.seconds)}", scaled
    timed = f"{x.measured} of {x.pieces} pieces, or others like them, which were timed"
    if x.measured == x.pieces:
        return _time(x.seconds), timed
    return f"up to {_time(x.seconds)}", f"{timed}; the rest by {scaled}"


def _time(seconds: float) -> str:
    if seconds < 90:
        return "a minute" if seconds > 10 else "seconds"
    return f"{seconds / 3600:.1f} hours" if seconds >= 5400 else f"{seconds / 60:.0f} minutes"
