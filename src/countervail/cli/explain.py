"""countervail explain: counterfactuals for rows of a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from countervail import registry
from countervail.cli.shared.askers import check_letters, ids_of, letter_writers, without_ids
from countervail.cli.shared.at_scale import Engine, Master, Memory, Threads, check_engine
from countervail.cli.shared.common import (
    AsJson,
    Data,
    DatasetOption,
    LedgerOption,
    SchemaFile,
    check_ending,
    check_not_read,
    note_formulas,
    noted,
    open_ledger,
    page_text,
    pointing,
    pointing_note,
    progress,
    remark,
    say,
    say_json,
)
from countervail.cli.shared.constraints import FLAGS as CONSTRAINTS
from countervail.cli.shared.constraints import (
    Costs,
    Forbidden,
    Immutable,
    MaxChanges,
    Monotone,
    Ranges,
    Several,
    read_constraints,
)
from countervail.cli.shared.epsilon import MEMORISED, check_private, meaning
from countervail.cli.shared.methods import USUAL, chosen, explaining, make
from countervail.cli.shared.reading import note_equal_rows, read_rows, read_table, tell_equal_rows, tell_own_rows
from countervail.cli.shared.saving import Save, check_save, save_explainer
from countervail.cli.shared.scan_answers import answer_scan, check_asked, check_counted, open_queries, tell_answers
from countervail.core.canonical import canonical_value
from countervail.core.cells import cell_text
from countervail.core.encode import check_declared, conform_rows, require_numbers
from countervail.core.errors import ModelWarning, ParameterError, SchemaError
from countervail.core.explanation import Explanations
from countervail.core.files.frames import ENDINGS as TABLES
from countervail.core.files.frames import frame_writer, text_writer, write_files
from countervail.core.guarantee import DifferentialPrivacy, Guarantee, NoGuarantee
from countervail.core.table import Table
from countervail.core.words.catalogue import LANGUAGES, catalogue
from countervail.core.words.caveats import say_caveat
from countervail.core.words.dates import day_cell
from countervail.ledger import Ledger

ENDINGS = (".csv", ".csv.gz", ".parquet", ".json", ".txt", ".html")
_UNSEEN = (
    "Somebody who asks has a value in {} that the table never had: it counts as a value of its own. "
    "Correct it if it is a slip."
)
_TRAINED = "No --model given: a forest of 100 trees is trained on the data."
FLAGS = (
    "k",
    "search",
    "previous",
    "epsilon",
    "delta",
    "neighbours",
    "missing",
    "reward",
    "amounts",
    "target",
    "ledger",
    *CONSTRAINTS,
)


class SearchName(StrEnum):
    """How CF-K looks for a region."""

    groups = "groups"
    exact = "exact"
    grasp = "grasp"


class RewardName(StrEnum):
    """What NICE looks for on the way to the neighbour."""

    none = "none"
    sparsity = "sparsity"
    proximity = "proximity"
    plausibility = "plausibility"
    typical = "typical"


class AmountsFlag(StrEnum):
    """Whether numbers that an answer moves leave round or as they are."""

    round = "round"
    exact = "exact"


def explain(
    data: Data,
    schema: SchemaFile,
    rows: Annotated[
        Path | None,
        typer.Option("--rows", "-r", help="The people to explain; default: those of DATA that are refused."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="A saved model (.skops); default: a forest trained on DATA.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How counterfactuals are made; see below. cfk: k-anonymous, may be handed out; nice: plain, other "
            "people's records; those with --epsilon: differentially private, with declared domains and --rows.",
        ),
    ] = "cfk",
    k: Annotated[int | None, typer.Option(help="How many people every answer speaks of at least.")] = None,
    search: Annotated[SearchName | None, typer.Option(help="How the region is found.")] = None,
    previous: Annotated[
        Path | None,
        typer.Option(help="File that keeps who hides with whom; read if it is there, then written. Confidential."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="The budget of an answer, or of the one draw.")] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="What may come on top of e^epsilon times a chance; 0: nothing, for more noise."),
    ] = None,
    model_epsilon: Annotated[
        float | None,
        typer.Option(help="In the place of --model: train a private model on DATA with this epsilon, counted too."),
    ] = None,
    neighbours: Annotated[int | None, typer.Option(help="How many records are looked at for an answer.")] = None,
    missing: Annotated[
        list[str] | None, typer.Option(help="A column where missing is a level; may be repeated.")
    ] = None,
    reward: Annotated[RewardName | None, typer.Option(help="What is looked for on the way.")] = None,
    amounts: Annotated[
        AmountsFlag | None, typer.Option(help="Whether private numbers that an answer moves leave round.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="'favourable', 'other', or a label. Default: favourable.", show_default=False)
    ] = None,
    immutable: Immutable = None,
    monotone: Monotone = None,
    ranges: Ranges = None,
    forbidden: Forbidden = None,
    max_changes: MaxChanges = None,
    costs: Costs = None,
    n_counterfactuals: Several = None,
    output: Annotated[
        list[Path] | None, typer.Option("--output", "-o", help=f"One of {', '.join(ENDINGS)}; may be repeated.")
    ] = None,
    save: Save = None,
    changes: Annotated[
        Path | None, typer.Option(help=f"Write a table with a row for each change ({', '.join(TABLES)}).")
    ] = None,
    shared: Annotated[
        Path | None, typer.Option(help=f"Write the fewest changes that help all of these people ({', '.join(TABLES)}).")
    ] = None,
    letters: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a letter to each person into this new folder.")
    ] = None,
    letter_template: Annotated[
        Path | None, typer.Option(help="With --letters: a jinja2 template in the place of the one that we have.")
    ] = None,
    sender: Annotated[str, typer.Option(help="With --letters: who writes.")] = "",
    language: Annotated[str, typer.Option(help=f"Of the sentences: {', '.join(LANGUAGES)}.")] = "en",
    id_column: Annotated[
        str | None, typer.Option("--id", help="Column of the people that names them; it comes back with each answer.")
    ] = None,
    allow_pickle: Annotated[
        bool, typer.Option(help="Open the model even if it is a pickle (it can run code).")
    ] = False,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    edition: Annotated[str, typer.Option(help="With --ledger: name of the state of data and model.")] = "",
    engine: Engine = None,
    memory: Memory = None,
    threads: Threads = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Explain decisions by counterfactuals: what would have to be different for another outcome.

    By default they are k-anonymous. Plain ones (`--method nice`) are other people's records: do not hand them out.

    Example: `countervail explain people.csv --schema people.toml --rows asked.csv --model m.skops --k 10 -o out.html`

    Within what people can do: `... --immutable sex --monotone age=up --range income=0:100000
    --forbid "job:unskilled->management" --max-changes 3 --n 3`; the schema file may declare the first three.

    Letters: `countervail explain people.csv --schema people.toml --rows asked.csv --id application_id --letters letters
    --language de`

    With a budget: `countervail explain people.csv --schema people.toml --rows asked.csv --model m.skops
    --method private-synthetic --epsilon 1 --ledger people.ledger --dataset "customers 2026"`

    One change for many: `countervail explain people.csv --schema people.toml --rows asked.csv --shared changes.csv`

    Very many people: `countervail explain people.csv --schema people.toml --rows "asked/*.parquet" --id application_id
    --model m.skops --engine duckdb -o answers/`
    """
    check_engine(engine, memory=memory, threads=threads, master=master, changes=changes, letters=letters, shared=shared)
    outputs = output or []
    for path in outputs if engine is None else ():
        check_ending(path, ENDINGS, data, schema, rows, model, previous, ledger)
    if engine is not None:
        check_asked(rows, id_column, outputs)
    check_not_read(previous, data, schema, rows, model, ledger)
    for written in (changes, shared):
        check_ending(written, TABLES, data, schema, rows, model, previous, ledger)
    check_letters(letters, letter_template, sender)
    catalogue(language)
    counted = open_ledger(ledger, dataset, edition)
    given: dict[str, Any] = {
        "k": k,
        "search": search,
        "previous": previous,
        "epsilon": epsilon,
        "delta": delta,
        "neighbours": neighbours,
        "missing": missing or None,
        "reward": reward,
        "amounts": amounts,
        "target": target,
        "immutable": immutable or None,
        "monotone": monotone or None,
        "ranges": ranges or None,
        "forbidden": forbidden or None,
        "max_changes": max_changes,
        "costs": costs or None,
        "n_counterfactuals": n_counterfactuals,
    }
    kind = chosen(explaining(), method, given)
    check_save(save, kind, method, data, schema, rows, model, previous, ledger, changes, *outputs)
    promise = registry.promise(kind)
    if counted is not None and isinstance(promise, NoGuarantee):
        raise ParameterError(f"--method {method} promises nothing ({promise.why}): no ledger can count that.")
    if letters is not None and isinstance(promise, NoGuarantee):
        raise ParameterError(f"--method {method} promises nothing ({promise.why}): no letter may hold its answers.")
    chosen(explaining(), method, {"ledger": counted})
    private = isinstance(promise, DifferentialPrivacy)
    if engine is not None:
        check_counted(kind, method, counted)
    if model_epsilon is not None and (model is not None or not private):
        raise ParameterError("--model-epsilon trains a model in the place of --model, for methods with --epsilon only.")
    warned = check_private(rows, model if model_epsilon is None else model_epsilon) if private else ()
    said: set[str] = set()

    def warn(lines: Iterable[str]) -> None:
        for line in lines:
            if line not in said and line not in noted():
                remark(say_caveat(line, language))
        said.update(lines)

    warn(warned)
    table = read_table(data, schema)
    if table.schema.target is None:
        raise SchemaError(
            "The schema declares no target: give the column of the decisions the role 'target', and name the good ones "
            'with favourable = ["..."] at its top. `countervail schema --target COLUMN --favourable VALUE` does both.'
        )
    if previous is not None and not table.schema.names("identifier"):
        raise ParameterError(
            "--previous recognises people by identifiers, and the schema declares none. Give the column that names "
            "them the role 'identifier'."
        )
    wishes = read_constraints(given, table)
    missing_too = bool(missing) if private else model is not None and registry.fact(kind, "takes_missing")
    queries, ids, worded = None, None, None
    if rows is not None and engine is None:
        queries, ids, worded = _asked(rows, table, private, missing_too, id_column)
    trained = [_TRAINED] if model is None and model_epsilon is None else []
    warn(trained)
    if trained and not isinstance(promise, NoGuarantee):
        trained.append(MEMORISED)
    if model_epsilon is None:
        decide = _model(model, table, allow_pickle)
    else:
        decide = _private_model(table, model_epsilon, delta, missing, counted)
    aim = _target(
        target or USUAL["target"], _public_labels(table, decide) if private else table.target.dropna().unique()
    )
    if queries is None and engine is None:
        queries = _refused(table, decide, aim)
        ids = None if id_column is None else ids_of(table, queries, id_column)
    made = make(kind, {**given, **wishes, "previous": _stored(previous), "target": aim, "ledger": counted})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # said below, in a line of its own
        explainer = made.fit(table, decide)
    warn(trained)
    save_explainer(explainer, save, decide, model)
    warn(getattr(explainer, "caveats_", ()))
    held = _held(explainer, table)
    unseen = [] if worded is None else _unseen(worded, held)
    warn(unseen)
    pointed = [] if private else pointing(held, _shown_texts(table, promise))
    notes = [*_kept(explainer, table, previous), *([pointing_note(pointed)] if pointed else [])]
    if engine is not None:
        asked, name, folder = check_asked(rows, id_column, outputs)
        scan = open_queries(asked, engine, memory, threads, master)
        _tell_who_counts(table, promise)
        found = answer_scan(explainer, scan, folder, name, threads, [*warned, *trained, *notes, *noted()])
        if previous is not None:
            write_files({previous: text_writer(explainer.roster_.to_json())}, confidential={previous})
            remark(f"Who hides with whom (version {explainer.roster_.version}) is kept in {previous}; confidential.")
        tell_answers(found, folder, as_json)
        for line in (str(found.guarantee), *meaning(found.guarantee)):
            remark(line)
        warn(found.caveats)
        return
    with progress("Explaining", quiet=as_json) as tick:
        answers = explainer.explain(queries, progress=tick)
    _tell_who_counts(table, promise)
    answers = answers if ids is None else answers.with_ids(ids)
    frames = {path: _table(answers) for path in outputs if path.name.endswith(TABLES)}
    if changes is not None:
        frames[changes] = answers.to_table(language)
    together = None
    if shared is not None:
        from countervail.explain.together import share_changes

        asked_of = {n: v for n, v in wishes.items() if n not in ("costs", "n_counterfactuals")}
        together = share_changes(answers, decide, target=aim, table=table, **asked_of)
        frames[shared] = together.to_frame()
    for path, frame in frames.items():  # before anything is written: pages hold all that is noted
        note_formulas(frame, path)
    answers = replace(answers, caveats=(*answers.caveats, *warned, *unseen, *trained, *notes, *noted()))
    writers = {path: _writer(answers, path, language) for path in outputs}
    writers |= {path: frame_writer(frame, path) for path, frame in frames.items()}
    if previous is not None:
        writers[previous] = text_writer(explainer.roster_.to_json())
    posted = {} if letters is None else letter_writers(answers, letters, letter_template, sender, language)
    if letters is not None:
        letters.mkdir(mode=0o700, exist_ok=True)
    write_files({**writers, **posted}, confidential={*posted, *([] if previous is None else [previous])})
    if previous is not None:
        remark(f"Who hides with whom (version {explainer.roster_.version}) is kept in {previous}; confidential.")
    for path in outputs:
        remark(f"{len(answers)} explanations written to {path}.")
    if changes is not None:
        remark(f"Their changes written to {changes}.")
    if together is not None and shared is not None:
        helped = f"{together.helped} of {together.asked} people"
        remark(f"{len(together)} changes that help {helped} written to {shared}: what one of them needs, all may read.")
    if letters is not None:
        remark(f"{len(posted)} letters written to {letters}; each is for one person alone.")
    if as_json:
        counts = answers.status.value_counts().to_dict()
        say_json({"guarantee": answers.guarantee.to_dict(), "status": counts, "caveats": answers.caveats})
    elif not writers and not posted:
        say(answers.to_text(language))
    for line in (str(answers.guarantee), *meaning(answers.guarantee)):
        remark(line)
    warn(answers.caveats)


