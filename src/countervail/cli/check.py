"""countervail check: is this table anonymous?"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np
import pandas as pd
import typer

from countervail.cli.anonymize import Closeness, Diversity
from countervail.cli.shared.at_scale import Engine, Master, Memory, Threads, as_source, check_engine
from countervail.cli.shared.common import (
    AsJson,
    PageFile,
    Person,
    RowsArePeople,
    SchemaFile,
    check_ending,
    counted,
    counted_file,
    note,
    noted,
    only_sensitive,
    page_text,
    remark,
    say,
    say_json,
    table,
)
from countervail.cli.shared.foreign import Asked, ForeignFile, OneHot, Query
from countervail.cli.shared.reading import (
    ROWS_IN_AN_ENGINE,
    equal_rows,
    how_to_read,
    note_once,
    noted_warnings,
    read_table,
)
from countervail.core.arrays import Ints
from countervail.core.errors import ParameterError, SchemaError, bad_parameter
from countervail.core.files.frames import write_text
from countervail.core.files.release_file import PublishedFile, Verdict, conclude, examine
from countervail.core.files.schema_file import read_schema
from countervail.core.guarantee import Guarantee, KAnonymity, LDiversity, TCloseness
from countervail.core.people import keys_of, people_inside, people_of, person_columns
from countervail.core.schema import Schema
from countervail.core.table import Table

_ANSWERS = ("query", "status", "decision")  # columns of answers that were written as a table


def check(
    release: Annotated[
        Path,
        typer.Argument(
            help="A published .csv, .csv.gz or .parquet file; or explanations (.json) with --against.",
            show_default=False,
        ),
    ],
    schema: SchemaFile,
    k: Annotated[int, typer.Option(help="People who share every combination, at least.", min=1)] = 10,
    l: Annotated[float | None, typer.Option("--l", help="Diversity of the sensitive column.")] = None,  # noqa: E741
    diversity: Annotated[Diversity, typer.Option(help="What l means.")] = Diversity.distinct,
    c: Annotated[float, typer.Option(help="Of recursive (c, l)-diversity.")] = 3.0,
    t: Annotated[float | None, typer.Option("--t", help="Closeness of the sensitive column, 0 to 1.")] = None,
    closeness: Annotated[Closeness, typer.Option(help="How far apart sensitive values are.")] = Closeness.equal,
    sensitive: Annotated[str | None, typer.Option(help="Default: the schema's only sensitive column.")] = None,
    hierarchies: Annotated[Path | None, typer.Option(help="A folder with COLUMN.csv hierarchies.")] = None,
    against: Annotated[
        Path | None, typer.Option(help="The people whom explanations must not give away, as a file of rows.")
    ] = None,
    asked: Asked = None,
    query: Query = None,
    one_hot: OneHot = False,
    person: Person = None,
    rows_are_people: RowsArePeople = False,
    rows_per_person: Annotated[
        int | None, typer.Option(help="Nobody has more rows than this, as `anonymize` says of its release.", min=1)
    ] = None,
    output: PageFile = None,
    engine: Engine = None,
    memory: Memory = None,
    threads: Threads = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Is this table anonymous? Counts k, l and t on a published file, ours or anybody's; exit code 1 if it is not.

    Rows belong together when all their quasi-identifier cells are equal as written: `07` is not `7`.
    Identifiers in the file, and columns that the schema does not declare, fail the check too. Where rows look
    repeated and it depends on whose they are, k is not shown, unless you say it.

    Example: `countervail check public.csv --schema people.toml --k 10 --l 3 --sensitive illness`

    Answers: `countervail check answers.json --against people.csv --schema people.toml --k 10`

    Answers of other tools: their JSON (DiCE, Alibi), or a table of counterfactuals; `--asked` where the file lacks
    the rows that were explained.
    """
    row_by_row: dict[str, Any] = {
        "output": output,
        "against": against,
        "asked": asked,
        "query": query,
        "person": person,
    }
    row_by_row["rows_per_person"] = rows_per_person
    check_engine(engine, memory=memory, threads=threads, master=master, **row_by_row)
    check_ending(output, (".html",), release, schema, against)
    if against is not None or release.suffix == ".json":
        if output is not None:
            raise ParameterError("--output is for tables: what is counted of explanations is printed, or --json.")
        if l is not None or t is not None:
            raise ParameterError("--l and --t are for tables: in explanations only people are counted (--k).")
        _check_answers(
            release, against, schema, k, as_json, ForeignFile(asked, query, one_hot), person, rows_are_people
        )
    known = read_schema(schema)
    if engine is not None:
        promises = _promises(known, k, l, diversity.value, c, t, closeness.value, sensitive, hierarchies)
        how = {"engine": engine, "memory": memory or "2 GB", "threads": threads, "master": master}
        _check_scan(release, known, promises, how, as_json, rows_are_people)
    with noted_warnings():
        published = PublishedFile.read(release, known, how_to_read())
    if set(_ANSWERS) <= set(published.undeclared):
        raise ParameterError(
            f"'{release.name}' holds explanations: an answer shows the asker's own values beside what would change, so "
            f"its rows are no people. Write answers with -o answers.json, and check them with --against people.csv."
        )
    promises = _promises(known, k, l, diversity.value, c, t, closeness.value, sensitive, hierarchies)
    people, most, notes = _people(published, person, _rows_each(rows_are_people, rows_per_person))
    verdicts = [_examined(p, published, people, most) for p in promises]
    holds = all(v.holds for v in verdicts) and not published.identifiers and not published.undeclared
    for text in (*notes, *_notes(published, verdicts)):
        note(text)
    if output is not None:
        from countervail.report.counted_page import check_page

        held = set(map(str, published.frame.columns))
        about = counted_file(release, known, published=holds, held=held)
        page = check_page(verdicts, len(published.frame), holds, about)
        write_text(page_text(page), output)
        remark(f"Report: {output.resolve()}")
    if as_json:
        say_json(
            {
                "holds": holds,
                "rows": len(published.frame),
                "people": len(people.frame),
                "identifiers": published.identifiers,
                "undeclared": published.undeclared,
                "verdicts": [v.to_dict() for v in verdicts],
                "notes": list(noted()),
            }
        )
    else:
        _tell(len(published.frame), verdicts, holds)
    raise typer.Exit(0 if holds else 1)


