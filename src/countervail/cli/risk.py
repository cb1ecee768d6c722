"""countervail risk: how identifiable are these people?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countervail.cli.shared.at_scale import Engine, Master, Memory, Threads, check_engine, open_scan, pointing_scan
from countervail.cli.shared.common import (
    AsJson,
    Data,
    PageFile,
    Person,
    RowsArePeople,
    SchemaFile,
    check_ending,
    counted_file,
    note,
    page_text,
    pointing,
    pointing_note,
    progress,
    remark,
    say,
    say_json,
    table,
)
from countervail.cli.shared.reading import ROWS_IN_AN_ENGINE, copies_once, read_table
from countervail.core.errors import ParameterError
from countervail.core.files.frames import write_text
from countervail.core.people import people_of, person_columns

if TYPE_CHECKING:
    from countervail.core.table import Table
    from countervail.measure import KMap, Risk, Uniques


def risk(
    data: Data,
    schema: SchemaFile,
    k: Annotated[int, typer.Option(help="A class below this size counts as small.", min=1)] = 10,
    person: Person = None,
    rows_are_people: RowsArePeople = False,
    population: Annotated[
        str | None,
        typer.Option(
            metavar="N or FILE",
            help="Whom the people are a random sample of: how many there are, or a table of all of them.",
        ),
    ] = None,
    output: PageFile = None,
    engine: Engine = None,
    memory: Memory = None,
    threads: Threads = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """How identifiable people are by their quasi-identifiers: shares and column combinations, never a row.

    Example: `countervail risk people.csv --schema people.toml --k 10`

    In a population: `countervail risk people.csv --schema people.toml --population 250000`

    Larger than memory: `countervail risk big.parquet --schema people.toml --engine duckdb`
    """
    from countervail import measure

    row_by_row = {"person": person, "population": population, "output": output}
    check_engine(engine, memory=memory, threads=threads, master=master, **row_by_row)
    check_ending(output, (".html",), data, schema)
    if engine is not None:
        scan = open_scan(data, schema, engine, memory, threads, master=master)
        if not rows_are_people and not scan.schema.names("identifier"):
            note(ROWS_IN_AN_ENGINE)
        with progress("Looking at column combinations", quiet=as_json) as tick:
            found = measure.risk(scan, k=k, progress=tick)
        if pointed := pointing_scan(scan, scan.schema.names("sensitive", "attribute", "target")):
            note(pointing_note(pointed))
        scan.close()
        if as_json:
            say_json(found.to_dict())
        else:
            _tell(found)
        return
    people = read_table(data, schema)
    if person is not None and person not in people.schema:
        raise ParameterError(f"--person must name a column of the schema: {', '.join(people.schema.names())}.")
    if person is not None and rows_are_people:
        raise ParameterError("--person contradicts --rows-are-people. Give one of them.")
    rows = len(people)
    if person is None and not rows_are_people:
        people = copies_once(people)
    among = None if population is None else _among(people, population, schema, k, person)
    with progress("Looking at column combinations", quiet=as_json) as tick:
        found = measure.risk(people, k=k, person=person, progress=tick)
    found = replace(found, rows=rows)
    who = people_of(people.frame, [person] if person is not None else person_columns(people))
    if pointed := pointing(people.frame, people.schema.names("sensitive", "attribute", "target"), who):
        note(pointing_note(pointed))
    told = [] if among is None else _told(among)
    if output is not None:
        from countervail.report.counted_page import risk_page

        write_text(page_text(risk_page(found, counted_file(data, people.schema, published=False), told)), output)
        remark(f"Report: {output.resolve()}")
    if as_json:
        say_json(found.to_dict() if among is None else {**found.to_dict(), "population": among.to_dict()})
        return
    _tell(found)
    if among is not None:
        say("")
        for line in told:
            say(line)


def _tell(found: Risk) -> None:
    """The figures, for a person."""
    several = f" in {found.rows:,} rows" if found.rows != found.people else ""
    say(f"{found.people:,} people{several}, quasi-identifiers: {', '.join(found.quasi)}")
    say(f"{found.unique:.1%} are unique: nobody else shares their combination.")
    say(
        f"{found.below_k:.1%} share it with fewer than {found.k - 1} others ({found.classes:,} different combinations)."
    )
    if found.offenders:
        say("\nWhat gives most away, by combinations of up to three columns:")
        rows = [[" + ".join(o.columns), f"{o.unique:.1%}", f"{o.below_k:.1%}"] for o in found.offenders]
        table(["columns", "unique", f"in classes below {found.k}"], rows)


def _among(people: Table, population: str, schema: Path, k: int, person: str | None) -> Uniques | KMap:
    """The people in their population: estimated from its size, or counted in a table of it."""
    from countervail import measure

    number = population.replace(",", "").replace("_", "")
    if not number.isdigit():
        if not Path(population).is_file():
            raise ParameterError(
                "--population must be a number of people, or a file of them with the schema's columns."
            )
        return measure.k_map(people, read_table(Path(population), schema), k=k, person=person)
    return measure.population_uniques(people, int(number), person=person)


def _told(among: Uniques | KMap) -> list[str]:
    """What is to be said of the population."""
    found = (
        f"Chance of finding a person in the population: {among.journalist:.1%} on average, {among.highest:.1%} at most"
    )
    from countervail.measure import KMap

    if isinstance(among, KMap):
        told = [
            f"In the population of {among.size:,}: each combination fits at least {among.least:,} people (k-map).",
            f"{among.unique:.1%} of the people are unique there, {among.below_k:.1%} among fewer than {among.k}.",
            f"{found} (counted).",
        ]
        if among.absent:
            told.append(
                f"{among.absent:,} people's combinations are not in the population: it does not hold the table."
            )
        return told
    models = [("Pitman", among.pitman), ("Zayatz", among.zayatz), ("SNB", among.snb)]
    chosen = "SNB" if among.chosen == "snb" else among.chosen.capitalize()
    numbers = ", ".join(f"{name} {'does not fit' if v is None else f'{v:,.0f}'}" for name, v in models)
    return [
        f"In a population of {among.size:,} ({among.fraction:.2%} of which are here): about {among.estimate:,.0f} "
        f"people ({among.share:.1%}) are unique, by the model of {chosen}, which Dankar et al. advise here.",
        f"Models: {numbers}.",
        f"{found} (estimated); {among.expected:,.0f} of the {among.people:,} would be found.",
        "Estimates hold for a simple random sample of the population.",
    ]
