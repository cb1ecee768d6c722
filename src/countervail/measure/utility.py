"""What a released table is still good for: models trained on it, counts asked of it, its columns one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from countervail.attack.differential.encodings import Spec, encode_axis, make_specs
from countervail.core.arrays import Ints
from countervail.core.canonical import code_values
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.region import Axis, Range, Values
from countervail.core.release import Release
from countervail.core.stats import Estimate, clopper_pearson, plain_json
from countervail.core.table import Table
from countervail.model.train import training_labels

Encoding = Literal["midpoint", "bounds", "tf"]
ENCODINGS: Final = {"midpoint": ("scaling", "hot"), "bounds": ("bounds", "hot"), "tf": ("tf", "tf")}
_BINS: Final = 10
_LABELS: Final = 50


@dataclass(frozen=True, slots=True)
class ModelUtility:
    """Accuracy on unseen rows of a model that learnt from the release, and of the same one that learnt from the table.

    `majority` is the accuracy of always guessing the most frequent label of the release.
    """

    encoding: str
    released: Estimate
    original: Estimate
    majority: float

    @property
    def lost(self) -> float:
        """How much accuracy the release costs; below 0 where it happens to help."""
        return self.original.value - self.released.value

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON data."""
        return plain_json(self)


def model_utility(
    release: Release,
    test: Table,
    *,
    encoding: Encoding = "midpoint",
    learner: Any = None,
    table: Table | None = None,
    before: Estimate | None = None,
    random_state: int = 0,
) -> ModelUtility:
    """Train on released cells, test on plain rows that were not released; beside it, the same on the original rows.

    Parameters
    ----------
    release : Release
        With a target among its plain columns.
    test : Table
        Rows of the same schema that took no part in the release.
    encoding : {"midpoint", "bounds", "tf"}
        Cells as numbers: the middle of a range, or both its ends (both: sets as one column per value, of very many the
        50 most frequent); or "could this
        row be like the person who is asked about?", yes or no per column, with naive Bayes on the answers.
    learner : scikit-learn classifier, optional
        Default: gradient boosting; not used with "tf".
    table : Table, optional
        What was released; needed after reloading.
    before : Estimate, optional
        The accuracy on the original rows, if it is known already: training takes most of the time.
    random_state : int
        Seed of the default learner.

    Examples
    --------
    >>> import countervail as cv
    >>> train, test = cv.load("german_credit").split(test_size=0.4, random_state=0)
    >>> release = cv.Mondrian(k=5).fit(train).protect(train)
    >>> found = cv.measure.model_utility(release, test, encoding="tf")
    >>> found.released.value > 0.6
    True
    """
    if encoding not in ENCODINGS:
        raise bad_parameter("model_utility", "encoding", f"one of {tuple(ENCODINGS)}", encoding)
    original = release.original_table(table)
    target = original.schema.target
    if target is None or target not in release.others.columns:
        raise SchemaError("The release has no target column. Declare one in the schema of the table.")
    if len(test) == 0 or test.schema.names() != original.schema.names():
        raise bad_parameter("model_utility", "test", "rows of the released table's schema", "others")
    known, truth = (training_labels(rows, "model_utility").to_numpy() for rows in (original, test))
    labels = release.others[target].astype(object).to_numpy()
    score = _tf_scores if encoding == "tf" else _learner_scores
    released = score(_released_axes(release, original), labels, original, test, encoding, learner, random_state)
    if before is None:
        guess = score(_plain_axes(original), known, original, test, encoding, learner, random_state)
        before = _share(guess, truth)
    common = pd.Series(labels).mode().iloc[0]
    return ModelUtility(encoding, _share(released, truth), before, float((truth == common).mean()))


@dataclass(frozen=True, eq=False, slots=True)
class _Units:
    """One feature of the training rows: what it can be, and which of these each row is."""

    axis: Axis
    at: Ints


def _share(guess: Any, truth: Any) -> Estimate:
    return clopper_pearson(int((np.asarray(guess, dtype=object) == truth).sum()), len(truth))


def _plain(values: pd.Series, *, numeric: bool) -> _Units:
    """A column of plain values as points."""
    codes, known = code_values(values)
    name = str(values.name)
    if numeric:
        numbers = np.array([np.nan if v is None else float(v) for v in known])
        return _Units(Range(name, numbers, numbers, False, np.isnan(numbers)), codes)
    return _Units(Values.of(name, known, np.eye(len(known), dtype=bool)), codes)


