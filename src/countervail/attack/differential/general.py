"""The general path: release, encode, learn and predict, once with a person and once without."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.naive_bayes import BernoulliNB
from sklearn.utils.validation import has_fit_parameter

from countervail.attack.differential.encodings import Spec, encode_axis
from countervail.attack.differential.prior import Prior
from countervail.attack.shared.released import plain_axis
from countervail.core.arrays import Floats, number_rows
from countervail.core.canonical import canonical_value, code_values
from countervail.core.divergence import Distance
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.region import Axis, Regions
from countervail.core.release import Release
from countervail.core.schema import Schema
from countervail.core.table import Table

OWNER = "DifferentialInferenceTest"
COUNT = "count"  # in a table of counts: how many people a line stands for
_CELLS = 100_000
_DIMENSIONS = 64  # of a key, as numpy counts them
_ROUNDING = 1e-9


def release_of(anonymiser: Any, table: Table, seed: int | None) -> Release | pd.DataFrame:
    """Run a protector afresh, or call a function, which may give counts instead of rows."""
    if hasattr(anonymiser, "fit") and hasattr(anonymiser, "protect"):
        protector = unrecorded(anonymiser)
        if seed is not None and "random_state" in protector.get_params():
            protector.set_params(random_state=seed)
        made = protector.fit(table).protect(table)
    else:
        made = anonymiser(table)
    if not isinstance(made, Release) and not (isinstance(made, pd.DataFrame) and COUNT in made.columns):
        must = f"a table protector, or a function from a Table to a Release or to a DataFrame with a column '{COUNT}'"
        raise bad_parameter(OWNER, "anonymiser", must, f"something that gives {type(made).__name__}")
    return made


def unrecorded(protector: Any) -> Any:
    """A fresh copy that counts in no ledger: what a test releases to itself never leaves."""
    given = protector.get_params(deep=False)
    return type(protector)(**{**given, "ledger": None}) if "ledger" in given else clone(protector)


def most_likely(p: NDArray[np.float64]) -> NDArray[np.intp]:
    """The value predicted: the first of those that are equally likely but for rounding."""
    best: NDArray[np.intp] = (p >= p.max(axis=-1, keepdims=True) - _ROUNDING).argmax(axis=-1)
    return best


@dataclass(frozen=True, eq=False, slots=True)
class ReadRelease:
    """A release as a learner reads it: cells of the quasi-identifiers, and the sensitive value of each row.

    A row with a set of sensitive values is read once for each of them, with a share of its `weight` each. A table of
    counts has a weight for each line, and need not have all quasi-identifiers.
    """

    axes: tuple[tuple[Axis, NDArray[np.int64] | None], ...]
    secret: NDArray[np.int64]
    weight: Floats | None = None

    @classmethod
    def of(cls, release: Release, names: Sequence[str], sensitive: str, values: tuple[Any, ...]) -> ReadRelease:
        """Read a release; rows whose sensitive value the table never had are an error of the anonymiser."""
        held = {a.name: a for a in release.regions.axes}
        if absent := [n for n in (*names, sensitive) if n not in held and n not in release.others.columns]:
            raise SchemaError(f"The release lacks {absent}, which the test needs. Test another sensitive column.")
        at, weight = None, None
        if sensitive in held:
            at, secret, weight = secret_sets(held[sensitive], release.groups, values)
        else:
            secret = secret_codes(release.others[sensitive], values)
        axes: list[tuple[Axis, NDArray[np.int64] | None]] = []
        for name in names:
            if name in held:
                axes.append((held[name], release.groups if at is None else release.groups[at]))
            else:
                axes.append((plain_axis(release.others[name], name, release.schema), at))
        return cls(tuple(axes), secret, weight)

    @classmethod
    def of_counts(
        cls, counts: pd.DataFrame, names: Sequence[str], sensitive: str, values: tuple[Any, ...], schema: Schema
    ) -> ReadRelease:
        """Read a table of counts by some of the quasi-identifiers; lines of nobody (by noise: or less) say nothing."""
        there = [n for n in names if n in counts.columns]
        if sensitive not in counts.columns or not there:
            absent = f"'{sensitive}'" if there else "any of the quasi-identifiers"
            raise SchemaError(f"The table of counts lacks {absent}. Test another sensitive column, or count by more.")
        times = pd.to_numeric(counts[COUNT], errors="coerce").to_numpy(dtype=float, na_value=np.nan)
        if np.isnan(times).any() or not (times > 0).any():
            raise SchemaError(f"The column '{COUNT}' of a table of counts must hold numbers, some of them above 0.")
        kept = counts[times > 0]
        records: Any = kept[there].astype(object).to_dict("records")
        axes = Regions.from_cells(records, Schema(tuple(schema[n] for n in there))).axes
        return cls(tuple((a, None) for a in axes), secret_codes(kept[sensitive], values), times[times > 0])

    def _told(self, specs: Sequence[Spec]) -> list[Spec]:
        """How each column that is there becomes numbers."""
        by_name = {s.column.name: s for s in specs}
        return [by_name[axis.name] for axis, _ in self.axes]

    def features(self, person: pd.DataFrame, specs: Sequence[Spec]) -> tuple[Floats, Floats]:
        """Row x feature, and the person's own features."""
        blocks, own = [], []
        for (axis, groups), spec in zip(self.axes, self._told(specs)):
            cells, mine = encode_axis(axis, person[axis.name], spec)
            blocks.append(cells if groups is None else cells[groups])
            own.append(mine)
        return np.concatenate(blocks, axis=1), np.concatenate(own)

    def counted(self, person: pd.DataFrame, specs: Sequence[Spec]) -> tuple[Floats, NDArray[np.int64], Floats, Floats]:
        """Rows that are equal in features and sensitive value once, with their number; and the person's features."""
        blocks, keys, own = [], [self.secret], []
        for (axis, groups), spec in zip(self.axes, self._told(specs)):
            cells, mine = encode_axis(axis, person[axis.name], spec)
            distinct, which = _distinct(cells)
            blocks.append(distinct)
            keys.append(which if groups is None else which[groups])
            own.append(mine)
        shape = (int(self.secret.max()) + 1, *map(len, blocks))
        if len(shape) <= _DIMENSIONS and np.prod(shape, dtype=float) <= _CELLS:  # few kinds of rows: no sorting
            times = np.bincount(np.ravel_multi_index(keys, shape), self.weight, minlength=int(np.prod(shape)))
            kinds = np.flatnonzero(times)
            secret, *places = np.unravel_index(kinds, shape)
            times = times[kinds]
        else:
            _, first, kind = np.unique(number_rows(keys), return_index=True, return_inverse=True)
            times = np.bincount(kind, self.weight)
            secret, *places = (key[first] for key in keys)
        features = np.concatenate([block[place] for block, place in zip(blocks, places)], axis=1)
        return features, secret, times.astype(float), np.concatenate(own)


