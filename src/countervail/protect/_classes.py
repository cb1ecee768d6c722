"""Tables published as classes: rows that share their quasi-identifiers with others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import Ints
from countervail.core.errors import RefusedError, SchemaError, bad_parameter
from countervail.core.region import Regions
from countervail.core.release import Release, provenance, without_traces
from countervail.core.rng import RandomState, generator
from countervail.core.schema import Schema
from countervail.core.table import Rows, Table, to_pandas
from countervail.protect._fitted import begin_fit, finish_fit, verify_unchanged
from countervail.protect.base import TableProtector


@dataclass(frozen=True, slots=True)
class Classes:
    """The class of each row (-1: none), one region per class, remarks, and names of published sets."""

    of: NDArray[np.int32]
    regions: Regions
    remarks: tuple[str, ...] = ()
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class ClassProtector(TableProtector):
    """Publishes a table whose rows share their quasi-identifiers with others.

    A subclass writes `guarantee`, `_learn` (classes of the fitted table) and `_assign` (classes of new rows). The base
    drops identifiers, leaves out what cannot be published, shuffles, attaches the promise, and counts it anew on the
    published labels: a release that breaks its promise never leaves.
    """

    random_state: RandomState

    def fit(self, table: Table) -> Self:
        """Learn the classes of a table."""
        if not isinstance(table, Table):
            hint = "Build one with Table.from_frame(df, quasi_identifiers=[...]) or Table.read(path, schema=...)."
            raise bad_parameter(self._owner, "table", "a Table", type(table).__name__, hint)
        table.schema.require_quasi(self._owner)
        given = begin_fit(self)
        self._learn(table)
        self.table_, self.fitted_as_ = table, finish_fit(self, given)
        return self

    def protect(self, rows: Rows) -> Release:
        """Release rows: the fitted table, or new rows sent to its classes.

        New rows leave in classes that keep the promise among themselves; the others are suppressed and counted.
        """
        verify_unchanged(self)
        if rows is self.table_:
            return checked(self._owner, self._publish(self.table_.frame, self._assign(None)))
        frame = new_rows(rows, self.table_, self._owner)
        return checked(self._owner, self._kept(self._publish(frame, self._assign(frame))))

    @abstractmethod
    def _learn(self, table: Table) -> None:
        """Learn the classes."""

    @abstractmethod
    def _assign(self, frame: pd.DataFrame | None) -> Classes:
        """The classes of new rows, or of the fitted table (None)."""

    def _publish(self, frame: pd.DataFrame, classes: Classes) -> Release:
        """Shuffled rows without identifiers; rows without a class stay behind."""
        schema = self.table_.schema
        order = generator(self.random_state).permutation(np.flatnonzero(classes.of >= 0))
        used, groups = _renumbered(classes.of[order], len(classes.regions))
        others = [c.name for c in schema if c.role not in ("identifier", "quasi")]
        caveats = list(classes.remarks)
        if self.random_state is not None:
            caveats.append("The rows were shuffled with a seed: whoever knows it can tell their original order.")
        shown = without_traces(frame[others].iloc[order].reset_index(drop=True))
        return Release(
            classes.regions[used].pruned() if len(used) < len(classes.regions) else classes.regions,
            groups,
            shown,
            schema.beside(shown),
            self.guarantee(),
            provenance("protector", self, self.table_),
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
            others = without_traces(release.others[stay].reset_index(drop=True))
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


def checked(owner: str, release: Release) -> Release:
    """The release, if a count of its own on the published labels confirms the promise."""
    broken = release.guarantee.recount(release)
    if broken is not None:
        raise RefusedError(f"{owner} refused to release the table: {broken}. Nothing has left.")
    return release


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


def _renumbered(classes: NDArray[np.generic], n: int) -> tuple[Ints, Ints]:
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
