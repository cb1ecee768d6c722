"""The contract every protector keeps."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from countervail.core.errors import RefusedError, SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.guarantee import Guarantee
from countervail.core.protocols import Progress
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.rng import RandomState, generator
from countervail.core.schema import Schema
from countervail.core.table import Rows, Table, to_pandas
from countervail.explain.base import provenance


class ExplanationProtector(BaseEstimator, ABC):
    """Answers queries with counterfactuals that are safe to hand out. A subclass writes these three."""

    name: ClassVar[str]

    @abstractmethod
    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function)."""

    @abstractmethod
    def explain(self, rows: Rows, *, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping."""

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is promised; a function of the parameters alone, never of the data."""

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls()]

    @property
    def _owner(self) -> str:
        return type(self).__name__


@dataclass(frozen=True, slots=True)
class Classes:
    """The class of each row (-1: none), one region per class, remarks, and names of published sets."""

    of: NDArray[np.int32]
    regions: Regions
    remarks: tuple[str, ...] = ()
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class TableProtector(BaseEstimator, ABC):
    """Publishes a table whose rows share their quasi-identifiers with others.

    A subclass writes `guarantee`, `_learn` (classes of the fitted table) and `_assign` (classes of new rows). The base
    drops identifiers, leaves out what cannot be published, shuffles, attaches the promise, and counts it anew on the
    published labels: a release that breaks its promise never leaves.
    """

    name: ClassVar[str]
    keeps_rows: ClassVar[bool] = True  # whether each released row stands for one row of the table
    random_state: RandomState

    def fit(self, table: Table) -> Self:
        """Learn the classes of a table."""
        if not isinstance(table, Table):
            hint = "Build one with Table.from_frame(df, quasi_identifiers=[...]) or Table.read(path, schema=...)."
            raise bad_parameter(self._owner, "table", "a Table", type(table).__name__, hint)
        check_quasi(table, self._owner)
        given = begun(self)
        self._learn(table)
        self.table_, self.fitted_as_ = table, settled(self, given)
        return self

    def protect(self, rows: Rows) -> Release:
        """Release rows: the fitted table, or new rows sent to its classes.

        New rows leave in classes that keep the promise among themselves; the others are suppressed and counted.
        """
        check_unchanged(self)
        if rows is self.table_:
            return self._checked(self._publish(self.table_.frame, self._assign(None)))
        frame = new_rows(rows, self.table_, self._owner)
        return self._checked(self._kept(self._publish(frame, self._assign(frame))))

    @abstractmethod
    def guarantee(self) -> Guarantee:
        """What is promised; a function of the parameters alone, never of the data."""

    @abstractmethod
    def _learn(self, table: Table) -> None:
        """Learn the classes."""

    @abstractmethod
    def _assign(self, frame: pd.DataFrame | None) -> Classes:
        """The classes of new rows, or of the fitted table (None)."""

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls()]

    @property
    def _owner(self) -> str:
        return type(self).__name__

    def _publish(self, frame: pd.DataFrame, classes: Classes) -> Release:
        """Shuffled rows without identifiers; rows without a class stay behind."""
        schema = self.table_.schema
        order = generator(self.random_state).permutation(np.flatnonzero(classes.of >= 0))
        used, groups = _renumbered(classes.of[order], len(classes.regions))
        others = [c.name for c in schema if c.role not in ("identifier", "quasi")]
        caveats = list(classes.remarks)
        if self.random_state is not None:
            caveats.append("The rows were shuffled with a seed: whoever knows it can tell their original order.")
        shown = released(frame[others].iloc[order].reset_index(drop=True))
        return Release(
            classes.regions[used].pruned() if len(used) < len(classes.regions) else classes.regions,
            groups,
            shown,
            schema.beside(shown),
            self.guarantee(),
            self._provenance(),
            tuple(caveats),
            len(frame) - len(order),
            classes.words,
            self.table_,
        )

    def _kept(self, release: Release) -> Release:
        """Without the classes that break the promise among the new rows, over and over until all keep it.

        Cells of the fitted table that happen to share a name count one by one: whoever knows the code knows which of
        them a person goes to.
        """
        before = len(release)
        while len(release):
            promise, cells = release.guarantee, _Cells(release)
            stay = ~(promise.failing(cells)[release.groups] | promise.failing(release)[release.classes()])
            if stay.all():
                break
            used, groups = _renumbered(release.groups[stay], len(release.regions))
            others = released(release.others[stay].reset_index(drop=True))
            gone = release.suppressed + int((~stay).sum())
            regions = release.regions[used].pruned() if len(used) else release.regions[:0]
            schema = self.table_.schema.beside(others)
            release = replace(release, regions=regions, groups=groups, others=others, schema=schema, suppressed=gone)
        if not len(release):
            raise RefusedError(
                f"{self._owner} cannot release these rows: in none of the classes do enough of them meet. "
                f"Nothing has left. Protect more rows at once, or fit to them."
            )
        if len(release) < before:
            text = f"{before - len(release)} row(s) were suppressed: too few of the new rows share their class."
            release = replace(release, caveats=(*release.caveats, text))
        return release

    def _checked(self, release: Release) -> Release:
        """The release, if a count of its own on the published labels confirms the promise."""
        broken = release.guarantee.recount(release)
        if broken is not None:
            raise RefusedError(f"{self._owner} refused to release the table: {broken}. Nothing has left.")
        return release

    def _provenance(self) -> dict[str, Any]:
        made = provenance("protector", self, self.table_)
        if self.random_state is not None:
            made["parameters"]["random_state"] = "given"  # the seed itself would undo the shuffle
        return made


