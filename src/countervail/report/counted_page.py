"""The pages of what was counted on a file: how identifiable people are, and whether a table keeps a promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from countervail.core.files.release_file import Verdict, conclude
from countervail.measure.risk import Risk
from countervail.report.page import Fact, Page, Section


@dataclass(frozen=True, slots=True)
class Counted:
    """Which file was counted, when, with what: what a person who signs must know.

    `sha256` is of a file that is published. Of one that is not, whoever knows all but one value could try values until
    the digest is right: it is None.
    """

    file: str
    sha256: str | None
    when: str
    version: str
    schema: str
    columns: tuple[tuple[str, str, str], ...]  # name, type, role

    def sections(self) -> list[Section]:
        """The columns, and the file."""
        made = [
            ("file", self.file),
            *([] if self.sha256 is None else [("SHA-256 of the file", self.sha256)]),
            ("time (UTC)", self.when),
            ("Countervail", self.version),
            ("digest of the schema", self.schema),
        ]
        return [
            Section("The columns", header=("column", "type", "role"), rows=self.columns),
            Section("How it was counted", header=("what", "value"), rows=made),
        ]


def risk_page(found: Risk, counted: Counted, population: Sequence[str] = ()) -> Page:
    """How many stand alone, by which columns, and what is said of the population that they are a sample of."""
    several = f" in {found.rows:,} rows" if found.rows != found.people else ""
    facts = [
        Fact(f"{found.unique:.1%}", "are unique: nobody else shares their combination of quasi-identifiers"),
        Fact(f"{found.below_k:.1%}", f"share it with fewer than {found.k - 1} others"),
        Fact(f"{found.classes:,}", "different combinations"),
    ]
    lead = f"How identifiable {found.people:,} people{several} are by {', '.join(found.quasi)}."
    rows = [(" + ".join(o.columns), f"{o.unique:.1%}", f"{o.below_k:.1%}") for o in found.offenders]
    header = ("columns", "unique", f"in classes below {found.k}")
    words = ["Combinations of up to three columns, the most telling first."] if rows else []
    sections = [
        Section("In short", facts=facts),
        *([Section("What gives most away", words, header=header, rows=rows)] if rows else []),
        *([Section("In the population", list(population))] if population else []),
        *counted.sections(),
    ]
    promise = "Nothing on this page is a promise: it describes the table as it is, before anything is protected."
    return Page("How identifiable are these people?", lead, sections, promise, "The figures are about all people.")


def check_page(verdicts: Sequence[Verdict], rows: int, holds: bool, counted: Counted) -> Page:
    """The verdict, and what was counted for it."""
    lines = [(v.claim, v.answer, f"{v.reached:.4g}", f"{v.failing_classes:,}", f"{v.failing_rows:,}") for v in verdicts]
    header = ("asked", "answer", "reached", "classes that fail", "rows in them")
    lead = f"{rows:,} rows in {verdicts[0].classes:,} classes of equal quasi-identifiers."
    verdict = conclude(verdicts, holds)
    sections = [Section("What was asked", header=header, rows=lines), *counted.sections()]
    footer = (
        "This counts what stands in the file. Whoever knows how the table was made, or holds other releases of it, may "
        "learn more."
    )
    return Page("Is this table anonymous?", lead, sections, verdict, footer)