def _asked(
    path: Path, table: Table, private: bool, missing_too: bool, id_column: str | None
) -> tuple[Any, Any, pd.DataFrame | None]:
    """The people who ask, checked before anything is trained or fitted; what names them; their values in words."""
    frame = read_rows(path, table.schema, text=() if id_column is None else (id_column,))
    frame, ids = (frame, None) if id_column is None else without_ids(frame, id_column, table.schema, path.name)
    if private:
        check_declared(frame, table.schema, "explain", holes=missing_too)
        return frame, ids, None
    conformed = conform_rows(frame, table, "explain")
    if not missing_too:
        require_numbers(conformed, table.schema, "explain", "rows")
    return frame, ids, conformed[[c.name for c in table.schema if c.name in conformed and not c.numeric]]


def _held(explainer: Any, table: Table) -> pd.DataFrame:
    """What may be said of the table's columns: of private ones, what the groups hold. Nobody who waits is read."""
    sealed = getattr(getattr(explainer, "search_", None), "sealed_", None)
    if sealed is None:
        return table.frame
    private: pd.DataFrame = sealed.sealed.others
    return pd.concat([table.frame[table.schema.names("quasi")].reset_index(drop=True), private], axis=1)


def _unseen(worded: pd.DataFrame, held: pd.DataFrame) -> list[str]:
    """What is to be said of people who ask with a value that nobody has; one spelling per value."""
    known = {n: {canonical_value(v) for v in held[n].dropna().unique()} for n in worded.columns}
    asked = {n: {canonical_value(v) for v in worded[n].dropna().unique()} for n in worded.columns}
    unseen = [str(n) for n in worded.columns if asked[n] - known[n]]
    return [_UNSEEN.format(", ".join(unseen))] if unseen else []


