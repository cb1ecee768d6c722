"""Inversion: rerun the search from everybody in a region; whoever would have led elsewhere is out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, OracleAttack, answers_of
from countervail.attack.result import AttackResult
from countervail.attack.shared.persons import owners, thinned
from countervail.attack.shared.planted import CentredOracle
from countervail.core.arrays import Bools, Floats, Ints
from countervail.core.cells import cell_text
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.protocols import Invertible
from countervail.core.stats import Estimate, clopper_pearson
from countervail.core.table import Table

STAGES = ("rerun", "model", "bisectors")


@dataclass(frozen=True, eq=False, slots=True)
class ReleasedRecords:
    """The different things released: their cells, and which record answered each query."""

    cells: pd.DataFrame
    explanations: Explanations
    rows: Ints
    of: Ints  # the record behind each explanation found
    answered: Ints  # the record that answered each query; -1: none, or one that was not the nearest


class Inversion(OracleAttack):
    """What is left of k for someone who knows the code: nominal and effective set sizes.

    Parameters
    ----------
    runs : int
        Reruns per suspect with different chances, for searches that draw lots; 0 reruns once as it is.
    n_targets : int, optional
        How many queries are asked; all rows of the control table by default.
    random_state : int
        Which ones.

    Notes
    -----
    *Threat model*: a register of the quasi-identifiers of everybody in the table, the model, our code with its
    settings, and many questions. Three parts: (1) each person of a region is put in the counterfactual's place and the
    search is rerun; (2) whoever the model refuses with the released private values is out; (3) over many questions,
    whoever would have been nearer, or farther, than what was answered is out. Where answers move only some features
    towards a neighbour, the attack is told the whole neighbour behind each.
    """

    name: ClassVar[str] = "inversion"
    criterion: ClassVar[Criterion] = "singling out"
    reruns: ClassVar[bool] = True

    def __init__(self, *, runs: int = 0, n_targets: int | None = None, random_state: int = 0) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.runs = runs

    def figures(self, oracle: Any, table: Table, control: Table) -> AttackResult:
        """Ask as the people of `control`; `detail` holds the shares left alone and below the nominal k."""
        if not isinstance(oracle, Invertible):
            must = "a protector that offers its search (region_of, accepts, distance)"
            raise bad_parameter("Inversion", "oracle", must, type(oracle).__name__)
        if hasattr(type(oracle), "table_") and not hasattr(oracle, "table_"):
            raise SchemaError(
                "Inversion reruns the search, for which a protector must know who is in which group; one that was "
                "saved holds no rows. Fit it to the table, and attack that."
            )
        queries = self._drawn(control)[control.schema.features].reset_index(drop=True)
        left = self.left(oracle, queries, table)
        cases = {stage: sizes[left["first"]] for stage, sizes in left.items() if stage != "first"}
        return self._left(
            left["bisectors"], cases["bisectors"], table, self._detail(cases, getattr(oracle, "k", 2), table)
        )

    def planted(self, table: Table, control: Table) -> Invertible:
        """An oracle whose regions of three people are drawn around the one whom it speaks of."""
        return CentredOracle(table)

    def left(self, oracle: Invertible, queries: pd.DataFrame, table: Table) -> dict[str, Any]:
        """People left of each explanation: nominally, and after each part in turn; with `runs`, the posterior too.

        `first` is where each different thing was released first: equal answers are one case.
        """
        records = _records(answers_of(oracle, queries, behind=True), table)
        register = table.select("quasi")
        if not len(records.cells):
            nothing = np.zeros(0, dtype=np.int64)
            return {"nominal": nothing, **dict.fromkeys(STAGES, nothing), "first": nothing}
        inside = records.explanations.regions.covers(register)[records.rows]
        record, row = np.nonzero(inside)
        suspects = _suspects(records.cells.iloc[record], register.iloc[row], table)
        whose = owners(table)
        person = row if whose is None else whose[row]
        regions = [records.explanations.regions[int(r)] for r in records.rows]
        alive = np.ones(len(record), dtype=bool)

        def people(left: Bools) -> Ints:
            pairs = np.unique(record[left] * len(register) + person[left])
            return np.bincount(pairs // max(len(register), 1), minlength=len(regions))

        out: dict[str, Any] = {"nominal": people(alive)}
        if self.runs:
            out |= self._posterior(oracle, suspects, record, regions)
        shown = [str(regions[r]) for r in record]
        alive &= np.array([text in could for text, could in zip(shown, oracle.region_of(suspects))])
        out["rerun"] = people(alive)
        alive &= oracle.accepts(suspects)
        out["model"] = people(alive)
        away = oracle.distance(queries, suspects, [regions[r] for r in record])
        alive = _bisect(away, record, alive, records.answered, getattr(oracle, "looks_at", 1))
        out["bisectors"] = people(alive)
        first = np.unique(records.of, return_index=True)[1]
        return {**{stage: figures[records.of] for stage, figures in out.items()}, "first": first}

    def _posterior(
        self, oracle: Invertible, suspects: pd.DataFrame, record: Ints, regions: list[Any]
    ) -> dict[str, Any]:
        """How sure the adversary can be of the likeliest suspect, from repeated runs with unknown chances."""
        hits = np.zeros(len(record))
        for salt in range(1, self.runs + 1):
            hits += [str(regions[r]) in could for r, could in zip(record, oracle.region_of(suspects, salt))]
        likely = hits + 0.5 / self.runs  # nobody is excluded by having been unlucky in a few runs
        largest, perplexity = np.zeros(len(regions)), np.zeros(len(regions))
        for r in range(len(regions)):
            p = likely[record == r] / likely[record == r].sum()
            largest[r], perplexity[r] = p.max(), np.exp(-(p * np.log(p)).sum())
        return {"largest": largest, "perplexity": perplexity}

    def _detail(self, left: dict[str, Any], k: int, table: Table) -> dict[str, Estimate]:
        out = {}
        for stage in ("nominal", *STAGES):
            sizes = thinned(left[stage], table)
            out[f"below k after {stage}"] = clopper_pearson(int((sizes < k).sum()), len(sizes))
            out[f"alone after {stage}"] = clopper_pearson(int((sizes == 1).sum()), len(sizes))
        return out


def _records(e: Explanations, table: Table) -> ReleasedRecords:
    """The distinct answers; one whose note says that a nearer one was passed over tells nothing about distance, nor
    does a query's second answer."""
    assert e.query is not None
    found, asked = np.flatnonzero(e.found), e.query
    seen: dict[str, int] = {}
    first, of, answered = [], [], np.full(int(asked.max(initial=-1)) + 1, -1, dtype=np.int64)
    shown = e.counterfactuals.loc[e.found].astype(object)
    for place, (row, cells) in enumerate(zip(found, shown.itertuples(index=False))):
        key = "|".join(map(cell_text, cells))
        if key not in seen:
            seen[key] = len(seen)
            first.append(place)
        of.append(seen[key])
        passed_over = e.notes is not None and "Nearer" in e.notes[row]
        if not passed_over and (row == 0 or asked[row - 1] != asked[row]):
            answered[asked[row]] = seen[key]
    rows, owners = np.array(first, dtype=np.int64), np.array(of, dtype=np.int64)
    return ReleasedRecords(shown.iloc[first].reset_index(drop=True), e, rows, owners, answered)


