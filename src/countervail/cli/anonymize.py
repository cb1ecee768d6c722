"""countervail anonymize: a table that is safe to publish, with its promise."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import typer

from countervail import registry
from countervail.cli.shared.at_scale import (
    Engine,
    Master,
    Memory,
    Threads,
    anonymize_scan,
    check_engine,
    groups_of,
    open_scan,
    tell_written,
)
from countervail.cli.shared.common import (
    AsJson,
    Data,
    DatasetOption,
    LedgerOption,
    Person,
    RowsArePeople,
    SchemaFile,
    as_word,
    check_ending,
    check_not_read,
    counted,
    formula_notes,
    note,
    note_formulas,
    noted,
    only_sensitive,
    open_ledger,
    page_text,
    pointing,
    pointing_note,
    progress,
    remark,
    say,
    say_json,
    tell_owner,
)
from countervail.cli.shared.groups import grouped, note_ungrouped
from countervail.cli.shared.methods import USUAL, chosen, make, releasing, releasing_rows
from countervail.cli.shared.reading import (
    EACH_ROW,
    LOOK_REPEATED,
    ROWS_IN_AN_ENGINE,
    equal_rows,
    noted_warnings,
    read_table,
    tell_own_rows,
)
from countervail.cli.shared.sweep import compare_k
from countervail.core.arrays import Ints
from countervail.core.counting.copies import EqualRows
from countervail.core.errors import ParameterError
from countervail.core.files.frames import ENDINGS, frame_writer, text_writer, write_files
from countervail.core.files.release_file import PublishedFile
from countervail.core.files.schema_file import read_schema
from countervail.core.guarantee import DifferentialPrivacy
from countervail.core.people import people_of, person_columns, rows_per_person
from countervail.core.region import Range
from countervail.core.release import Release
from countervail.core.stats import plain_json
from countervail.core.table import Table
from countervail.engine.files.folder import check_new

if TYPE_CHECKING:
    from countervail.report.anonymized_page import AnonymizedSummary

FLAGS = (
    *("k", "l", "diversity", "t", "closeness", "sensitive"),
    *("hierarchies", "labels", "mode", "suppress", "by_class", "method", "gamma", "epsilon", "missing", "ledger"),
    *("objects", "spread", "undescribed", "rules"),
)


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


class LabelStyle(StrEnum):
    """What a class is called."""

    tight = "tight"
    hierarchy = "hierarchy"


class Mode(StrEnum):
    """Whether rows of equal value may be parted, or move between classes."""

    strict = "strict"
    relaxed = "relaxed"
    local = "local"


class Algorithm(StrEnum):
    """How groups are formed that are published as centres."""

    mdav = "mdav"
    v_mdav = "v-mdav"


class Supporters(StrEnum):
    """Whose values a pattern takes where its rule says nothing: of people most like a row, or least."""

    most_alike = "max"
    least_alike = "min"


class Undescribed(StrEnum):
    """What becomes of rows that no rule describes."""

    delete = "delete"
    widen = "widen"


class Changes(StrEnum):
    """What becomes of a published class whose people's other values changed."""

    withdraw = "withdraw"
    publish = "publish"


class CellEncoding(StrEnum):
    """How a model reads released cells."""

    midpoint = "midpoint"
    bounds = "bounds"
    tf = "tf"