def _stored(previous: Path | None) -> Any:
    """Who hides with whom, if it was kept."""
    if previous is None or not previous.is_file():
        return None
    from countervail.protect.cfk.groups.roster import Roster

    return Roster.read(previous)


def _kept(explainer: Any, table: Table, path: Path | None) -> list[str]:
    """What it means that nobody keeps who hides with whom."""
    if path is not None or explainer.guarantee().to_dict().get("against") != "algorithm":
        return []
    way = "Use --previous FILE to keep it."
    if not table.schema.names("identifier"):
        way = "Declare an identifier that lasts, and use --previous FILE to keep it."
    return [f"Who hides with whom was not kept: a later run on a changed table would intersect with this one. {way}"]


def _model(path: Path | None, table: Table, allow_pickle: bool) -> Any:
    from countervail.model import load_model, train_forest

    if path is not None:
        return load_model(path, allow_pickle=allow_pickle)
    return train_forest(table)


def _private_model(
    table: Table, epsilon: float, delta: float | None, missing: list[str] | None, ledger: Ledger | None
) -> Any:
    """A model that is private itself, with the delta of the answers."""
    from countervail.protect import train_private_logistic

    likely = 1e-6 if delta is None else delta
    return train_private_logistic(table, epsilon, delta=likely, missing=missing or (), ledger=ledger)


