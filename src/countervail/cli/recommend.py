"""countervail recommend: which private mechanism, measured on the data at hand."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from countervail.cli.shared.common import (
    AsJson,
    Data,
    SchemaFile,
    check_ending,
    json_text,
    note,
    page_text,
    progress,
    remark,
    say,
    say_json,
    table,
    with_noted,
)
from countervail.cli.shared.reading import read_table
from countervail.core.files.frames import write_text

if TYPE_CHECKING:
    from countervail.study import Recommendation, Row, Study

ENDINGS = (".json", ".html")


class Priority(StrEnum):
    """What counts most."""

    correctness = "correctness"
    proximity = "proximity"
    plausibility = "plausibility"
    privacy = "privacy"
    trade_off = "trade-off"
    model_agnostic = "model-agnostic"


def recommend(
    data: Data,
    schema: SchemaFile,
    priority: Annotated[
        Priority, typer.Option(help="What counts most; model-agnostic: what protects any explainer as it is.")
    ] = Priority.correctness,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="A budget to try; may be repeated. Default: 1.", show_default=False)
    ] = None,
    neighbours: Annotated[int, typer.Option(help="Records behind an answer.", min=1)] = 20,
    answers: Annotated[int, typer.Option(help="How many answers will be given in all.", min=1)] = 1000,
    people: Annotated[int, typer.Option(help="People who ask in the measurement, per seed.", min=1)] = 100,
    runs: Annotated[int, typer.Option(help="Answers per person.", min=1)] = 3,
    seeds: Annotated[int, typer.Option(help="Splits of the data.", min=1)] = 3,
    missing: Annotated[
        list[str] | None, typer.Option(help="A column where missing is a level; may be repeated.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="A saved model (.skops); default: forests trained on DATA.")
    ] = None,
    allow_pickle: Annotated[
        bool, typer.Option(help="Open the model even if it is a pickle (it can run code).")
    ] = False,
    allow_no_guarantee: Annotated[
        bool, typer.Option(help="Compare published mechanisms too, and recommend one even though it promises nothing.")
    ] = False,
    audit_draws: Annotated[
        int, typer.Option(help="Draws to measure each epsilon from outside; 0: do not.", min=0)
    ] = 2000,
    store: Annotated[
        Path | None, typer.Option(help="Folder for what is measured; read if it is there. Keep it with the data.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    output: Annotated[Path | None, typer.Option("--output", "-o", help=f"One of {', '.join(ENDINGS)}.")] = None,
    as_json: AsJson = False,
) -> None:
    """Which private mechanism suits your priority: measured on your own data, with intervals.

    Only mechanisms with a guarantee are recommended, unless you ask otherwise. An interrupted measurement goes on
    where it stopped if it has a --store.

    Example: `countervail recommend people.csv --schema people.toml --priority correctness --epsilon 1 -o choice.html`
    """
    from countervail.study import StudyPlan, as_published, run, sound
    from countervail.study import recommend as choose

    check_ending(output, ENDINGS, data, schema, model)
    rows = read_table(data, schema)
    plan = StudyPlan(
        {data.name: rows},
        ("nice", *sound(), *(as_published() if allow_no_guarantee else ())),
        epsilons=tuple(epsilon or (1.0,)),
        neighbours=(neighbours,),
        seeds=tuple(range(seeds)),
        people=people,
        runs=runs,
        missing={data.name: missing or []},
        model=_model(model, allow_pickle),
        audit_draws=audit_draws,
    )
    with progress("Measuring", quiet=as_json) as tick:
        study = run(plan, store=store, n_jobs=jobs, progress=tick)
    chosen = choose(study, priority.value, answers=answers, allow_no_guarantee=allow_no_guarantee)
    if output is not None:
        _write(study, chosen, output)
        remark(f"Comparison written to {output}.")
    if as_json:
        say_json(chosen.to_dict())
        return
    _show(chosen)


def _show(chosen: Recommendation) -> None:
    rows = [*([chosen.without_noise] if chosen.without_noise is not None else []), *chosen.ranked]
    table(["mechanism", "epsilon", "audited", "Correctness", "Dist_rec", "Plaus_prox"], [_line(r) for r in rows])
    say(f"\n{chosen.sentence}")
    remark(chosen.best.guarantee)


def _line(row: Row) -> list[str]:
    """A row for the terminal: short figures, with their intervals."""
    epsilon = "" if row.epsilon is None else f"{row.epsilon:g}"
    audited = "" if row.audited is None else f">={max(row.audited, 0.0):.1f}"
    correct, near, real = (row.figures[n].mean for n in ("correctness", "dist_rec", "plaus_prox"))
    shares = f"{100 * correct.value:.0f}% ({100 * correct.low:.0f}-{100 * correct.high:.0f})"
    means = [f"{e.value:.2f} ±{e.high - e.value:.2f}" for e in (near, real)]
    return [row.mechanism, epsilon, audited, shares, *means]


def _model(path: Path | None, allow_pickle: bool) -> Any:
    from countervail.model import load_model

    if path is not None:
        return load_model(path, allow_pickle=allow_pickle)
    note("No --model given: a forest is trained on the data for each seed.")
    return None


def _write(study: Study, chosen: Recommendation, path: Path) -> None:
    if path.suffix == ".json":
        write_text(json_text(with_noted({**chosen.to_dict(), "plan": study.plan.to_dict()})), path)
        return
    from countervail.report.compared_page import compared_page, summarize_comparison

    write_text(page_text(compared_page(summarize_comparison(study, chosen))), path)
