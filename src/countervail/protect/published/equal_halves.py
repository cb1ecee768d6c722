"""Mondrian with equal halves: sorted rows are cut in the middle, also between equal ones."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import pandas as pd

from countervail.core.errors import bad_parameter
from countervail.core.guarantee import Guarantee
from countervail.core.people import rows_per_person, say_rows_per_person
from countervail.core.release import Release
from countervail.core.rng import RandomState, generator
from countervail.core.table import Rows, Table
from countervail.ledger.ledger import Ledger, check_ledger
from countervail.protect._classes import Classes, ClassProtector
from countervail.protect.mondrian.columns import (
    ORDERED,
    Attributes,
    class_column,
    content_order,
    describe,
    encode,
    part_remarks,
    parts_of,
)
from countervail.protect.mondrian.constraints import FAILS_K, FITS, Ints, Requirements, kernel
from countervail.protect.mondrian.labels import class_regions
from countervail.protect.mondrian.loss import ordered_loss
from countervail.protect.mondrian.mondrian import BY_LOT


class EqualHalvesMondrian(ClassProtector):
    """Mondrian that sorts rows by the widest column and cuts them in the middle; equal rows are parted by lot.

    Parameters
    ----------
    k : int
        The least number of rows that share every published combination of quasi-identifiers; 1 promises nothing.
        Cells of 2k rows and more are cut on.
    by_class : bool
        Cut every class of the target on its own.
    random_state : int, optional
        Seed of the lot and the shuffle; default: the system's entropy, the only choice fit for publication.
    ledger : Ledger, optional
        Records the classes before a table leaves; other classes of the same people are refused from then on.

    Notes
    -----
    *Threat model*: someone who holds a register of everybody's quasi-identifiers and reruns this code, as for
    :class:`countervail.Mondrian`: who of equal people goes left is drawn independently of all other columns. A lot is
    drawn at `fit`: publish one fit of the same people, not several. There is no cut tree, since cuts pass between equal
    rows: new rows have no place. See docs/decisions/mondrian-guarantee.md. A fitted object holds the table: its pickle
    is as private as the rows.

    References
    ----------
    The Mondrian that Inuiguchi, Ichida, Torra: Data anonymization with imprecise rules and its performance evaluations
    (2019) compare with, after LeFevre, DeWitt, Ramakrishnan: Mondrian multidimensional k-anonymity (2006).

    Examples
    --------
    >>> import pandas as pd, countervail as cv
    >>> table = cv.Table.from_frame(pd.DataFrame({"age": [1, 1, 1, 1, 2]}), quasi_identifiers=["age"])
    >>> release = cv.published.EqualHalvesMondrian(k=2).fit(table).protect(table)
    >>> sorted(release.regions.text())
    ['age 1', 'age 1-2']
    """

    name: ClassVar[str] = "published-equal-halves-mondrian"

    def __init__(
        self,
        k: int = 10,
        *,
        by_class: bool = False,
        random_state: RandomState = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.k = k
        self.by_class = by_class
        self.random_state = random_state
        self.ledger = ledger

    def guarantee(self) -> Guarantee:
        """k against whoever knows the code: only quasi-identifiers are looked at, and the lot ignores the rest."""
        return Requirements(self._owner, self.k).promise()

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(k=5), cls(k=3, by_class=True), cls(k=1)]

    def _released(self, rows: Rows | None) -> Release:
        """With a ledger, classes are recorded before they leave."""
        release = super()._released(rows)
        if self.ledger is not None:
            self.ledger.record_grouping(self.partition_, self.name)
        return release

    def _learn(self, table: Table) -> Classes:
        """Rows sorted by content; the order of equal ones is drawn by lot, so that it tells nothing about them."""
        required = Requirements(self._owner, self.k)
        required.check()
        k = self.k * rows_per_person(table)  # so many rows hold k people
        check_ledger(self.ledger, self._owner)
        self.by_ = class_column(table, by_class=self.by_class, owner=self._owner)
        quasi, codes = encode(table, {})
        data = describe(quasi, tree_loss=False)
        rng = generator(self.random_state)
        cell_of, first = np.empty(len(codes), np.int32), 0
        settled = content_order(table)
        for _, rows in parts_of(table, self.by_):
            required.check_part(FITS if len(rows) >= k else FAILS_K, len(rows), table, self.by_)
            drawn = rng.permutation(settled[np.isin(settled, rows)])
            order = drawn[np.lexsort(codes[drawn].T[::-1])]
            cells, n_cells = partition_equal(codes[order], data, k)
            cell_of[order] = cells + first
            first += n_cells
        self.regions_ = class_regions(quasi, codes, cell_of, first, data, groups=False)
        remarks = (*say_rows_per_person(table, self.k), *part_remarks(self.by_), BY_LOT)
        return Classes(cell_of, self.regions_, remarks)

    def _assign(self, frame: pd.DataFrame) -> Classes:
        hint = "Cuts pass between equal rows, so that new rows have no place. Fit to them instead."
        raise bad_parameter(self._owner, "rows", "the fitted table itself", "other rows", hint)


@kernel
def _equal_halves(codes: Ints, data: Attributes, k: int, cell_of: Ints) -> int:
    """Cut sorted rows in the middle until a cell has fewer than 2k."""
    n_rows, q = codes.shape
    rows = np.arange(n_rows).astype(np.int32)
    stamp = np.full(data.positions.shape[1], -1, np.int64)
    start, stop = np.zeros(n_rows + 1, np.int64), np.zeros(n_rows + 1, np.int64)
    stop[0] = n_rows
    depth, n_cells, clock = 1, 0, 0
    while depth > 0:
        depth -= 1
        a, b = start[depth], stop[depth]
        if b - a < 2 * k:
            for r in range(a, b):
                cell_of[rows[r]] = n_cells
            n_cells += 1
            continue
        best, widest = 0, -1.0
        for j in range(q):
            low, high, distinct = codes[rows[a], j], codes[rows[a], j], 0
            for r in range(a, b):
                v = codes[rows[r], j]
                low, high = min(low, v), max(high, v)
                if data.kind[j] != ORDERED and stamp[v] != clock:
                    stamp[v] = clock
                    distinct += 1
            clock += 1
            width = distinct / data.span[j] if distinct > 1 else 0.0
            if data.kind[j] == ORDERED:
                width = ordered_loss(low, high, data.missing[j], data.positions, j, data.span[j])
            if width > widest:
                best, widest = j, width
        column = np.empty(b - a, np.int32)
        for r in range(a, b):
            column[r - a] = codes[rows[r], best]
        order = np.argsort(column, kind="mergesort")
        rows[a:b] = rows[a:b][order]
        middle = a + (b - a) // 2
        start[depth], stop[depth] = middle, b
        start[depth + 1], stop[depth + 1] = a, middle
        depth += 2
    return n_cells


def partition_equal(codes: Ints, data: Attributes, k: int) -> tuple[Ints, int]:
    """The cell of each row, and how many there are; equal rows may be parted, by their order here.

    Sort the rows by content first if their order must not matter. There is no cut tree: the cuts pass between rows.
    """
    cell_of = np.zeros(len(codes), np.int32)
    n_cells = _equal_halves(np.ascontiguousarray(codes), data, max(k, 1), cell_of)
    return cell_of, n_cells
