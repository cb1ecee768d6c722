"""countervail dit: does what one infers about a person depend on that person's record?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from countervail import registry
from countervail.cli.anonymize import Diversity
from countervail.cli.shared.common import (
    AsJson,
    Data,
    SchemaFile,
    check_ending,
    json_text,
    note,
    numbers,
    only_sensitive,
    page_text,
    progress,
    remark,
    say_json,
    with_noted,
)
from countervail.cli.shared.common import table as show_table
from countervail.cli.shared.methods import USUAL, chosen, make, testable
from countervail.cli.shared.reading import read_table
from countervail.core.errors import ParameterError
from countervail.core.files.frames import text_writer, write_files
from countervail.core.files.schema_file import read_schema
from countervail.core.table import Table

FLAGS = ("k", "l", "diversity", "hierarchies")
_DRAWN = 300
_NO_PROMISE = "No promise: a small distance only says that this learner saw no difference."
_C = 3.0  # of recursive (c, l)-diversity
_MANY = 50  # sensitive numbers; above it a learner has hardly anybody per number


def dit(
    data: Data,
    schema: SchemaFile,
    method: Annotated[str, typer.Option(metavar="NAME", help="What is tested; see below.")] = "mondrian",
    k: Annotated[str | None, typer.Option("--k", help="One k, or several: 2,5,20. Default: 10.")] = None,
    l: Annotated[str | None, typer.Option("--l", help="One l, or several; each with k=1.")] = None,  # noqa: E741
    diversity: Annotated[
        Diversity | None, typer.Option(help="What l means. Default: frequency.", show_default=False)
    ] = None,
    sensitive: Annotated[str | None, typer.Option(help="Default: the schema's only sensitive column.")] = None,
    hierarchies: Annotated[Path | None, typer.Option(help="A folder with COLUMN.csv hierarchies.")] = None,
    cells: Annotated[str, typer.Option(help="How cells become numbers, such as tf-tf.")] = "tf-tf",
    records: Annotated[
        int | None, typer.Option(help=f"People to draw; default: all if quick, else {_DRAWN}.", min=1)
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="Which people are drawn.", min=0)] = 0,
    resume: Annotated[
        Path | None, typer.Option(help="Keep what was found here (.json, private) and go on after a stop.")
    ] = None,
    output: Annotated[
        list[Path] | None, typer.Option("--output", "-o", help="Write the report here (.html, .json; may be repeated).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Test a release: the same learner is trained with and without each person, and both predictions are compared.

    A large distance shows that a person's own record gives them away. A small one is no guarantee.

    Example: `countervail dit people.csv --schema people.toml --k 2,5,20 --sensitive illness -o report.html`
    """
    from countervail.attack import DifferentialInferenceTest
    from countervail.report.differential_page import differential_page, differential_summary

    for path in output or []:
        check_ending(path, (".html", ".json"), data, schema)
    check_ending(resume, (".json",), data, schema)
    kind = chosen(testable(), method, given := {"k": k, "l": l, "diversity": diversity, "hierarchies": hierarchies})
    secret = only_sensitive(read_schema(schema)) if l is not None and sensitive is None else sensitive
    protectors = _protectors(method, kind, given, secret)
    table = read_table(data, schema)
    note(_NO_PROMISE)
    if said := _many_numbers(table, sensitive):
        note(said)
    quick = hasattr(kind, "leave_one_out") and cells == "tf-tf"
    drawn = records if records is not None else None if quick else min(_DRAWN, len(table))
    results = {}
    for i, (label, protector) in enumerate(protectors.items()):
        file = None if resume is None else resume.with_name(f"{resume.stem}-{i}{resume.suffix}")
        test = DifferentialInferenceTest(protector, encoding=cells, n_records=drawn, n_jobs=jobs, random_state=seed)
        with progress(f"Testing {label}", quiet=as_json) as tick:
            results[label] = test.run(table, sensitive, label=label, progress=tick, checkpoint=file)
    summary = differential_summary(results)
    writers = {}
    for path in output or []:
        if path.suffix == ".json":
            writers[path] = text_writer(json_text(with_noted(summary)))
        else:
            writers[path] = text_writer(page_text(differential_page(results)))
    write_files(writers)
    if as_json:
        say_json(summary)
        return
    _show(results)
    for path in output or []:
        remark(f"Report: {path.resolve()}")


def _many_numbers(table: Table, sensitive: str | None) -> str:
    """What to do about a sensitive column of very many numbers, each of which would be a class of its own."""
    names = table.schema.names("sensitive") if sensitive is None else [sensitive]
    if len(names) != 1 or names[0] not in table.schema or not table.schema[names[0]].numeric:
        return ""
    distinct = table.frame[names[0]].nunique()
    if distinct <= _MANY and 2 * distinct <= len(table):
        return ""
    return (
        f"Note: '{names[0]}' has {distinct:,} different numbers for {len(table):,} people, and the learner takes each "
        f"for a class of its own: group them into a few ranges first (in pandas: pd.cut(frame['{names[0]}'], 5)) and "
        f"declare the column ordinal or categorical."
    )


def _protectors(method: str, kind: type[Any], given: dict[str, Any], sensitive: str | None) -> dict[str, Any]:
    """One protector per k and per l, by what it is called in the report."""
    k, l, diversity = given["k"], given["l"], given["diversity"]  # noqa: E741
    common = {"hierarchies": given["hierarchies"]}
    if common["hierarchies"] is not None:
        common["labels"] = "hierarchy"
    ks = [USUAL["k"]] if "k" in registry.parameters(kind) and l is None else []
    out: dict[str, Any] = {}
    for value in numbers(k, "--k") if k is not None else ks:
        if not isinstance(value, int):
            raise ParameterError(f"--k takes whole numbers. Got {value:g}.")
        out[f"k={value}"] = make(kind, {**common, "k": value})
    for value in numbers(l, "--l") if l is not None else []:
        asked = (_C, value) if diversity is Diversity.recursive else value
        several = {"k": 1, "l": asked, "diversity": diversity or Diversity.frequency, "sensitive": sensitive}
        out[f"l={value:g}"] = make(kind, {**common, **several})
    return out or {method: make(kind, common)}


def _show(results: dict[str, Any]) -> None:
    rows = []
    for name, r in results.items():
        rows.append(_line(name, r))
        if "second learner" in r.beside:
            rows.append(_line("", r.beside["second learner"]))
    for key, r in next(iter(results.values())).beside.items():
        if key.startswith("identity"):
            rows.append(_line("as it is", r))
    show_table(["", "learner", "people tested", "mean", "largest", "above 10^-2.5", "changed"], rows)


def _line(name: str, r: Any) -> list[str]:
    above = f"{r.share_above(10**-2.5).value:.1%}"
    figures = [f"{len(r.d_pp):,}", f"{r.mean:.2g}", f"{r.epsilon:.2g}", above, f"{r.changed.value:.1%}"]
    return [name, r.learner, *figures]