def _rows_each(rows_are_people: bool, rows_per_person: int | None) -> int | None:
    """How many rows one person has at most, where that was said."""
    if rows_are_people and rows_per_person not in (None, 1):
        raise ParameterError("--rows-are-people means --rows-per-person 1. Give one of them.")
    return 1 if rows_are_people else rows_per_person


def _check_scan(
    release: Path,
    schema: Schema,
    promises: list[Guarantee],
    how: dict[str, Any],
    as_json: bool,
    rows_are_people: bool,
) -> NoReturn:
    """The same of published files that an engine counts."""
    from countervail.engine.published import count_published

    secrets = sorted({n for p in promises if (n := getattr(p, "sensitive", ""))})
    published = count_published(as_source(release), schema, secrets, **how)
    verdicts = [examine(published, p) for p in promises]
    holds = all(v.holds for v in verdicts) and not published.identifiers and not published.undeclared
    if not rows_are_people:
        note(ROWS_IN_AN_ENGINE)
    for text in _missing_notes(published.identifiers, published.undeclared):
        note(text)
    if as_json:
        told = {"identifiers": published.identifiers, "undeclared": published.undeclared}
        answers = [v.to_dict() for v in verdicts]
        say_json({"holds": holds, "rows": len(published), **told, "verdicts": answers, "notes": list(noted())})
    else:
        _tell(len(published), verdicts, holds)
    raise typer.Exit(0 if holds else 1)