@dataclass(frozen=True, eq=False, slots=True)
class _Cells:
    """A release whose classes are the fitted table's cells, whatever they are called."""

    release: Release

    @property
    def schema(self) -> Schema:
        return self.release.schema

    def classes(self) -> NDArray[np.int64]:
        return self.release.groups

    def column(self, name: str) -> pd.Series:
        return self.release.column(name)


class Given:
    """An object that was given as a parameter: equal to itself only, and only while it reads as it did.

    It stays beside the parameter in the protector's state, so that a pickle of both keeps them one object.
    """

    def __init__(self, value: Any) -> None:
        self.value, self.words = value, re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Given) and other.value is self.value and other.words == self.words

    __hash__ = None  # type: ignore[assignment]


_EXACT = 2.0**53  # whole numbers below it are the same as floats
Frozen = tuple[tuple[str, Any], ...]
P = TypeVar("P")


def frozen(protector: Any) -> Frozen:
    """The parameters as they are now: plain values by what they say, all else as the very object that was given."""
    found = protector.get_params(deep=True)
    return tuple((name, _as_given(found[name])) for name in sorted(found))


def _as_given(value: Any) -> Any:
    if isinstance(value, (np.ndarray, pd.Series, pd.Index)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return ("mapping", *((repr(k), _as_given(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *(_as_given(v) for v in value))
    if isinstance(value, (set, frozenset)):
        return (type(value).__name__, *sorted(map(repr, value)))
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return repr(value)
    return Given(value)


def begun(protector: Any) -> Frozen:
    """The parameters that a fit starts with. One that fails leaves nothing to ask."""
    if hasattr(protector, "fitted_as_"):
        del protector.fitted_as_
    return frozen(protector)


def settled(protector: Any, given: Frozen) -> Frozen:
    """The parameters of a fit, if they are still those that it started with."""
    if frozen(protector) != given:
        raise SchemaError(f"The parameters of {type(protector).__name__} changed while it was fitted. Fit again.")
    return given


def check_unchanged(protector: Any) -> None:
    """Promises and records are read from the parameters, answers come from those of fit: they must be the same."""
    check_is_fitted(protector, "fitted_as_")
    if protector.fitted_as_ != frozen(protector):
        name = type(protector).__name__
        raise SchemaError(
            f"The parameters of {name} have changed since fit, which used the old ones. Nothing has left. Fit again."
        )


def held(protector: P) -> P:
    """The protector as it is now: a fit in another thread must not come between a promise and what it is about."""
    now = object.__new__(type(protector))
    now.__dict__ = dict(protector.__dict__)
    return now


def _renumbered(classes: NDArray[Any], n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The classes that occur, and each row's place among them."""
    held = np.bincount(classes, minlength=n) > 0
    return np.flatnonzero(held), (np.cumsum(held) - 1)[classes]


def new_rows(rows: Rows, table: Table, owner: str) -> pd.DataFrame:
    """New rows with the columns that are released; categories the table never had are left as they are."""
    frame = to_pandas(rows, owner, "rows")
    needed = [c.name for c in table.schema if c.role != "identifier"]
    if missing := [n for n in needed if n not in frame.columns]:
        raise SchemaError(f"The 'rows' given to {owner} lack these columns of the table: {missing}.")
    if extra := [str(n) for n in frame.columns if n not in table.schema]:
        raise SchemaError(f"The 'rows' given to {owner} have columns that the schema does not declare: {extra}.")
    if len(frame) == 0:
        raise bad_parameter(owner, "rows", "at least one row", "none")
    return frame[needed].assign(**_as_categories(frame, needed, table)).reset_index(drop=True)


def _as_categories(frame: pd.DataFrame, names: list[str], table: Table) -> dict[str, pd.Series]:
    """Columns with the categories (and their order) of the table, where all their values are among them."""
    out = {}
    for name in names:
        dtype = table.frame[name].dtype
        if isinstance(dtype, pd.CategoricalDtype) and frame[name].dtype != dtype:
            values = frame[name].astype(object)
            if (values.isin(list(dtype.categories)) | values.isna()).all():
                out[name] = values.astype(dtype)
    return out


def released(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose dtypes tell nothing but its own cells.

    Categories that no row of it holds are dropped, those without an order are put in order (they come in the order of
    the table's rows), and numbers that only a row that stayed behind made fractions are whole again.
    """
    return frame.assign(**{n: _of_these_cells(frame[n]) for n in frame.columns})


def _of_these_cells(values: pd.Series) -> pd.Series:
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        held = values.cat.remove_unused_categories()
        if dtype.ordered:
            return held
        names = held.cat.categories.tolist()
        return held.cat.reorder_categories(sorted(names, key=lambda v: (type(v).__name__, v)))
    if pd.api.types.is_float_dtype(dtype) and len(values):
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        if (np.abs(numbers) < _EXACT).all() and (numbers % 1 == 0).all():
            return pd.Series(numbers.astype(np.int64), index=values.index, name=values.name)
    return values.infer_objects() if pd.api.types.is_object_dtype(dtype) else values


def check_quasi(table: Table, owner: str) -> None:
    """A table that says what others may know about people."""
    if not table.schema.names("quasi"):
        raise SchemaError(
            f"{owner} protects quasi-identifiers, but the table declares none. "
            f"Pass quasi_identifiers=[...] to Table.from_frame, or give columns the role 'quasi' in the schema."
        )