def _distinct(cells: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """The different rows, and which of them each row is."""
    if cells.shape[1] == 1:
        values, which = np.unique(cells[:, 0], return_inverse=True)
        return values[:, None], which
    rows, which = np.unique(cells, axis=0, return_inverse=True)
    return rows, which.ravel()


def read_published(
    made: Release | pd.DataFrame, names: Sequence[str], sensitive: str, values: tuple[Any, ...], schema: Schema
) -> ReadRelease:
    """A release, or a table of counts, as a learner reads it."""
    if isinstance(made, pd.DataFrame):
        return ReadRelease.of_counts(made, names, sensitive, values, schema)
    return ReadRelease.of(made, names, sensitive, values)


def secret_codes(column: pd.Series, values: tuple[Any, ...]) -> NDArray[np.int64]:
    """Each row's place among the sensitive values."""
    codes, kinds = code_values(column)
    place = {canonical_value(v): i for i, v in enumerate(values)}
    found = np.array([place.get(v, -1) for v in kinds], dtype=np.int64)
    if (found < 0).any():
        raise SchemaError(f"The release holds values of '{column.name}' that the table does not have.")
    return found[codes]


def secret_sets(
    axis: Axis, groups: NDArray[np.int64], values: tuple[Any, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Row, place of a sensitive value that it may have, and the share of the row that this value gets."""
    could = axis.covers(pd.Series(values, dtype=object))[groups]
    if not could.any(axis=1).all():
        raise SchemaError(f"The release holds values of '{axis.name}' that the table does not have.")
    rows, secret = (places.astype(np.int64) for places in np.nonzero(could))
    return rows, secret, 1 / could.sum(axis=1)[rows]


def trained(
    learner: Any, features: Floats, secret: NDArray[np.int64], seed: int | None, weight: Floats | None = None
) -> Any:
    """A fresh copy of the learner, fitted."""
    if weight is not None and not has_fit_parameter(learner, "sample_weight"):
        must = "a classifier whose fit takes sample_weight: this release has counts, or sets of sensitive values"
        raise bad_parameter(OWNER, "learner", must, type(learner).__name__)
    model = clone(learner)
    if seed is not None and "random_state" in model.get_params():
        model.set_params(random_state=seed)
    with warnings.catch_warnings():
        # Said once per person, and meant for somebody who chose the classes: they are the table's.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        return model.fit(features, secret) if weight is None else model.fit(features, secret, sample_weight=weight)


def predicted(model: Any, own: Floats, n: int) -> Floats:
    """The model's distribution over all n sensitive values; those it never saw have none."""
    out = np.zeros(n)
    out[np.asarray(model.classes_, dtype=np.intp)] = model.predict_proba(own[None, :])[0]
    return out


@dataclass(frozen=True, eq=False, slots=True)
class Job:
    """Everything that testing one person takes."""

    table: Table
    anonymiser: Any
    learner: Any
    sensitive: str
    values: tuple[Any, ...]
    specs: tuple[Spec, ...]
    distance: Distance
    random: bool  # whether anonymiser or learner draw lots
    whole: ReadRelease | None  # the release of the whole table, where it is always the same
    model: Any  # and what is learnt from it, where that does not depend on the person
    prior: Prior | None = None

    def test(self, row: int, seeds: NDArray[np.int64]) -> Floats:
        """Distance, changed prediction and control distance (figure x repetition) of one person."""
        others = np.delete(np.arange(len(self.table)), row)
        person, rest = self.table.frame.iloc[[row]], self.table.take(others)
        out = np.full((3, len(seeds)), np.nan)
        for r, line in enumerate(seeds):
            first, second, third = (int(s) if self.random else None for s in line)
            whole = self.whole or self._published(self.table, first)
            with_person = self._infer(row, person, whole, first, self.model)
            without = self._infer(row, person, self._published(rest, second), second, None)
            out[0, r] = self.distance(with_person[None, :], without[None, :])[0]
            out[1, r] = float(most_likely(with_person) != most_likely(without))
            if self.random:
                again = self._infer(row, person, self.whole or self._published(self.table, third), third, None)
                out[2, r] = self.distance(with_person[None, :], again[None, :])[0]
        return out

    def compare(self, row: int, whole: ReadRelease, without: ReadRelease) -> Floats:
        """The same of two given releases."""
        person = self.table.frame.iloc[[row]]
        a, b = (self._infer(row, person, p, None, None) for p in (whole, without))
        return np.array(
            [[self.distance(a[None, :], b[None, :])[0]], [float(most_likely(a) != most_likely(b))], [np.nan]]
        )

    def _published(self, table: Table, seed: int | None) -> ReadRelease:
        names = [s.column.name for s in self.specs]
        made = release_of(self.anonymiser, table, seed)
        return read_published(made, names, self.sensitive, self.values, table.schema)

    def _infer(self, row: int, person: pd.DataFrame, release: ReadRelease, seed: int | None, model: Any) -> Floats:
        """What a learner says of the person, with what was known before."""
        said = self._learnt(person, release, seed, model)
        return said if self.prior is None else self.prior.after(said[None, :], np.array([row]))[0]

    def _learnt(self, person: pd.DataFrame, release: ReadRelease, seed: int | None, model: Any) -> Floats:
        if model is None and type(self.learner) is BernoulliNB:  # it only counts: equal rows may go in once
            features, secret, weight, own = release.counted(person, self.specs)
            return predicted(trained(self.learner, features, secret, seed, weight), own, len(self.values))
        features, own = release.features(person, self.specs)
        if model is None:
            model = trained(self.learner, features, release.secret, seed, release.weight)
        return predicted(model, own, len(self.values))


def run_batch(job: Job, rows: NDArray[np.int64], seeds: NDArray[np.int64]) -> Floats:
    """Several people, one after the other (person x figure x repetition)."""
    return np.stack([job.test(int(i), s) for i, s in zip(rows, seeds)])


def always_the_same(anonymiser: Any, table: Table) -> Release | pd.DataFrame | None:
    """The release of the table, if two runs give the same rows in whatever order; None if they differ."""
    a, b = (release_of(anonymiser, table, seed) for seed in (1, 2))
    frames = [(r if isinstance(r, pd.DataFrame) else r.to_text_frame()).astype(str) for r in (a, b)]
    if list(frames[0].columns) != list(frames[1].columns) or len(a) != len(b):
        return None
    hashes = [np.sort(pd.util.hash_pandas_object(f, index=False).to_numpy()) for f in frames]
    return a if bool((hashes[0] == hashes[1]).all()) else None
