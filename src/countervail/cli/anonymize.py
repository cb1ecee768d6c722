"""countervail anonymize: a table that is safe to publish, with its promise."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from countervail.cli._common import (
    AsJson,
    Data,
    DatasetOption,
    LedgerOption,
    SchemaFile,
    check_ending,
    err,
    open_ledger,
    pointing,
    pointing_note,
    progress,
    say,
    say_json,
)
from countervail.cli._sweep import compare_k
from countervail.core.errors import ParameterError
from countervail.core.files import ENDINGS
from countervail.core.release import Release
from countervail.core.table import Table


class Method(StrEnum):
    """How the table is protected."""

    mondrian = "mondrian"
    k_common = "k-common"


class Diversity(StrEnum):
    """What l means."""

    distinct = "distinct"
    entropy = "entropy"
    recursive = "recursive"
    frequency = "frequency"


class Closeness(StrEnum):
    """How far apart two sensitive values are."""

    equal = "equal"
    ordered = "ordered"
    hierarchical = "hierarchical"


class Labels(StrEnum):
    """What a class is called."""

    tight = "tight"
    hierarchy = "hierarchy"


class Mode(StrEnum):
    """Whether rows of equal value may be parted."""

    strict = "strict"
    relaxed = "relaxed"


class Encoding(StrEnum):
    """How a model reads released cells."""

    midpoint = "midpoint"
    bounds = "bounds"
    tf = "tf"


def anonymize(
    data: Data,
    schema: SchemaFile,
    output: Annotated[Path | None, typer.Option("--output", "-o", help=f"One of {', '.join(ENDINGS)}.")] = None,
    method: Annotated[Method, typer.Option(help="How the table is protected.")] = Method.mondrian,
    k: Annotated[int, typer.Option(help="People who share every published combination, at least.", min=1)] = 10,
    l: Annotated[float | None, typer.Option("--l", help="Diversity of the sensitive column.")] = None,  # noqa: E741
    diversity: Annotated[Diversity, typer.Option(help="What l means.")] = Diversity.distinct,
    c: Annotated[float, typer.Option(help="Of recursive (c, l)-diversity.")] = 3.0,
    t: Annotated[float | None, typer.Option("--t", help="Closeness of the sensitive column, 0 to 1.")] = None,
    closeness: Annotated[Closeness, typer.Option(help="How far apart sensitive values are.")] = Closeness.equal,
    sensitive: Annotated[str | None, typer.Option(help="Default: the schema's only sensitive column.")] = None,
    hierarchies: Annotated[Path | None, typer.Option(help="A folder with <column>.csv hierarchies.")] = None,
    labels: Annotated[Labels, typer.Option(help="What a class is called.")] = Labels.tight,
    mode: Annotated[Mode, typer.Option(help="Whether rows of equal value may be parted.")] = Mode.strict,
    suppress: Annotated[float, typer.Option(help="Share of rows that may be left out to spare the others.")] = 0.0,
    by_class: Annotated[bool, typer.Option("--by-class", help="Cut each class of the target on its own.")] = False,
    sweep: Annotated[str | None, typer.Option(help="Compare several k instead of writing: k=2,5,10,20.")] = None,
    encoding: Annotated[Encoding, typer.Option(help="Of --sweep: how a model reads cells.")] = Encoding.midpoint,
    report: Annotated[Path | None, typer.Option(help="Write a page with pictures here (.html).")] = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    as_json: AsJson = False,
) -> None:
    """Anonymise a table: quasi-identifiers become ranges and sets, identifiers are dropped, rows are shuffled.

    The promise is counted anew on what is about to be written; a table that breaks it is not written.

    Example: `countervail anonymize people.csv --schema people.toml --k 10 --l 3 --sensitive illness -o public.csv`

    Which k? `countervail anonymize people.csv --schema people.toml --sweep k=2,5,10,20 --report which-k.html`
    """
    from countervail.protect import Mondrian

    check_ending(output, ENDINGS, data, schema, ledger)
    check_ending(report, (".html",), data, schema, ledger)
    if sweep is not None and (output is not None or ledger is not None or method is not Method.mondrian):
        raise ParameterError(
            "--sweep compares Mondrian at several k and releases nothing: no --output, --ledger, --method."
        )
    if output is None and sweep is None:
        raise ParameterError("Name the file to write with --output, or compare several k with --sweep k=2,5,10,20.")
    if method is Method.k_common and output is not None:
        given = {"l": l, "t": t, "sensitive": sensitive, "hierarchies": hierarchies, "report": report, "ledger": ledger}
        _patterns(data, schema, output, k, [n for n, v in given.items() if v is not None], as_json)
        return
    if labels is Labels.hierarchy and hierarchies is None:
        raise ParameterError("--labels hierarchy needs --hierarchies, a folder with <column>.csv files.")
    protector = Mondrian(
        k,
        l=l,
        t=t,
        mode=mode.value,
        diversity=diversity.value,
        c=c,
        closeness=closeness.value,
        sensitive=sensitive,
        hierarchies=hierarchies,
        labels=labels.value,
        by_class=by_class,
        suppress=suppress,
        ledger=open_ledger(ledger, dataset),
    )
    if output is None:
        compare_k(Table.read(data, schema), protector, sweep or "", encoding.value, report, as_json)
        return
    with progress("Anonymising", quiet=as_json) as tick:
        tick(0, 4)
        table = Table.read(data, schema)
        tick(1, 4)
        protector.fit(table)
        tick(2, 4)
        release = protector.protect(table)
        tick(3, 4)
        release.write(output)
        tick(4, 4)
    found = _figures(release, table, k, report) | _shown(release) | _unused(hierarchies, protector.hierarchies_)
    if as_json:
        say_json({**found, "output": str(output), "report": None if report is None else str(report)})
        return
    say(f"{found['rows']:,} rows in {found['classes']:,} classes written to {output}.")
    sizes = f"Smallest class {found['smallest']:,}, average {found['average']:.1f}"
    say(f"{sizes}; information lost (NCP) {found['ncp']:.2%}; {found['suppressed']:,} rows suppressed.")
    say(f"Promise: {release.guarantee}")
    if found["as_they_are"]:
        say(f"Published as they are: {', '.join(found['as_they_are'])}.")
    if found["pointing"]:
        say(pointing_note(found["pointing"]))
    if found["unused_hierarchies"]:
        say(
            f"Note: no column that is generalised has the name of {', '.join(found['unused_hierarchies'])} in "
            f"'{hierarchies}'; spelling counts. Generalised: {', '.join(table.schema.names('quasi'))}."
        )
    for caveat in release.caveats:
        say(f"Note: {caveat}")
    if report is not None:
        err.print(f"Report: {report.resolve()}", markup=False)


def _patterns(data: Path, schema: Path, output: Path, k: int, unused: list[str], as_json: bool) -> None:
    """A table of k-common patterns."""
    from countervail.protect import KCommonPatterns

    if unused:
        raise ParameterError(f"--method k-common does not take {', '.join(f'--{n}' for n in unused)}.")
    with progress("Inducing rules and patterns", quiet=as_json) as tick:
        table = Table.read(data, schema)
        release = KCommonPatterns(k).fit(table).protect(table)
        release.write(output)
        tick(1, 1)
    least = int(release.regions.count(table.frame).min())
    if as_json:
        found = {"patterns": len(release), "deleted": release.suppressed, "least_supporters": least}
        about = {"guarantee": release.guarantee.to_dict(), "caveats": list(release.caveats), "output": str(output)}
        say_json({**found, **about})
        return
    say(f"{len(release):,} patterns written to {output}; each fits at least {least:,} people.")
    say(f"{release.suppressed:,} of {len(table):,} rows are in none of them.")
    say(f"Promise: {release.guarantee}")
    for caveat in release.caveats:
        say(f"Note: {caveat}")


def _shown(release: Release) -> dict[str, list[str]]:
    """Columns that leave as they are, and those of them that are different for almost everybody."""
    names = [n for n in release.schema.names() if n in release.others.columns]
    return {"as_they_are": names, "pointing": pointing(release.others, names)}


def _unused(folder: Path | None, taken: Mapping[str, Any]) -> dict[str, list[str]]:
    """Hierarchy files that belong to no column that is generalised."""
    files = [] if folder is None else sorted(folder.glob("*.csv"))
    return {"unused_hierarchies": [f.name for f in files if f.stem not in taken]}


def _figures(release: Release, table: Table, k: int, report: Path | None) -> dict[str, Any]:
    from countervail.report.anonymized_page import anonymized_page, summarize

    summary = summarize(release, table, hide_below=k)
    if report is not None:
        from countervail.report import write_page

        write_page(anonymized_page(summary), report)
    return {
        "guarantee": release.guarantee.to_dict(),
        "promise": summary.promise,
        "caveats": list(summary.caveats),
        "rows": summary.rows,
        "suppressed": summary.suppressed,
        "classes": summary.classes,
        "smallest": summary.smallest,
        "average": summary.average,
        "ncp": summary.ncp,
        "query_error": summary.query_error,
        "prosecutor": summary.prosecutor,
        "marketer": summary.marketer,
    }