def anonymize(
    data: Data,
    schema: SchemaFile,
    output: Annotated[Path | None, typer.Option("--output", "-o", help=f"One of {', '.join(ENDINGS)}.")] = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="How the table is protected; see below.")] = "mondrian",
    k: Annotated[
        int | None, typer.Option(help="People who share every published combination, at least. Default: 10.", min=1)
    ] = None,
    l: Annotated[float | None, typer.Option("--l", help="Diversity of the sensitive column.")] = None,  # noqa: E741
    diversity: Annotated[Diversity | None, typer.Option(help="What l means.")] = None,
    c: Annotated[float | None, typer.Option(help="Of recursive (c, l)-diversity.")] = None,
    t: Annotated[float | None, typer.Option("--t", help="Closeness of the sensitive column, 0 to 1.")] = None,
    closeness: Annotated[Closeness | None, typer.Option(help="How far apart sensitive values are.")] = None,
    sensitive: Annotated[str | None, typer.Option(help="Default: the schema's only sensitive column.")] = None,
    hierarchies: Annotated[Path | None, typer.Option(help="A folder with COLUMN.csv hierarchies.")] = None,
    labels: Annotated[LabelStyle | None, typer.Option(help="What a class is called.")] = None,
    mode: Annotated[
        Mode | None, typer.Option(help="relaxed: equal values may be parted; local: rows move where less is lost.")
    ] = None,
    suppress: Annotated[
        float | None, typer.Option(help="Share of rows that may be left out to spare the others.")
    ] = None,
    by_class: Annotated[bool, typer.Option("--by-class", help="Cut each class of the target on its own.")] = False,
    algorithm: Annotated[Algorithm | None, typer.Option(help="Groups of k, or of k to 2k - 1 (v-mdav).")] = None,
    gamma: Annotated[float | None, typer.Option(help="How readily groups grow with --algorithm v-mdav.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The budget of the one draw of noise.")] = None,
    missing: Annotated[
        list[str] | None, typer.Option(help="With noise: a column where missing is a level; may be repeated.")
    ] = None,
    objects: Annotated[
        Supporters | None, typer.Option(help="Of patterns: filled up from people most alike (max), or least (min).")
    ] = None,
    spread: Annotated[bool, typer.Option("--spread", help="Of patterns: widened by the row's other rules.")] = False,
    undescribed: Annotated[
        Undescribed | None, typer.Option(help="Of patterns: rows that no rule describes are deleted, or kept widely.")
    ] = None,
    rules: Annotated[
        Path | None, typer.Option(help="Of patterns: made of the rules in this file (.json), not of learnt ones.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="A column that may leave though many have a value of their own there; may be repeated."),
    ] = None,
    person: Person = None,
    rows_are_people: RowsArePeople = False,
    previous: Annotated[
        Path | None,
        typer.Option(help="Who was published with whom, kept for the next release; written if new. Confidential."),
    ] = None,
    changed: Annotated[
        Changes | None, typer.Option(help="With --previous: of a class whose other values changed. Default: withdraw.")
    ] = None,
    bom: Annotated[bool, typer.Option("--bom", help="Begin a CSV with the mark by which Excel knows UTF-8.")] = False,
    sweep: Annotated[str | None, typer.Option(help="Compare several k instead of writing: k=2,5,10,20.")] = None,
    cells: Annotated[CellEncoding, typer.Option(help="Of --sweep: how a model reads cells.")] = CellEncoding.midpoint,
    report: Annotated[Path | None, typer.Option(help="Write a page with pictures here (.html).")] = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    engine: Engine = None,
    memory: Memory = None,
    threads: Threads = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Anonymise a table: quasi-identifiers become ranges, sets or centres, identifiers are dropped, rows are shuffled.

    The promise is counted anew on what is about to be written; a table that breaks it is not written. Columns that are
    neither identifiers nor quasi-identifiers leave as they are; where many people have a value of their own, only if
    you say --keep. Where no identifier names people and rows look repeated, only if you say --rows-are-people.

    Example: `countervail anonymize people.csv --schema people.toml --k 10 --l 3 --sensitive illness -o public.csv`

    The same table again: `countervail anonymize april.csv --schema people.toml --previous people.roster -o april.csv`

    Which k? `countervail anonymize people.csv --schema people.toml --sweep k=2,5,10,20 --report which-k.html`

    Larger than memory: `countervail anonymize big.parquet --schema people.toml --engine duckdb -o public/`
    """
    row_by_row = {"report": report, "ledger": ledger, "previous": previous, "sweep": sweep, "bom": bom}
    check_engine(engine, memory=memory, threads=threads, master=master, **row_by_row)
    if engine is None:
        check_ending(output, ENDINGS, data, schema, ledger, previous, rules)
    check_ending(report, (".html",), data, schema, ledger, previous, rules)
    check_not_read(previous, data, schema, ledger, rules)
    given: dict[str, Any] = {
        "k": k,
        "l": l if l is None or diversity is not Diversity.recursive else (3.0 if c is None else c, l),
        "diversity": diversity,
        "t": t,
        "closeness": closeness,
        "sensitive": sensitive,
        "hierarchies": hierarchies,
        "labels": labels,
        "mode": mode,
        "suppress": suppress,
        "by_class": by_class or None,
        "method": algorithm,
        "gamma": gamma,
        "epsilon": epsilon,
        "missing": missing or None,
        "ledger": ledger,
        "objects": objects,
        "spread": spread or None,
        "undescribed": undescribed,
        "rules": rules,
    }
    if c is not None and diversity is not Diversity.recursive:
        raise ParameterError("--c is for --diversity recursive.")
    kind = chosen(releasing(), method, given)
    _check_wanted(method, output, sweep, report, ledger)
    before = _before(kind, method, previous, changed, output)
    if sensitive is None and (l is not None or t is not None) and "sensitive" in registry.parameters(kind):
        given["sensitive"] = only_sensitive(read_schema(schema))
    given["ledger"] = open_ledger(ledger, dataset)

    def ready(table: Table) -> tuple[Table, Any]:
        """The table as it is cut, and what cuts it."""
        if "labels" not in registry.parameters(kind):
            if not registry.fact(kind, "draws_noise"):
                note_ungrouped(table, centres=registry.fact(kind, "keeps_rows"))
            return table, make(kind, {**given, **_given_rules(rules, table)})
        groups = grouped(table, hierarchies, None if labels is None else labels.value)
        return groups.table, make(kind, {**given, **groups.settings})

    if engine is not None and output is not None:
        check_new(output, "anonymize")
        if not hasattr(kind, "write"):
            raise ParameterError(f"--engine does not take --method {method}: it works row by row.")
        with progress("Anonymising", quiet=as_json) as tick:
            tick(0, 4)
            scan = open_scan(data, schema, engine, memory, threads, person, master)
            if not rows_are_people and not scan.schema.names("identifier"):
                note(ROWS_IN_AN_ENGINE)
            settings = groups_of(scan, hierarchies, None if labels is None else labels.value)
            protector = make(kind, {**given, **settings})
            written = anonymize_scan(scan, protector, output, keep or [], tick)
            scan.close()
        tell_written(written, protector.guarantee(), output, as_json)
        return
    if output is None:
        table, protector = ready(_people(data, schema, person, rows_are_people)[0])
        compare_k(table, protector, sweep or "", cells.value, report, as_json)
        return
    with progress("Anonymising", quiet=as_json) as tick:
        tick(0, 4)
        people, equal = _people(data, schema, person, rows_are_people)
        if not people.schema.names("identifier") and not rows_are_people:
            note(EACH_ROW)
        table, protector = ready(people)
        rows_kept = method in releasing_rows()
        if rows_kept:
            _check_kept(table, keep or [])
        tick(1, 4)
        with noted_warnings():
            protector.fit(table, **before)
        tick(2, 4)
        release = protector.protect(table)
        tick(3, 4)
        shown = release.to_text_frame()
        unused = _unused(hierarchies, getattr(protector, "hierarchies_", {}))
        if rows_kept:
            kept = {} if previous is None else {previous: text_writer(protector.roster_.to_json())}
            if equal is not None:
                fewest = equal.least(protector.cell_of_.astype(np.int64))
                tell_owner(f"{_counted_each(equal)} If equal rows are one person's, the smallest class has {fewest:,}.")
            _note_checking(shown, people)
            found = _write(release, table, shown, _Paths(data, output, report, bom), k or USUAL["k"], unused, kept)
        else:
            if equal is not None:
                tell_owner(f"{_counted_each(equal)} If some are one person's, keep one row for each person.")
            if isinstance(release.guarantee, DifferentialPrivacy):
                tell_own_rows(people)
            write_files({output: frame_writer(shown, output, bom=bom)})
        tick(4, 4)
    if not rows_kept:
        note_formulas(shown, output)
        _say_others(release, table, registry.fact(kind, "rows_are"), output, as_json)
        return
    if as_json:
        say_json({**found, "output": str(output), "report": None if report is None else str(report)})
        return
    say(f"{found['rows']:,} rows in {counted(found['classes'], 'class', 'classes')} written to {output}.")
    sizes = f"Smallest class {found['smallest']:,}, average {found['average']:.1f}"
    if found["people"] != found["smallest"]:
        sizes = f"Smallest class {found['people']:,} people at least, in {found['smallest']:,} rows"
    say(f"{sizes}; information lost (NCP) {found['ncp']:.2%}; {found['suppressed']:,} rows suppressed.")
    say(f"Promise: {release.guarantee}")
    if found["as_they_are"]:
        say(f"Published as they are: {', '.join(found['as_they_are'])}.")
    if previous is not None:
        remark(f"Who was published with whom (version {protector.version_}) is kept in {previous}; confidential.")
    if report is not None:
        remark(f"Report: {report.resolve()}")


def _before(
    kind: type[Any], method: str, previous: Path | None, changed: Changes | None, output: Path | None
) -> dict[str, Any]:
    """What a fit is told of the releases before; nothing for a first one."""
    if previous is None:
        if changed is not None:
            raise ParameterError("--changed is for --previous: without it nothing is known of releases before.")
        return {}
    if output is None:
        raise ParameterError("--previous keeps who was published with whom: it needs --output, and no --sweep.")
    from countervail.protect import ClassProtector, ClassRoster

    if not issubclass(kind, ClassProtector):
        able = [n for n, c in releasing().items() if issubclass(c, ClassProtector)]
        raise ParameterError(f"--method {method} does not take --previous (that is for {', '.join(able)}).")
    if not previous.is_file():
        return {}
    return {"previous": ClassRoster.read(previous), "changed": "withdraw" if changed is None else changed.value}


def _people(data: Path, schema: Path, person: str | None, rows_are_people: bool) -> tuple[Table, EqualRows | None]:
    """The table, and rows of it that are equal in every column where nobody is named; refused if they look repeated."""
    table = _told_apart(read_table(data, schema), person)
    if rows_are_people and table.schema.names("identifier"):
        if rows_per_person(table) > 1:
            named = ", ".join(person_columns(table))
            raise ParameterError(
                f"--rows-are-people contradicts the schema: rows share values of its identifiers ({named}), and count "
                f"as one person's. Leave the flag out, or take the role 'identifier' from that column."
            )
        return table, None
    equal = equal_rows(table)
    if equal is not None and equal.copied and not rows_are_people:
        raise ParameterError(
            f"{equal.words}, {LOOK_REPEATED}. If they are one person's, k rows are not k people, and the promise "
            f"would be wrong. Keep one row for each person; or give the column that names people the role 'identifier' "
            f"in the schema (--person, if there are several); or say that they are different people's: "
            f"--rows-are-people."
        )
    return table, equal


def _counted_each(equal: EqualRows) -> str:
    return f"{equal.words}; they count as different people."


def _note_checking(shown: pd.DataFrame, table: Table) -> None:
    """Say how to check a release whose rows are not people, or look repeated: the file does not tell whose they are."""
    most, named = rows_per_person(table), ", ".join(person_columns(table))
    if most > 1:
        note(f"What is written does not show whose rows are whose: check it with --rows-per-person {most}.")
    elif PublishedFile.of(shown, table.schema).equal_rows().copied:
        by = f", by {named}" if named else ""
        note(
            f"In what is written rows look repeated; each is counted as another person's{by}. The file does not show "
            f"that: check it with --rows-per-person 1."
        )


def _given_rules(path: Path | None, table: Table) -> dict[str, Any]:
    """The rules of a file, fitted to the table; nothing where there is none."""
    if path is None:
        return {}
    from countervail.rules import read_rules

    return {"rules": read_rules(path, table)}


def _told_apart(table: Table, person: str | None) -> Table:
    """The table with the one identifier that tells people apart; the others would leave with nobody anyway."""
    if person is None:
        return table
    named = table.schema.names("identifier")
    if person not in named:
        given = f"Identifiers: {', '.join(named)}." if named else "Give it the role 'identifier' in the schema."
        raise ParameterError(f"--person must name an identifier of the schema. {given}")
    kept = tuple(c for c in table.schema if c.role != "identifier" or c.name == person)
    return Table(table.frame[[c.name for c in kept]], replace(table.schema, columns=kept))


def _check_kept(table: Table, keep: list[str]) -> None:
    """Columns that point at people leave only when that was said, and nothing is said of columns that do not leave."""
    leaving = [c.name for c in table.schema if c.role not in ("identifier", "quasi")]
    if strange := [n for n in keep if n not in leaving]:
        must = f"one of the columns that leave as they are: {', '.join(leaving)}"
        raise ParameterError(f"--keep must name {must}. Got '{strange[0]}'.")
    if pointed := [n for n in pointing(table.frame, leaving, _who(table)) if n not in keep]:
        flags = " ".join(f"--keep {as_word(n)}" for n in pointed)
        raise ParameterError(
            f"Many people have a value of their own in {', '.join(pointed)}, which would leave as it is and points at "
            f"people as a name does. Group its values, give it the role 'quasi' or 'identifier' in the schema, or say "
            f"that it may leave: {flags}."
        )


def _check_wanted(
    method: str, output: Path | None, sweep: str | None, report: Path | None, ledger: Path | None
) -> None:
    """A table or a comparison; pictures and comparisons are about rows that are still people's."""
    if output is None and sweep is None:
        raise ParameterError("Name the file to write with --output, or compare several k with --sweep k=2,5,10,20.")
    if sweep is not None and (output is not None or ledger is not None):
        raise ParameterError("--sweep compares several k and releases nothing: no --output, --ledger.")
    able = {"--report": releasing_rows()}
    able["--sweep"] = {n: kind for n, kind in releasing_rows().items() if n in registry.takers(releasing(), "k")}
    for flag, value in (("--report", report), ("--sweep", sweep)):
        if value is not None and method not in able[flag]:
            raise ParameterError(f"--method {method} does not take {flag} (that is for {', '.join(able[flag])}).")


def _say_others(release: Release, table: Table, what: str, output: Path, as_json: bool) -> None:
    """A table whose rows stand for no one: patterns that people fit, or noise."""
    for caveat in release.caveats:
        note(caveat)
    written = release.to_text_frame().columns
    if absent := [c.name for c in table.schema if c.role != "identifier" and c.name not in written]:
        note(f"Not in what was written: {', '.join(absent)}. This method leaves out whatever is no feature.")
    found: dict[str, Any] = {what.replace(" ", "_"): len(release)}
    words = [f"{len(release):,} {what} written to {output}"]
    if release.regions.axes:
        least = int(release.regions.count(table.frame).min())
        found |= {"deleted": release.suppressed, "least_supporters": least}
        words = [f"{words[0]}; each fits at least {least:,} people"]
        words.append(f"{release.suppressed:,} of {len(table):,} rows are in none of them")
    if as_json:
        about = {"guarantee": release.guarantee.to_dict(), "caveats": list(release.caveats), "output": str(output)}
        say_json({**found, **about})
        return
    for line in words:
        say(f"{line}.")
    say(f"Promise: {release.guarantee}")


def _who(table: Table) -> Ints:
    return people_of(table.frame, person_columns(table))


def _leaving(
    release: Release, table: Table, unused: list[str], shown: pd.DataFrame, output: Path
) -> dict[str, list[str]]:
    """Columns that leave as they are, those of them that point at people, and all that is to be said of the release."""
    names = [n for n in release.schema.names() if n in release.others.columns]
    pointed = pointing(table.frame, names, _who(table))
    if pointed:
        note(pointing_note(pointed))
    for text in (*_alike(release), *_lost(release, shown)):
        note(text)
    if unused:
        note(
            f"No column that is generalised has the name of {', '.join(unused)} in the folder of --hierarchies; "
            f"spelling counts. Generalised: {', '.join(release.schema.names('quasi'))}."
        )
    for text in (*release.caveats, *formula_notes(shown, output)):
        note(text)
    return {"as_they_are": names, "pointing": pointed, "unused_hierarchies": unused, "notes": list(noted())}


def _alike(release: Release) -> list[str]:
    """What is to be said of classes in which everybody has the same sensitive value; the release itself shows them."""
    said = []
    for name in (n for n in release.schema.names("sensitive") if n in release.others.columns):
        kinds, _ = pd.factorize(release.others[name], use_na_sentinel=False)
        alike = int((pd.Series(kinds).groupby(np.asarray(release.groups)).nunique() == 1).sum())
        if alike:
            said.append(
                f"In {alike:,} of {len(release.regions):,} classes everybody has the same '{name}': whoever knows a "
                f"person's class knows that too. --l 2 --sensitive {as_word(name)} (mondrian) rules it out."
            )
    return said


def _lost(release: Release, shown: pd.DataFrame) -> list[str]:
    """What is to be said of quasi-identifiers of which nothing is left: every row says the same of everybody."""
    wide = [a.name for a in release.regions.axes if isinstance(a, Range) or len(a.known) > 1]
    names = [n for n in wide if shown[n].nunique(dropna=False) == 1]
    if not names:
        return []
    return [
        f"Nothing is left of {', '.join(names)}: every row says the same there. A smaller k, fewer quasi-identifiers "
        f"or other groups (--hierarchies) may spare it; rows with missing cells stand in the way of groups."
    ]


def _unused(folder: Path | None, taken: Mapping[str, Any]) -> list[str]:
    """Hierarchy files that belong to no column that is generalised."""
    files = [] if folder is None else sorted(folder.glob("*.csv"))
    return [f.name for f in files if f.stem not in taken]


class _Paths(NamedTuple):
    """The files of a run."""

    data: Path
    output: Path
    report: Path | None
    bom: bool = False


def _write(
    release: Release,
    table: Table,
    shown: pd.DataFrame,
    paths: _Paths,
    k: int,
    unused: list[str],
    kept: Mapping[Path, Callable[[Path], object]],
) -> dict[str, Any]:
    """Write the release, its page and the roster, all or none; what is to be said of it."""
    from countervail.report.anonymized_page import Making, anonymized_page, summarize

    leaving = _leaving(release, table, unused, shown, paths.output)
    summary, made, notes = summarize(release, table, hide_below=k), release.provenance, tuple(leaving["notes"])
    how = {"quasi": "as ranges, sets or groups", "identifier": "not at all"}
    pointed = dict.fromkeys(leaving["pointing"], "as it is, by --keep: many have a value of their own")
    digest: list[str] = []

    def write_table(path: Path) -> None:
        frame_writer(shown, paths.output, bom=paths.bom)(path)
        digest.append(hashlib.sha256(path.read_bytes()).hexdigest())

    @cache
    def making() -> Making:
        return Making(
            paths.data.name,
            paths.output.name,
            digest[0],
            datetime.now(UTC).isoformat(timespec="seconds"),
            made["countervail"],
            made["schema"],
            (("method", made["protector"]), *_options(made["parameters"])),
            tuple((c.name, c.role, pointed.get(c.name) or how.get(c.role, "as it is")) for c in table.schema),
            notes,
        )

    writers: dict[Path, Callable[[Path], object]] = {paths.output: write_table, **kept}
    if paths.report is not None:
        writers[paths.report] = lambda path: text_writer(page_text(anonymized_page(summary, making())))(path)
    write_files(writers, confidential=set(kept))
    return {**_figures(release, summary), **leaving, "making": plain_json(making())}


def _options(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Parameters as a person reads them, without those that were not given."""
    for name, value in parameters.items():
        if value is None or value == []:
            continue
        words = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        yield name.replace("_", " "), ("yes" if value else "no") if isinstance(value, bool) else words


def _figures(release: Release, summary: AnonymizedSummary) -> dict[str, Any]:
    """What is said of the release."""
    return {
        "guarantee": release.guarantee.to_dict(),
        "promise": summary.promise,
        "caveats": list(summary.caveats),
        "rows": summary.rows,
        "suppressed": summary.suppressed,
        "classes": summary.classes,
        "smallest": summary.smallest,
        "people": summary.people,
        "average": summary.average,
        "ncp": summary.ncp,
        "query_error": summary.query_error,
        "prosecutor": summary.prosecutor,
        "marketer": summary.marketer,
    }
