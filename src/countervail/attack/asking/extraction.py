"""Extraction: counterfactuals lie across the border of a decision, and so draw the border."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from countervail.attack.base import Criterion, OracleAttack, answers_of
from countervail.attack.result import AttackResult
from countervail.attack.shared.persons import one_row_each
from countervail.attack.shared.planted import StripedOracle
from countervail.core.arrays import Floats, Matrix
from countervail.core.cells import cell_text, is_missing
from countervail.core.encode import Encoder
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.protocols import Explains
from countervail.core.rng import generator
from countervail.core.stats import clopper_pearson
from countervail.core.table import Table

_SURE = 0.75  # of a counterfactual that lies well on its side, and counts little from then on
_ROUNDS = 3  # of fitting, where counterfactuals count only while they are on the wrong side
_TREES = 100
_COMPARED = 2000  # rows at most that copies are compared on


class Extraction(OracleAttack):
    """Train a copy of the model on answers, and count how often it decides as the model does.

    Parameters
    ----------
    version : {"pairs", "dual", "one-sided"}
        Train on rows and their counterfactuals; also ask for counterfactuals of the counterfactuals; or take a
        counterfactual only to be on its side of the border, not to be typical of it.
    n_targets : int, optional
        How many rows are asked about; the other controls are what copies are compared on.
    random_state : int
        Which ones.

    Notes
    -----
    *Threat model*: someone who wants the model, not the people. `members` is the fidelity of a copy that was trained on
    counterfactuals, `controls` that of one that saw the decisions of as many queries and nothing else, `baseline` that
    of always naming the most frequent decision. None of the protections here protects the model: a counterfactual
    that is true of the model says where its border is, however private it is about people.

    References
    ----------
    Aïvodji, Bolot, Gambs: Model extraction from counterfactual explanations (2020); Wang, Qian, Miao: DualCF, efficient
    model extraction attack from counterfactual explanations (2022); Dissanayake, Dutta: Model reconstruction using
    counterfactual explanations, a perspective from polytope theory (2024). The last two are followed in idea, with a
    forest as the copy.

    Examples
    --------
    >>> import countervail as cv
    >>> train, test = cv.load("german_credit").split(test_size=0.5, random_state=0)
    >>> attack = cv.attack.Extraction()
    >>> found = attack.run(attack.planted(train, test), train, test)
    >>> found.members.value > found.controls.value + 0.1
    True
    """

    name: ClassVar[str] = "extraction"
    criterion: ClassVar[Criterion] = "model"

    def __init__(
        self,
        version: Literal["pairs", "dual", "one-sided"] = "pairs",
        *,
        n_targets: int | None = 50,
        random_state: int = 0,
    ) -> None:
        super().__init__(n_targets=n_targets, random_state=random_state)
        self.version = version

    @property
    def label(self) -> str:
        """The attack's name in results."""
        return f"{self.name} ({self.version})"

    def planted(self, table: Table, control: Table) -> Explains:
        """An oracle that decides by many stripes and shows their edges."""
        if not any(table.schema[n].numeric for n in table.schema.features):
            raise SchemaError("What Extraction plants needs a numeric column. Declare one, or leave this attack out.")
        return StripedOracle(table)

    def figures(self, oracle: Explains, table: Table, control: Table) -> AttackResult:
        """Fidelity with counterfactuals, and without."""
        if self.version not in ("pairs", "dual", "one-sided"):
            raise bad_parameter("Extraction", "version", "'pairs', 'dual' or 'one-sided'", self.version)
        control = one_row_each(control, self.random_state)
        if len(control) < 4:
            raise bad_parameter("Extraction", "control", "at least four people", f"{len(control)} people")
        order = generator(self.random_state).permutation(len(control))
        n = min(self.n_targets or len(order), len(order) // 2)
        if n < 1:
            raise bad_parameter("Extraction", "n_targets", "None or a whole number of at least 1", self.n_targets)
        rows = control.features.iloc[order[: 2 * n + _COMPARED]].reset_index(drop=True)
        encoder = Encoder.fit(control)
        told = answers_of(oracle, rows.iloc[:n])
        labels, x = _decisions(told, n), encoder.encode(rows)
        points, sides = _beyond(told, encoder)
        asked = n
        if self.version == "dual" and len(points):
            back = answers_of(oracle, encoder.decode(points))
            further, others = _beyond(back, encoder)
            points, sides = np.vstack([points, further]), np.concatenate([sides, others])
            asked = min(2 * n, len(rows) - 1)
        rest = slice(max(asked, min(2 * n, len(rows) // 2)), None)
        said = _decisions(answers_of(oracle, rows.iloc[n:]), len(rows) - n)
        every = np.concatenate([labels, said])
        truth = every[rest]
        copies = {
            "with counterfactuals": self._copy(x[:n], every[:n], points, sides, x[rest]),
            "labels": self._copy(x[:asked], every[:asked], points[:0], sides[:0], x[rest]),
            "labels of twice as many": self._copy(x[: rest.start], every[: rest.start], points[:0], sides[:0], x[rest]),
        }
        right = {name: int((guess == truth).sum()) for name, guess in copies.items()}
        frequent = pd.Series(every[:n]).mode().iloc[0]
        return AttackResult(
            self.label,
            clopper_pearson(right["with counterfactuals"], len(truth)),
            clopper_pearson(right["labels"], len(truth)),
            clopper_pearson(int((truth == frequent).sum()), len(truth)),
            detail={"labels of twice as many queries": clopper_pearson(right["labels of twice as many"], len(truth))},
            both_failed=int(((copies["with counterfactuals"] != truth) & (copies["labels"] != truth)).sum()),
        )

    def _copy(self, x: Matrix, y: Any, points: Matrix, sides: Any, asked: Matrix) -> Any:
        """What a forest that was trained on these says of rows."""
        from sklearn.ensemble import RandomForestClassifier

        rows, labels = np.vstack([x, points]), np.concatenate([y, sides])
        usual = _as_frequent(y, labels)
        weight = usual
        for _ in range(_ROUNDS if self.version == "one-sided" and len(points) else 1):
            forest = RandomForestClassifier(_TREES, max_features=None, random_state=self.random_state)
            forest.fit(np.nan_to_num(rows, nan=-1.0), labels, sample_weight=weight)
            sure: Floats = (
                forest.predict_proba(np.nan_to_num(points, nan=-1.0))[
                    np.arange(len(points)), np.searchsorted(forest.classes_, sides)
                ]
                if len(points)
                else np.zeros(0)
            )
            weight = usual * np.concatenate([np.ones(len(x)), np.where(sure > _SURE, 1 - _SURE, 1.0)])
        return forest.predict(np.nan_to_num(asked, nan=-1.0))


def _as_frequent(y: Any, labels: Any) -> Floats:
    """Weights with which decisions are as frequent as among the rows asked about, whatever was added to them."""
    kinds, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    asked = np.array([(y == kind).sum() for kind in kinds]) + 1.0
    weights: Floats = (asked / asked.sum() * len(labels) / counts)[place]
    return weights


def _decisions(e: Explanations, n: int) -> Any:
    """The decision about each row that was asked about, as text."""
    assert e.query is not None
    out = np.full(n, "", dtype=object)
    out[e.query] = [cell_text(v) for v in e.before]
    return out.astype(str)


def _beyond(e: Explanations, encoder: Encoder) -> tuple[Matrix, Any]:
    """The counterfactuals as rows of numbers, one value for each range or set, and the decisions they lead to."""
    shown = e.counterfactuals.loc[e.found, encoder.names].astype(object)
    points = np.empty((len(shown), len(encoder.names)))
    for j, coding in enumerate(encoder.codings):
        values = [_one_of(c) for c in shown[coding.name]]
        if coding.numeric:
            points[:, j] = [np.nan if v is None else float(v) for v in values]
        else:
            points[:, j] = coding.encode(pd.Series(values, dtype=object))
    sides = np.array([cell_text(v) for v in e.after[e.found]], dtype=str)
    return points, sides


def _one_of(cell: Any) -> Any:
    if isinstance(cell, pd.Interval):
        return (cell.left + cell.right) / 2
    if isinstance(cell, frozenset):
        return _one_of(min(cell, key=cell_text))
    return None if is_missing(cell) else cell
