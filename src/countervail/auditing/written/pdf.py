"""The dossier on paper: the parts of the page as a PDF file."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from countervail.auditing.result import Audit
from countervail.auditing.written.dossier import TITLE, TONES, Part, footer_of, lead_of, parts_of
from countervail.auditing.written.sign import signed
from countervail.core.cells import visible
from countervail.core.files.frames import write_file
from countervail.report.figures import to_png

if TYPE_CHECKING:
    from fpdf import FPDF

_COLOURS = {"good": (30, 125, 70), "bad": (179, 38, 30), "open": (138, 97, 0)}
_DRAWN = 7.0  # inches that fill the width
_FONT, _WIDE = "DejaVu", 5  # columns from which a table is printed small


def write_pdf(
    audit: Audit, path: str | Path, certificate: str | Path | None = None, password: str | None = None
) -> None:
    """Write the dossier, whole or not at all; signed where a certificate is given."""
    made = bytes(_paper(audit).output())
    if certificate is not None:
        made = signed(made, certificate, password, f"Privacy dossier: {audit.verdict}")
    write_file(Path(path), lambda place: place.write_bytes(made))


def _paper(audit: Audit) -> FPDF:
    import matplotlib as mpl
    from fpdf import FPDF

    logging.getLogger("fontTools").setLevel(logging.ERROR)  # it tells of every table of the font
    footer = footer_of(audit)

    class Paper(FPDF):
        def footer(self) -> None:
            self.set_y(-14)
            self.set_font(_FONT, size=6)
            self.set_text_color(90)
            self.multi_cell(0, 3, f"{footer} Page {self.page_no()} of {{nb}}.", align="L")

    paper = Paper(format="A4")
    paper.set_title(f"{TITLE}: {audit.verdict}")
    paper.set_lang("en")
    paper.set_creator("countervail")
    fonts = Path(mpl.get_data_path()) / "fonts" / "ttf"
    paper.add_font(_FONT, fname=fonts / "DejaVuSans.ttf")
    paper.add_font(_FONT, style="B", fname=fonts / "DejaVuSans-Bold.ttf")
    paper.set_auto_page_break(True, margin=20)
    paper.add_page()
    _heading(paper, TITLE, 18)
    _text(paper, lead_of(audit))
    paper.set_text_color(*_COLOURS[TONES[audit.verdict]])
    _heading(paper, audit.verdict, 16, keep=True)
    paper.set_text_color(0)
    _text(paper, audit.sentence)
    _text(paper, f"Promise: {audit.promise['text']}")
    for part in parts_of(audit):
        _print(paper, part)
    return paper


def _print(paper: FPDF, part: Part) -> None:
    if paper.will_page_break(30):
        paper.add_page()
    _heading(paper, part.heading, 12)
    for text in part.paragraphs:
        _text(paper, text)
    for text in part.points:
        _text(paper, f"•  {text}")
    if part.rows:
        _table(paper, part)
    if part.drawing is not None:
        # As large as it was drawn: what is nearly square would fill the page.
        width = min(0.9 * part.drawing.get_figwidth() / _DRAWN, 0.9) * paper.epw
        tall = width * part.drawing.get_figheight() / part.drawing.get_figwidth()
        if paper.will_page_break(tall + 8):  # with its caption
            paper.add_page()
        paper.image(io.BytesIO(to_png(part.drawing)), w=width, alt_text=part.caption or part.heading)
        _text(paper, part.caption, 8)
    for label in part.blanks:
        _text(paper, label, 8)
        paper.ln(9)
        paper.line(paper.l_margin, paper.get_y(), paper.l_margin + paper.epw, paper.get_y())
        paper.ln(4)


def _table(paper: FPDF, part: Part) -> None:
    wide = len(part.header) >= _WIDE
    paper.set_font(_FONT, size=6 if wide else 8)
    # As wide as their longest words and texts ask for, within limits.
    cells = [part.header, *part.rows]
    columns = [[visible(str(row[j])) for row in cells] for j in range(len(part.header))]
    most, wide_of = 40 * paper.get_string_width("x"), paper.get_string_width
    words = [max((wide_of(word) for text in column for word in text.split()), default=1.0) for column in columns]
    widths = [
        max(min(max(map(wide_of, column)), most), min(1.15 * word, most)) + 3 for column, word in zip(columns, words)
    ]
    with paper.table(
        col_widths=tuple(widths),
        line_height=3.4 if wide else 4.4,
        text_align="LEFT",
        first_row_as_headings=any(part.header),
    ) as grid:
        for row in cells if any(part.header) else part.rows:
            grid.row([visible(str(cell)) for cell in row])
    paper.ln(2)


def _heading(paper: FPDF, text: str, size: int, *, keep: bool = False) -> None:
    if not keep:
        paper.set_text_color(0)
    paper.ln(2)
    paper.set_font(_FONT, style="B", size=size)
    _cell(paper, text, size * 0.5)


def _text(paper: FPDF, text: str, size: int = 9) -> None:
    paper.set_font(_FONT, size=size)
    _cell(paper, text, size * 0.5)
    paper.ln(1)


def _cell(paper: Any, text: str, height: float) -> None:
    paper.multi_cell(0, height, visible(text), align="L", new_x="LMARGIN", new_y="NEXT")