def _check_answers(
    path: Path,
    against: Path | None,
    schema: Path,
    k: int,
    as_json: bool,
    foreign: ForeignFile,
    person: str | None,
    rows_are_people: bool,
) -> NoReturn:
    """How many people fit what each answer says of somebody else; the asker's own values fit everybody."""
    if against is None:
        raise ParameterError("Explanations are checked against people: give --against, the rows that they came from.")
    if path.suffix not in (".json", ".jsonl") and foreign.asked is None:
        raise ParameterError(
            "--against is for explanations, as `countervail explain -o answers.json` writes them. For a table of "
            "counterfactuals, give --asked, the rows that were explained."
        )
    table = read_table(against, schema)
    answers = foreign.read(path, table)
    if not table.schema.names("quasi"):
        raise SchemaError("The schema declares no quasi-identifier. Give columns the role 'quasi'.")
    known = table.schema.names("quasi")  # whatever the file says of itself
    regions = replace(answers, schema=answers.schema.with_roles(quasi=known)).regions
    who, rows = _who(table, person, rows_are_people), len(table)
    counts = people_inside(regions, table.frame, who) if len(regions) else np.zeros(0, dtype=np.int64)
    people = int(who.max(initial=-1)) + 1
    least, short = int(counts.min(initial=people)), int((counts < k).sum())
    holds = not short
    if as_json:
        told: dict[str, Any] = {"holds": holds, "answers": len(counts), "people": people, "rows": rows, "k": k}
        told |= {"least": least if len(counts) else None, "failing": short, "promise": str(answers.guarantee)}
        say_json({**told, "caveats": list(answers.caveats)})
        raise typer.Exit(0 if holds else 1)
    several = f" (in {rows:,} rows)" if rows != people else ""
    say(f"{len(counts):,} answers about {people:,} people{several}; promised: {answers.guarantee}")
    if len(counts):
        say(f"What an answer says of somebody else fits at least {least:,} of them.")
    if short:
        say(f"{short:,} answers fit fewer than {k} people.")
    for caveat in answers.caveats:
        say(f"Note: {caveat}")
    say("The explanations keep what was asked." if holds else "The explanations do NOT keep what was asked.")
    say(
        "This counts who fits the quasi-identifiers, as someone with a register would. Whoever knows the code, or asks "
        "often, may do more: `countervail proof reciprocal-groups`."
    )
    raise typer.Exit(0 if holds else 1)


def _who(table: Table, person: str | None, rows_are_people: bool) -> Ints:
    """A number for the person of each row: by the column that was named, by identifiers, or each row another's."""
    if person is not None:
        if person not in table.schema:
            raise ParameterError(f"--person must name a column of the schema: {', '.join(table.schema.names())}.")
        if rows_are_people:
            raise ParameterError("--person contradicts --rows-are-people. Give one of them.")
        return people_of(table.frame, [person])
    if rows_are_people:
        return np.arange(len(table), dtype=np.int64)
    equal = equal_rows(table)
    if equal is None:
        return people_of(table.frame, person_columns(table))
    note_once(equal)
    return pd.factorize(equal.content)[0].astype(np.int64) if equal.copied else np.arange(len(table), dtype=np.int64)


def _people(
    published: PublishedFile, person: str | None, rows_per_person: int | None
) -> tuple[PublishedFile, PublishedFile, list[str]]:
    """The file with as many rows of each class as it holds people at least, and at most; and what is to be said."""
    frame = published.frame
    if person is not None:
        if person not in frame.columns:
            raise ParameterError(f"--person must name a column of the file. It has none of the name '{person}'.")
        if rows_per_person is not None:
            raise ParameterError("--person contradicts --rows-are-people and --rows-per-person. Give one of them.")
        once = published.each_once(people_of(frame, [person]))
        return once, once, [f"Rows that share '{person}' in a class count as one person."]
    if rows_per_person is not None:
        least = published.people_at_least(rows_per_person)
        each = f"Up to {rows_per_person} rows count as one person's, as you say: of a class, the fewest people."
        return least, least, [each] if rows_per_person > 1 else []
    if published.identifiers:
        named = keys_of(frame, published.identifiers)
        once = published.each_once(people_of(frame, named))
        several = f"Rows that share {', '.join(named)} in a class count as one person."
        return once, once, [several] if len(once.frame) < len(frame) else []
    found = published.equal_rows()
    if found.equal:
        note_once(found, published=True)
    return published.each_once(found.content) if found.copied else published, published, []