def _shown_texts(table: Table, promise: Guarantee) -> list[str]:
    """Texts that a counterfactual shows as they stand in somebody's row."""
    hidden = set() if isinstance(promise, NoGuarantee) else set(table.schema.names("quasi") or table.schema.features)
    return [n for n in table.schema.features if n not in hidden and not table.schema[n].numeric]


def _refused(table: Table, model: Any, target: Any) -> Any:
    """People of the data without a favourable decision; where none is declared, without the one that is aimed at."""
    from countervail.model.decision import Decision

    decision = Decision(model, table, "explain")
    aimed = target in decision.classes or target not in ("favourable", "other")
    wanted = table.schema.favourable or ((target,) if aimed else ())
    if not wanted:
        raise SchemaError(
            "The schema declares no favourable decision. "
            'Write favourable = ["..."] at the top of the schema file, or use --target with a label.'
        )
    good = decision.codes(wanted, "favourable" if table.schema.favourable else "target")
    refused = table.features[[c not in set(good.tolist()) for c in decision.train]]
    if refused.empty:
        raise SchemaError("The model gives everybody in the data a favourable decision. Give the people with --rows.")
    return refused


def _tell_who_counts(table: Table, promise: Guarantee) -> None:
    """What must be known about rows that are equal, or somebody's several."""
    (note_equal_rows if isinstance(promise, NoGuarantee) else tell_equal_rows)(table)
    if isinstance(promise, DifferentialPrivacy):
        tell_own_rows(table)