def _suspects(cells: pd.DataFrame, people: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Each suspect's own quasi-identifiers with the released private values."""
    names = table.schema.features
    columns = {n: (people if n in people.columns else cells)[n].to_numpy(dtype=object, copy=True) for n in names}
    for values in columns.values():
        values[pd.isna(values)] = None  # a number that is missing has no other spelling that can be converted
    return pd.DataFrame({n: pd.Series(columns[n]).astype(table.frame[n].dtype) for n in names})


def _bisect(away: Floats, record: Ints, alive: Bools, answered: Ints, within: int = 1) -> Bools:
    """Drop suspects that the answers contradict, until nothing changes.

    A suspect of record A is out if A would have beaten the answer given, or if some other record surely beats A where A
    was the answer, whoever of their remaining suspects owns them. Where an answer is one of the nearest `within`, that
    many others must beat A, and beating the answer proves nothing.
    """
    starts = np.flatnonzero(np.r_[True, record[1:] != record[:-1]])
    asked = np.flatnonzero(answered >= 0)
    given = answered[asked]
    away = away[asked]
    while True:
        least = np.minimum.reduceat(np.where(alive, away, np.inf), starts, axis=1)
        most = np.maximum.reduceat(np.where(alive, away, -np.inf), starts, axis=1)
        most[np.isneginf(most)] = np.inf
        own = np.arange(len(given)), given
        best_given = least[own]
        most_others = most.copy()
        most_others[own] = np.inf
        rivals = np.sort(most_others, axis=1)
        sure_rival = rivals[:, within - 1] if within <= rivals.shape[1] else np.full(len(rivals), np.inf)
        mine = record[None, :] == given[:, None]
        too_near = ~mine & (away < best_given[:, None] - 1e-9) & (within == 1)
        too_far = mine & (away > sure_rival[:, None] + 1e-9)
        gone = alive & (too_near | too_far).any(axis=0)
        if not gone.any():
            return alive
        alive = alive & ~gone
