"""Tables published as classes: rows that share their quasi-identifiers with others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import Ints, distinct_rows
from countervail.core.canonical import code_values
from countervail.core.cells import cell_text
from countervail.core.errors import RefusedError, SchemaError, bad_parameter
from countervail.core.region import Regions, Values
from countervail.core.release import Release, provenance, without_traces
from countervail.core.rng import RandomState, generator
from countervail.core.schema import Schema
from countervail.core.table import Rows, Table, to_pandas
from countervail.protect._fitted import begin_fit, finish_fit, verify_unchanged
from countervail.protect.base import TableProtector

SEEDED = "Chance was seeded: whoever knows the seed can repeat the order of the rows and every lot that was drawn."


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
        """Shuffled rows without identifiers; rows without a class stay behind, and so does what only they have."""
        schema = self.table_.schema
        kept = np.flatnonzero(classes.of >= 0)
        used, groups = _renumbered(classes.of[kept], len(classes.regions))
        others = [c.name for c in schema if c.role not in ("identifier", "quasi")]
        caveats = list(classes.remarks)
        if self.random_state is not None:
            caveats.append(SEEDED)
        release = Release(
            classes.regions[used],
            groups,
            frame[others].iloc[kept],
            schema,
            self.guarantee(),
            provenance("protector", self, self.table_),
            tuple(caveats),
            len(frame) - len(kept),
            classes.words,
            self.table_,
        )
        return self._shuffled(canonical_release(release, schema))

    def _shuffled(self, release: Release) -> Release:
        order = generator(self.random_state).permutation(len(release))
        return replace(release, groups=release.groups[order], others=release.others.iloc[order].reset_index(drop=True))

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
            gone = release.suppressed + int((~stay).sum())
            rest = replace(release, regions=release.regions[used], groups=groups, others=release.others[stay])
            release = replace(canonical_release(rest, self.table_.schema), suppressed=gone)
        if not len(release):
            raise RefusedError(
                f"{self._owner} cannot release these rows: in none of the classes do enough of them meet. "
                f"Nothing has left. Protect more rows at once, or fit to them."
            )
        if len(release) < before:
            text = f"{before - len(release)} row(s) were suppressed: too few of the new rows share their class."
            release = self._shuffled(replace(release, caveats=(*release.caveats, text)))
        return release


def checked(owner: str, release: Release) -> Release:
    """The release, if a count of its own on the published labels confirms the promise."""
    broken = release.guarantee.recount(release)
    if broken is not None:
        raise RefusedError(f"{owner} refused to release the table: {broken}. Nothing has left.")
    return release


def canonical_release(release: Release, schema: Schema) -> Release:
    """The release told by nothing but its cells: spelling, dtypes, names of sets, order of classes and of rows.

    `schema` is the table's: what it declares is public, what was read off the rows is kept for these rows only.
    """
    others = without_traces(release.others, schema)
    codes = [code_values(others[n])[0] for n in others.columns]
    content = distinct_rows(np.column_stack(codes))[1] if codes else np.zeros(len(others), np.int64)
    regions = release.regions.canonical(schema)
    place = _order_classes(regions, release.groups, content)
    groups = place[release.groups]
    order = np.argsort(groups * (int(content.max(initial=0)) + 1) + content, kind="stable")
    others = others.iloc[order].reset_index(drop=True)
    sorted_ = regions[np.argsort(place)]
    words = {n: _used_words(sorted_, n, w) for n, w in release.words.items()}
    shown = schema.beside(others).typed_by(others)
    return replace(release, regions=sorted_, groups=groups[order], others=others, schema=shown, words=words)


def _order_classes(regions: Regions, groups: Ints, content: Ints) -> Ints:
    """Each class's place among all by its cells, and by its rows where cells are equal."""
    place = regions.ranks()
    if len(place) and place.max() + 1 < len(place):
        parts = np.split(content[np.lexsort((content, groups))], np.cumsum(np.bincount(groups))[:-1])
        order = sorted(range(len(place)), key=lambda c: (place[c], parts[c].tolist()))
        place[order] = np.arange(len(place))
    return place


def _used_words(regions: Regions, name: str, words: Mapping[str, str]) -> dict[str, str]:
    """The names of sets that are published: others may be those of people who are not."""
    axes = [a for a in regions.axes if a.name == name and isinstance(a, Values)]
    texts = {cell_text(a.cell(int(i))) for a in axes for i in distinct_rows(a.bits)[0]}
    return {text: word for text, word in words.items() if text in texts}


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
