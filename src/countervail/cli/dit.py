"""countervail dit: does what one infers about a person depend on that person's record?"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
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
from countervail.cli.shared.reading import note_equal_rows, read_table
from countervail.core.cells import cell_text
from countervail.core.errors import ParameterError
from countervail.core.files.frames import text_writer, write_files
from countervail.core.files.schema_file import read_schema
from countervail.core.hierarchy import Hierarchy
from countervail.core.table import Table

FLAGS = ("k", "l", "diversity", "hierarchies")


class LearnerName(StrEnum):
    """What is trained with and without each person."""

    bernoulli = "bernoulli"
    tree = "tree"
    forest = "forest"
    logistic = "logistic"


class DistanceName(StrEnum):
    """How far apart two predictions are."""

    emd = "emd"
    max_divergence = "max_divergence"
    kl = "kl"


class ScaleName(StrEnum):
    """The earth mover's distance, or half of it as the paper prints it."""

    half = "half"
    quarter = "quarter"


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
    learner: Annotated[LearnerName, typer.Option(help="Who infers.")] = LearnerName.bernoulli,
    distance: Annotated[DistanceName, typer.Option(help="Between the two predictions.")] = DistanceName.emd,
    ground: Annotated[
        str,
        typer.Option(
            metavar="GROUND", help="How far apart sensitive values are: equal, ordered, or a hierarchy (COLUMN.csv)."
        ),
    ] = "equal",
    scale: Annotated[ScaleName, typer.Option(help="With --ground equal: half the L1 distance, or a quarter.")] = (
        ScaleName.half
    ),
    groups: Annotated[
        int | None, typer.Option(help="Put sensitive numbers into so many groups of equally many people.", min=2)
    ] = None,
    prior: Annotated[
        Path | None,
        typer.Option(help="What is known beforehand: a .csv of sensitive values and weights. Default: all alike."),
    ] = None,
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

    Another adversary: `... --learner forest --distance max_divergence`, or `... --ground illness.csv` where some
    illnesses are nearer to each other than others.
    """
    from countervail.attack import DifferentialInferenceTest
    from countervail.report.differential_page import differential_page, differential_summary

    for path in output or []:
        check_ending(path, (".html", ".json"), data, schema)
    check_ending(resume, (".json",), data, schema)
    kind = chosen(testable(), method, given := {"k": k, "l": l, "diversity": diversity, "hierarchies": hierarchies})
    secret = only_sensitive(read_schema(schema)) if l is not None and sensitive is None else sensitive
    protectors = _protectors(method, kind, given, secret)
    given_ground, trained = _ground(ground, distance, scale), _learner(learner, seed)
    table = read_table(data, schema)
    note_equal_rows(table)
    known = None if prior is None else _prior(prior, table, sensitive, groups)
    note(_NO_PROMISE)
    if groups is None and (said := _many_numbers(table, sensitive)):
        note(said)
    quick = hasattr(kind, "leave_one_out") and cells == "tf-tf" and trained is None
    drawn = records if records is not None else None if quick else min(_DRAWN, len(table))
    results = {}
    for i, (label, protector) in enumerate(protectors.items()):
        file = None if resume is None else resume.with_name(f"{resume.stem}-{i}{resume.suffix}")
        test = DifferentialInferenceTest(
            protector,
            learner=trained,
            encoding=cells,
            distance=distance.value,
            ground=given_ground,
            scale=scale.value,
            groups=groups,
            prior=known,
            n_records=drawn,
            n_jobs=jobs,
            random_state=seed,
        )
        with progress(f"Testing {label}", quiet=as_json) as tick:
            results[label] = test.run(table, sensitive, label=label, progress=tick, checkpoint=file)
    for text in dict.fromkeys(c for r in results.values() for c in r.caveats):
        note(text)
    summary = differential_summary(results)
    writers = {}
    for path in output or []:
        if path.suffix == ".json":
            writers[path] = text_writer(json_text(with_noted(summary)))
        else:
            writers[path] = text_writer(page_text(replace(differential_page(results), footer="")))  # noted
    write_files(writers)
    if as_json:
        say_json(summary)
        return
    _show(results)
    for path in output or []:
        remark(f"Report: {path.resolve()}")


def _ground(given: str, distance: DistanceName, scale: ScaleName) -> Any:
    """A name, or the hierarchy of a file."""
    if given in ("equal", "ordered"):
        found: Any = given
    elif Path(given).suffix == ".csv":
        found = Hierarchy.read(Path(given))
    else:
        raise ParameterError(
            f"--ground must be 'equal', 'ordered' or a hierarchy in a .csv file. Got '{given}' instead."
        )
    if distance is not DistanceName.emd and given != "equal":
        raise ParameterError(
            f"--ground is for --distance emd: {distance.value} does not look how far values are apart."
        )
    if scale is ScaleName.quarter and (distance is not DistanceName.emd or given != "equal"):
        raise ParameterError("--scale quarter is for --distance emd with --ground equal only.")
    return found


def _prior(path: Path, table: Table, sensitive: str | None, groups: int | None) -> dict[Any, float]:
    """Weights by sensitive value, which are told by their text; of groups of numbers, by "1 of 5"."""
    names = table.schema.names("sensitive") if sensitive is None else [sensitive]
    try:
        lines = pd.read_csv(path, dtype=str, keep_default_na=False, header=0)
        weights = [float(w) for w in lines.iloc[:, 1]]
    except (OSError, ValueError, IndexError):
        raise ParameterError(
            f"--prior must be a .csv with a header, a sensitive value and a weight a line: {path.name}"
        ) from None
    if groups is not None or len(names) != 1 or names[0] not in table.schema:
        return dict(zip(lines.iloc[:, 0], weights))
    texts = {cell_text(v): v for v in pd.unique(table.frame[names[0]].dropna().astype(object))}
    return dict(zip([texts.get(t, t) for t in lines.iloc[:, 0]], weights))


def _learner(name: LearnerName, seed: int) -> Any:
    """None is the usual one, which the quick way of counting is for."""
    if name is LearnerName.tree:
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(random_state=seed)
    if name is LearnerName.forest:
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(100, random_state=seed)
    if name is LearnerName.logistic:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(max_iter=1000)
    return None


def _many_numbers(table: Table, sensitive: str | None) -> str:
    """What to do about a sensitive column of very many numbers, each of which would be a class of its own."""
    names = table.schema.names("sensitive") if sensitive is None else [sensitive]
    if len(names) != 1 or names[0] not in table.schema or not table.schema[names[0]].numeric:
        return ""
    distinct = table.frame[names[0]].nunique()
    if distinct <= _MANY and 2 * distinct <= len(table):
        return ""
    return (
        f"Note: '{names[0]}' has {distinct:,} different numbers in {len(table):,} rows, and the learner takes each "
        f"for a class of its own: put them into groups (--groups 5 --ground ordered), or group them in the "
        f"file and declare the column ordinal or categorical."
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
