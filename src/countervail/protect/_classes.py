"""Tables published as classes: rows that share their quasi-identifiers with others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import Ints, distinct_rows
from countervail.core.cells import cell_text
from countervail.core.errors import RefusedError, SchemaError, bad_parameter
from countervail.core.guarantee import NoGuarantee
from countervail.core.people import keys_of, most_of_one, people_of
from countervail.core.region import Regions, Values, joined_regions
from countervail.core.release import Release, provenance, without_traces
from countervail.core.rng import RandomState, generator
from countervail.core.schema import Schema
from countervail.core.sealed import SealedTable, spell_favourable
from countervail.core.table import Rows, Table, to_pandas
from countervail.core.words.dates import read_days
from countervail.engine.scan import Scan
from countervail.ledger.ledger import Ledger
from countervail.protect._fitted import WithoutRows, begin_fit, finish_fit, live_table, snapshot, verify_unchanged
from countervail.protect._recorded import partition_digest
from countervail.protect._scanned import ScannedClasses, WrittenRelease, write_scan
from countervail.protect.base import TableProtector
from countervail.protect.class_roster import Changed, ClassRoster

NEW_ROWS = (
    "Rows that were not part of the fitted table have been sent to its nearest cells.",
    "Do not release another set of rows with some of the same people: who is in one set only is the difference of the "
    "two releases.",
)
_NOT_OVER_TIME = ("l", "t", "by_class", "ledger")
SEEDED = "Chance was seeded: whoever knows the seed can repeat the order of the rows and every lot that was drawn."


@dataclass(frozen=True, slots=True)
class Classes:
    """The class of each row (-1: none), one region per class, remarks, and names of published sets.

    `held`: where the regions are centres of classes, the ranges and sets in which their people lie.
    """

    of: NDArray[np.int32]
    regions: Regions
    remarks: tuple[str, ...] = ()
    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    held: Regions | None = None


class ClassProtector(WithoutRows, TableProtector):
    """Publishes a table whose rows share their quasi-identifiers with others.

    A subclass writes `guarantee`, `_learn` (classes of the fitted table) and `_assign` (classes of new rows). The base
    drops identifiers, leaves out what cannot be published, seals the rest, which is all that stays after `fit`; then
    shuffles, attaches the promise, and counts it anew on the published labels: a release that breaks its promise never
    leaves.
    """

    random_state: RandomState

    def fit(self, table: Table | Scan, *, previous: ClassRoster | None = None, changed: Changed = "withdraw") -> Self:
        """Learn the classes of a table, or of rows in an engine (:meth:`Table.scan`), which `write` releases.

        `previous` is the roster of the release before (`roster_`): its classes leave again as they were or not at all,
        and only people who were in none form new ones. A class whose people's other values changed is withdrawn too,
        unless `changed` is "publish". See docs/decisions/growing-tables.md.
        """
        if isinstance(table, Scan):
            return self._fit_scan(table, previous)
        if not isinstance(table, Table):
            hint = "Build one with Table.from_frame(df, quasi_identifiers=[...]) or Table.read(path, schema=...)."
            raise bad_parameter(self._owner, "table", "a Table", type(table).__name__, hint)
        table.schema.require_quasi(self._owner)
        given = begin_fit(self)
        self.__dict__.pop("_scan", None), self.__dict__.pop("_scanned", None)
        classes = self._learn(table) if previous is None else self._go_on(table, previous, changed)
        kept = np.flatnonzero(classes.of >= 0)
        rows = table.frame.iloc[kept]
        others = without_traces(rows.drop(columns=table.schema.names("identifier", "quasi")), table.schema)
        self.schema_ = spell_favourable(table.schema.kept_for(rows).typed_by(others))
        self.release_ = self._publish(table.frame, classes)
        ledger: Ledger | None = getattr(self, "ledger", None)
        self.partition_ = b""
        if ledger is not None:
            self.partition_ = partition_digest(ledger, table, classes.of.astype(np.int64), classes.regions)
        self.version_ = 1 if previous is None else previous.version + 1
        self._remember(table, cell_of=classes.of, classes=classes, previous=previous)
        self.fitted_as_ = finish_fit(self, given)
        return self

    def _fit_scan(self, scan: Scan, previous: ClassRoster | None) -> Self:
        """Learn the classes of rows that stay where they are."""
        if previous is not None:
            raise bad_parameter(self._owner, "previous", "left out for a scan: it is kept row by row", "a roster")
        scan.schema.require_quasi(self._owner)
        given = begin_fit(self)
        found = self._learn_scan(scan)
        self.schema_, self.partition_, self.version_ = spell_favourable(found.schema), b"", 1
        self._scan, self._scanned = scan, found
        self.fitted_as_ = finish_fit(self, given)
        return self

    def write(self, folder: str | Path) -> WrittenRelease:
        """Release the fitted scan: partitioned Parquet files in a new folder, whole or not at all, counted anew there.

        Rows stand in the order of a hash of what is published of them and a fresh key; see docs/decisions/engines.md.
        """
        now = snapshot(self)
        verify_unchanged(now)
        scan, found = now.__dict__.get("_scan"), now.__dict__.get("_scanned")
        if scan is None or found is None:
            hint = "Release a fitted table with protect(table).write(path)."
            raise bad_parameter(self._owner, "table", "a scan that was fitted in this process", "none", hint)
        return write_scan(
            self._owner,
            scan,
            found,
            folder,
            now.guarantee(),
            (*found.remarks, *((SEEDED,) if now.random_state is not None else ())),
            provenance("protector", now, found.schema),
            now.random_state,
        )

    def protect(self, rows: Rows | None = None) -> Release:
        """Release the fitted table, or new rows sent to its classes.

        New rows leave in classes that keep the promise among themselves; the others are suppressed and counted.
        """
        return snapshot(self)._released(rows)

    def _released(self, rows: Rows | None) -> Release:
        verify_unchanged(self)
        if rows is None and "_scan" in self.__dict__:
            raise bad_parameter(
                self._owner, "rows", "given: the fitted rows are in an engine", None, "Use write(folder)."
            )
        if rows is None or rows is live_table(self):
            release = replace(self.release_, audit=live_table(self))
            return checked(self._owner, self._shuffled(release))
        self._refuse_when_continued("rows that are not the fitted table")
        frame = new_rows(rows, self.schema_, self._owner)
        classes = self._among_people(self._assign(frame), to_pandas(rows, self._owner, "rows"))
        release = replace(self._publish(frame, classes), audit=live_table(self))
        return checked(self._owner, self._kept(self._shuffled(release)))

    @property
    def cell_of_(self) -> NDArray[np.int32]:
        """The class of each row of the fitted table (-1: none), while somebody keeps the table."""
        of: NDArray[np.int32] = self._recall("cell_of")
        return of

    @property
    def roster_(self) -> ClassRoster:
        """Who is in which class, for the next release of the table: confidential. While somebody keeps the table."""
        now = snapshot(self)
        verify_unchanged(now)
        found: Classes = now._recall("classes")
        k: int = now.get_params(deep=False)["k"]
        return ClassRoster.of(
            now.name,
            k,
            now.table_,
            found.of.astype(np.int64),
            found.regions,
            found.held,
            found.words,
            now._recall("previous"),
        )

    def _go_on(self, table: Table, previous: ClassRoster, changed: Changed) -> Classes:
        """Classes of the release before that may leave again, and new ones of people who were in none."""
        if not isinstance(previous, ClassRoster):
            raise bad_parameter(self._owner, "previous", "the roster_ of an earlier fit", type(previous).__name__)
        if changed not in ("withdraw", "publish"):
            raise bad_parameter(self._owner, "changed", "'withdraw' or 'publish'", changed)
        given = self.get_params(deep=False)
        if wrong := [n for n in _NOT_OVER_TIME if given.get(n)]:
            must = f"left out with a release before (`previous`), which k alone is promised over; also {_NOT_OVER_TIME}"
            raise bad_parameter(self._owner, wrong[0], must, type(given[wrong[0]]).__name__)
        found = previous.match(table, self.name, given["k"], changed)
        new, stay = np.flatnonzero(found.new), np.flatnonzero(found.stay)
        regions, held, words = previous.regions[stay], previous.held, dict(previous.words)
        held = None if held is None else held[stay]
        place = np.full(len(found.stay) + 1, -1, dtype=np.int32)
        place[stay] = np.arange(len(stay))
        of = place[found.group]
        remarks = [f"Version {previous.version + 1} of a table that was released before."]
        if len(new) >= max(given["k"], 1):
            fresh = self._learn(table.take(new))
            of[new] = np.where(fresh.of >= 0, fresh.of + len(stay), -1)
            regions = joined_regions(regions, fresh.regions) if len(stay) else fresh.regions
            if fresh.held is not None:
                held = joined_regions(held, fresh.held) if held is not None and len(stay) else fresh.held
            words = {n: {**words.get(n, {}), **fresh.words.get(n, {})} for n in {*words, *fresh.words}}
            remarks += fresh.remarks
        if not (of >= 0).any():
            raise RefusedError(
                f"{self._owner} cannot release this table: no class of the release before may leave again, and fewer "
                f"than k={given['k']} people are new. Nothing has left."
            )
        waiting = int((of < 0).sum())
        ended = int((~found.stay).sum())
        if waiting or ended:
            remarks.append(
                f"{ended} class(es) of the release before leave no more, because somebody of them left or changed; "
                f"{waiting} row(s) wait."
            )
        return Classes(of, regions, tuple(remarks), words, held)

    def _refuse_when_continued(self, what: str) -> None:
        if self.version_ > 1:
            hint = "Fit to the table as it is now, with previous=..., and release that."
            must = f"the fitted table itself after a fit with previous: {what} would have classes of their own"
            raise bad_parameter(self._owner, "rows", must, what, hint)

    def _learn_scan(self, scan: Scan) -> ScannedClasses:
        """The classes of rows in an engine, where that is possible."""
        hint = "Read the rows with Table.read, or use Mondrian."
        raise bad_parameter(self._owner, "table", "a Table: it works row by row", "a Scan", hint)

    @abstractmethod
    def _learn(self, table: Table) -> Classes:
        """Learn the classes, and say which rows of the table are in which."""

    @abstractmethod
    def _assign(self, frame: pd.DataFrame) -> Classes:
        """The classes of new rows."""

    def _publish(self, frame: pd.DataFrame, classes: Classes) -> Release:
        """Rows without identifiers, in order of content; rows without a class stay behind, and what only they have."""
        schema = self.schema_
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
            provenance("protector", self, schema),
            tuple(caveats),
            len(frame) - len(kept),
            classes.words,
            held=None if classes.held is None else classes.held[used],
        )
        return canonical_release(release, schema)

    def _shuffled(self, release: Release) -> Release:
        order = generator(self.random_state).permutation(len(release))
        return replace(release, groups=release.groups[order], others=release.others.iloc[order].reset_index(drop=True))

    def _among_people(self, classes: Classes, given: pd.DataFrame) -> Classes:
        """Without classes in which somebody has more than one row in k: there rows are many, and people few."""
        named = keys_of(given, [n for n in self.schema_.names("identifier") if n in given.columns])
        if not named or isinstance(self.guarantee(), NoGuarantee):
            return classes
        inside, person = classes.of >= 0, people_of(given, named)
        of = classes.of[inside].astype(np.int64)
        few = np.bincount(of) < self.get_params(deep=False)["k"] * most_of_one(of, person[inside])
        stay, several = ~np.append(few, True)[classes.of], int(np.bincount(person).max(initial=1)) > 1
        if stay.sum() == inside.sum() or not several:
            return classes
        if not stay.any():
            raise self._nothing_left()
        gone = int(inside.sum() - stay.sum())
        text = f"{gone} row(s) were suppressed: some people have several rows, and too few people share their class."
        return replace(classes, of=np.where(stay, classes.of, -1), remarks=(*classes.remarks, text))

    def _nothing_left(self) -> RefusedError:
        return RefusedError(
            f"{self._owner} cannot release these rows: in none of the classes do enough of them meet. "
            f"Nothing has left. Protect more rows at once, or fit to them."
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
            gone = release.suppressed + int((~stay).sum())
            held = None if release.held is None else release.held[used]
            rest = replace(
                release, regions=release.regions[used], groups=groups, others=release.others[stay], held=held
            )
            release = replace(canonical_release(rest, self.schema_), suppressed=gone)
        if not len(release):
            raise self._nothing_left()
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
    sealed, place = SealedTable.of(release.regions, release.groups, release.others, schema)
    words = {n: _used_words(sealed.regions, n, w) for n, w in release.words.items()}
    held = None if release.held is None else release.held[np.argsort(place)]
    return replace(
        release,
        regions=sealed.regions,
        groups=sealed.groups,
        others=sealed.others,
        schema=sealed.schema,
        words=words,
        held=held,
    )


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


def new_rows(rows: Rows, schema: Schema, owner: str) -> pd.DataFrame:
    """New rows with the columns that are released; categories the table never had are left as they are."""
    frame = to_pandas(rows, owner, "rows")
    needed = [c.name for c in schema if c.role != "identifier"]
    if missing := [n for n in needed if n not in frame.columns]:
        raise SchemaError(f"The 'rows' given to {owner} lack these columns of the table: {missing}.")
    if extra := [str(n) for n in frame.columns if n not in schema]:
        raise SchemaError(f"The 'rows' given to {owner} have columns that the schema does not declare: {extra}.")
    if len(frame) == 0:
        raise bad_parameter(owner, "rows", "at least one row", "none")
    frame = frame[needed].reset_index(drop=True)
    days = {c.name: read_days(frame[c.name], c.order, c.name) for c in schema if c.type == "date" and c.name in needed}
    return frame.assign(**days) if days else frame