def _examined(promise: Guarantee, rows: PublishedFile, least: PublishedFile, most: PublishedFile) -> Verdict:
    """One promise: k of people, of whom there may be few or many; the others of rows."""
    if not isinstance(promise, KAnonymity):
        return examine(rows, promise)
    few = examine(least, promise)
    if few.holds or least is most:
        return few
    many = examine(most, promise)
    return replace(few, shown=False) if many.holds else many


def _notes(published: PublishedFile, verdicts: list[Verdict]) -> list[str]:
    """What keeps a file from passing beside what was counted, or from being counted at all."""
    notes = _missing_notes(published.identifiers, published.undeclared)
    if not verdicts[0].holds and published.seems_patterns:
        notes.append(
            "This looks like a table of patterns (`--method k-common`). Patterns are not rows of people: how "
            "many people fit one cannot be counted in the file."
        )
    return notes


def _missing_notes(leaked: list[str], undeclared: list[str]) -> list[str]:
    """Columns that keep a file from passing."""
    notes = [f"Identifiers are in the file: {', '.join(leaked)}."] if leaked else []
    if undeclared:
        names = ", ".join(undeclared)
        notes.append(f"The schema does not know these columns of the file: {names}. Declare them or drop them.")
    return notes


def _tell(rows: int, verdicts: list[Verdict], holds: bool) -> None:
    say(f"{rows:,} rows in {counted(verdicts[0].classes, 'class', 'classes')} of equal quasi-identifiers.")
    lines = [
        [
            v.claim,
            v.answer,
            f"{v.reached:.4g}",
            f"{v.failing_classes:,}",
            f"{v.failing_rows:,}",
        ]
        for v in verdicts
    ]
    table(["asked", "answer", "reached", "classes that fail", "rows in them"], lines)
    say(conclude(verdicts, holds))


def _promises(
    schema: Schema,
    k: int,
    l: float | None,  # noqa: E741
    diversity: str,
    c: float,
    t: float | None,
    closeness: str,
    sensitive: str | None,
    hierarchies: Path | None,
) -> list[Guarantee]:
    promises: list[Guarantee] = [KAnonymity(k)]
    if l is None and t is None:
        return promises
    secret = sensitive if sensitive is not None else only_sensitive(schema)
    if schema[secret].role in ("identifier", "quasi"):
        raise bad_parameter("check", "sensitive", "a column that is neither identifier nor quasi-identifier", secret)
    if l is not None:
        if not 1 <= l < math.inf:
            raise bad_parameter("check", "l", "a number of at least 1", l)
        if not 0 < c < math.inf:
            raise bad_parameter("check", "c", "a number above 0", c)
        promises.append(LDiversity(l, diversity, secret, c if diversity == "recursive" else None))
    if t is not None:
        if not 0 <= t <= 1:
            raise bad_parameter("check", "t", "between 0 and 1", t)
        promises.append(TCloseness(t, closeness, secret, tree=_tree(closeness, secret, hierarchies)))
    return promises


def _tree(closeness: str, secret: str, folder: Path | None) -> tuple[tuple[str, ...], ...] | None:
    if closeness != "hierarchical":
        return None
    from countervail.core.hierarchy import Hierarchy

    if folder is None:
        raise ParameterError("The hierarchical distance needs --hierarchies, a folder with COLUMN.csv files.")
    return Hierarchy.read(folder / f"{secret}.csv", secret).rows