def _plain_axes(table: Table) -> list[_Units]:
    return [_plain(table.frame[n], numeric=table.schema[n].numeric) for n in table.schema.features]


def _released_axes(release: Release, original: Table) -> list[_Units]:
    cells = {a.name: a for a in release.regions.axes}
    out = []
    for name in original.schema.features:
        if name in cells:
            out.append(_Units(cells[name], np.asarray(release.groups, np.int64)))
        else:
            out.append(_plain(release.others[name], numeric=original.schema[name].numeric))
    return out


def _learner_scores(
    features: list[_Units], labels: Any, table: Table, test: Table, encoding: str, learner: Any, seed: int
) -> Any:
    """Encode cells and test rows alike, fit, predict."""
    from sklearn.base import clone
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    wide = table.with_roles(quasi=table.schema.features)
    specs = {s.column.name: _bounded(s, table) for s in make_specs(wide, ENCODINGS[encoding], _BINS)}
    train, asked = [], []
    for units in features:
        name = units.axis.name
        rows = _plain(test.frame[name], numeric=table.schema[name].numeric)
        person = test.frame[name].iloc[:1]
        train.append(encode_axis(units.axis, person, specs[name])[0][units.at])
        asked.append(encode_axis(rows.axis, person, specs[name])[0][rows.at])
    model = HistGradientBoostingClassifier(random_state=seed) if learner is None else clone(learner)
    codes, kinds = pd.factorize(labels, sort=True)
    with threadpool_limits(1):  # threads that wait for one another take minutes where one takes seconds
        found = model.fit(np.hstack(train), codes).predict(np.hstack(asked))
    return np.asarray(kinds, dtype=object)[found]


def _bounded(spec: Spec, table: Table) -> Spec:
    """Of very many labels only the most frequent get a column: thousands of them take minutes and help no learner."""
    if spec.how != "hot" or len(spec.values) <= _LABELS:
        return spec
    sizes = table.frame[spec.column.name].value_counts()
    most = sorted(spec.values, key=lambda v: -int(sizes.get(v, 0)))[:_LABELS]
    return replace(spec, values=tuple(most))


def _tf_scores(
    features: list[_Units], labels: Any, table: Table, test: Table, encoding: str, learner: Any, seed: int
) -> Any:
    """Naive Bayes for each person on whether a row could be like her: only values that are asked about are counted."""
    codes, kinds = pd.factorize(labels, sort=True)
    n_classes = len(kinds)
    rows_of = np.bincount(codes, minlength=n_classes)
    score = np.tile(np.log(rows_of / rows_of.sum()), (len(test), 1))
    for units in features:
        name = units.axis.name
        axis, at, values = units.axis, units.at, test.frame[name]
        if table.schema[name].numeric and table.schema[name].role != "quasi":
            axis, at, values = _binned(axis, at, values)
        n_units = len(axis.low) if isinstance(axis, Range) else len(axis.bits)
        held = np.bincount(at * n_classes + codes, minlength=n_units * n_classes).reshape(n_units, n_classes)
        which, distinct = pd.factorize(values, use_na_sentinel=False)
        could = axis.covers(pd.Series(distinct)).T.astype(float) @ held
        score += np.log((could + 1) / (rows_of + 2))[which]
    return np.asarray(kinds, dtype=object)[score.argmax(axis=1)]


def _binned(axis: Axis, at: Ints, values: pd.Series) -> tuple[Axis, Ints, pd.Series]:
    """Plain numbers in tenths: two people hardly ever agree in all digits."""
    assert isinstance(axis, Range)
    numbers = axis.low[at]
    edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, _BINS + 1)[1:-1])) if len(at) else np.zeros(0)
    own = np.where(np.isnan(numbers), -1, np.searchsorted(edges, numbers, side="right"))
    other = values.to_numpy(dtype=float, na_value=np.nan)
    asked = np.where(np.isnan(other), -1, np.searchsorted(edges, other, side="right"))
    known = list(range(-1, len(edges) + 1))
    return Values.of(axis.name, known, np.eye(len(known), dtype=bool)), (own + 1).astype(np.int64), pd.Series(asked)
