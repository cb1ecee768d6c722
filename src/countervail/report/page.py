"""A page: what a report says, as plain data, and its one template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from countervail.core.cells import visible
from countervail.core.files.frames import write_text
from countervail.core.guarantee import DifferentialPrivacy, Guarantee

if TYPE_CHECKING:
    from jinja2 import Template


def in_full(promise: Guarantee) -> str:
    """A promise as pages print it: with what an epsilon means for one person."""
    return f"{promise} {promise.meaning}" if isinstance(promise, DifferentialPrivacy) else str(promise)


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure worth a large print, and what it means."""

    value: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Banner:
    """The one word of a report, what it means, and how it is to be taken: "good", "bad" or "open"."""

    word: str
    meaning: str
    tone: str = "open"


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with any of: paragraphs, large figures, a table, quotations, a picture (SVG), points, lines to fill in.

    A picture comes with the table behind it, if there is one, folded away.
    """

    heading: str
    paragraphs: Sequence[str] = ()
    facts: Sequence[Fact] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    quotes: Sequence[str] = ()
    picture: str = ""
    caption: str = ""
    points: Sequence[str] = ()
    blanks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report."""

    title: str
    lead: str
    sections: Sequence[Section]
    promise: str
    footer: str = ""
    language: str = "en"
    banner: Banner | None = None


def render_page(page: Page) -> str:
    """The page as one HTML file without outside references; all text is escaped."""
    return _template().render(page=page)


def with_notes(page: Page, notes: Sequence[str]) -> Page:
    """The page with what is to be known beside its figures, unless it says so already."""
    said = {t for s in page.sections for t in (*s.paragraphs, *s.quotes)} | set(page.footer.splitlines())
    texts = [n for n in notes if n not in said and n.removeprefix("Note: ") not in said]
    return replace(page, sections=[*page.sections, Section("What to know", texts)]) if texts else page


def write_page(page: Page, path: str | Path) -> None:
    """Write the page to a file, whole or not at all."""
    write_text(render_page(page), path)


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("countervail.report")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, finalize=_shown)
    return made.get_template("page.html.j2")


def _shown(value: Any) -> Any:
    """Control characters of the data are seen as escapes; what is marked as safe is a picture of ours."""
    return visible(value, keep="\n") if type(value) is str else value