def _target(target: str, known: Iterable[Any]) -> Any:
    labels = {str(v): v for v in known}
    return target if target in ("favourable", "other") and target not in labels else labels.get(target, target)


def _public_labels(table: Table, model: Any) -> Iterable[Any]:
    """Labels that do not depend on the rows: declared ones, or those that the model knows."""
    name = table.schema.target
    declared = table.schema[name].public if name is not None and not table.schema[name].numeric else None
    return declared if declared is not None else getattr(model, "classes_", ())


def _writer(answers: Explanations, path: Path, language: str) -> Callable[[Path], object]:
    if path.suffix == ".json":
        return text_writer(answers.to_json(language))
    if path.suffix == ".txt":
        return text_writer(answers.to_text(language) + "\n")
    if path.suffix == ".html":
        from countervail.report.explained_page import explained_page

        return text_writer(page_text(explained_page(answers, language=language)))
    return frame_writer(_table(answers), path)


def _table(answers: Explanations) -> pd.DataFrame:
    """The answers as a table of plain cells and texts."""
    frame = answers.to_frame()
    days = answers.schema.dates(answers.counterfactuals.columns)
    kept = frame.drop(columns=list(days))
    wide = [n for n in kept.columns if kept[n].dtype == object or isinstance(kept[n].dtype, pd.IntervalDtype)]
    texts = {n: kept[n].map(cell_text) for n in wide} | {n: answers.counterfactuals[n].map(day_cell) for n in days}
    return frame.assign(**{n: cells.where(answers.found | frame[n].notna()) for n, cells in texts.items()})
