"""Running a plan: one model per table and seed, one mechanism after the other, finished cells kept as they come."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from pickle import PicklingError
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.errors import PrivacyWarning, SchemaError, bad_parameter
from countervail.core.protocols import Progress
from countervail.core.table import Table
from countervail.measure.private import answer_figures, region_figures
from countervail.model.decision import Decision
from countervail.model.paper import train_paper_model
from countervail.model.train import training_labels
from countervail.study.audit import audit_mechanism
from countervail.study.plan import Cell, StudyPlan
from countervail.study.remember import Remembered
from countervail.study.result import CellResult, Study
from countervail.study.store import CellFolder, cell_keys


@dataclass(frozen=True, eq=False, slots=True)
class _Block:
    """Cells that share a table, a model and a seed."""

    plan: StudyPlan
    cells: tuple[Cell, ...]
    store: CellFolder | None
    keys: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class _Shared:
    """What the cells of a block have in common."""

    train: Table
    model: Any
    people: pd.DataFrame
    accuracy: float


def run(
    plan: StudyPlan, *, store: str | Path | None = None, n_jobs: int = 1, progress: Progress | None = None
) -> Study:
    """Run what is not finished yet.

    Parameters
    ----------
    plan : StudyPlan
        What to compare.
    store : path, optional
        A folder for finished cells. A run that is interrupted goes on where it stopped; cells are found again as long
        as rows, model and settings are the same. It holds audit figures: keep it with the data.
    n_jobs : int
        Processes.
    progress : callable, optional
        Told how many cells are done, of how many.

    Examples
    --------
    >>> from countervail.study import StudyPlan, run
    >>> from countervail.testing import small_table
    >>> plan = StudyPlan({"small": small_table(200)}, ("nice",), seeds=(0,), people=10)
    >>> study = run(plan)
    >>> study.rows()[0].figures["correctness"].mean.value
    1.0
    """
    if not isinstance(plan, StudyPlan):
        raise bad_parameter("run", "plan", "a StudyPlan", type(plan).__name__)
    kept = CellFolder.open(store) if store is not None else None
    keys = cell_keys(kept, plan) if kept is not None else {}
    done = {c: r for c, k in keys.items() if kept is not None and (r := kept.result(k)) is not None}
    every = plan.cells()
    audits = {}
    if progress is not None:
        progress(len(done), len(every))
    for cell, result in _finished(_blocks(plan, [c for c in every if c not in done], kept, keys, n_jobs), n_jobs):
        done[cell] = result
        if progress is not None:
            progress(len(done), len(every))
    if plan.audit_draws:
        audits = _audits(plan, kept)
    return Study(plan, done, audits)


def _blocks(
    plan: StudyPlan, todo: Sequence[Cell], store: CellFolder | None, keys: dict[Cell, str], n_jobs: int
) -> list[_Block]:
    groups: dict[tuple[str, str, int], list[Cell]] = {}
    for cell in todo:
        groups.setdefault((cell.table, cell.model, cell.seed), []).append(cell)
    # With fewer blocks than processes, a block is shared out: the model is then trained more than once.
    parts = max(1, -(-n_jobs // max(len(groups), 1)))
    shared = [tuple(g[i::parts]) for g in groups.values() for i in range(parts)]
    return [_Block(plan, cells, store, tuple(keys.get(c, "") for c in cells)) for cells in shared if cells]


def _finished(blocks: Sequence[_Block], n_jobs: int) -> Iterator[tuple[Cell, CellResult]]:
    if n_jobs == 1:
        for block in blocks:
            yield from _run_block(block)
        return
    from joblib import Parallel, delayed

    try:
        for found in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(delayed(_whole)(b) for b in blocks):
            yield from found
    except PicklingError as error:
        raise bad_parameter(
            "run",
            "n_jobs",
            "1 for this plan: a mechanism or the model of it cannot be sent to another process",
            n_jobs,
            f"What holds a lock, an open file or a connection cannot be ({type(error.__cause__).__name__}).",
        ) from None


def _whole(block: _Block) -> list[tuple[Cell, CellResult]]:
    return list(_run_block(block))


def _run_block(block: _Block) -> Iterator[tuple[Cell, CellResult]]:
    setting = _setting(block.plan, block.cells[0])
    for cell, key in zip(block.cells, block.keys):
        result = _run_cell(block.plan, cell, setting)
        if block.store is not None:
            block.store.keep(key, cell, result)
        yield cell, result


def _setting(plan: StudyPlan, cell: Cell) -> _Shared:
    """70% of the rows for the mechanism, 20% to see how good the model is, and people out of the last 10%."""
    table = plan.tables[cell.table]
    training_labels(table, "run")
    train, rest = table.split(test_size=0.3, random_state=cell.seed)
    test, asking = rest.split(test_size=1 / 3, random_state=cell.seed)
    kind: Any = cell.model
    model = plan.model
    if model is None:
        model = train_paper_model(train, kind, plan.settings_for(cell.table), random_state=cell.seed)
    if hasattr(model, "predict"):
        model = Remembered(model, train.features)
    decision = Decision(model, train, "run")
    right = decision.decide(test.features) == decision.codes(test.target.astype(object).tolist(), "target")
    people = asking.features
    if plan.target == "favourable":
        good = decision.codes(table.schema.favourable, "favourable")
        people = people[~np.isin(decision.decide(people), good)]
    if people.empty:
        raise SchemaError(f"Nobody of the table '{cell.table}' is left to ask: the model refuses none of them.")
    return _Shared(train, model, people.iloc[: plan.people].reset_index(drop=True), float(right.mean()))


def _run_cell(plan: StudyPlan, cell: Cell, setting: _Shared) -> CellResult:
    made = plan.made(cell)
    runs = plan.runs if plan.named[cell.mechanism].draws_each else 1
    person = np.repeat(np.arange(len(setting.people)), runs)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # the rows of a study say themselves what is not promised
        answers = made.fit(setting.train, setting.model).explain(setting.people.iloc[person].reset_index(drop=True))
    seconds = time.perf_counter() - start
    measured = region_figures if _wide(answers.counterfactuals) else answer_figures
    figures = measured(answers, setting.model, table=setting.train)
    return CellResult.of(figures, person[figures.row], len(person), setting.accuracy, seconds)


def _wide(answers: pd.DataFrame) -> bool:
    """Whether any answer holds a range or a set."""
    return any(isinstance(c, (pd.Interval, frozenset)) for n in answers.columns for c in answers[n].astype(object))


def _audits(plan: StudyPlan, store: CellFolder | None) -> dict[tuple[str, float], float]:
    """The epsilon of each mechanism and claim, measured from outside."""
    found: dict[tuple[str, float], float] = {}
    known_as = plan.named
    for name in plan.mechanisms:
        for epsilon in plan.epsilons if known_as[name].takes("epsilon") else ():
            key = store.key("audit", name, float(epsilon), plan.audit_draws) if store is not None else ""
            known = store.audited(key) if store is not None else None
            if known is None:
                evidence = audit_mechanism(name, float(epsilon), draws=plan.audit_draws)
                known = {"audited": None if evidence is None else evidence.epsilon}
                if store is not None:
                    store.write(key, known)
            if known["audited"] is not None:
                found[name, float(epsilon)] = known["audited"]
    return found
