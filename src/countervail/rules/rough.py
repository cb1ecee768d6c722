"""Rough sets themselves: what surely and what possibly belongs to a class, which attributes are needed to tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.arrays import number_rows
from countervail.core.errors import ParameterError, SchemaError, bad_parameter
from countervail.core.schema import Schema
from countervail.core.table import Table
from countervail.rules.inputs import build_value_table, take_features, take_labels, take_target
from countervail.rules.values import Bools, Ints, ValueTable

MOST_REDUCTS = 10_000


@dataclass(frozen=True, eq=False)
class RoughSet:
    """A class, or a union of classes, seen through some attributes: marks per row, in the order of the rows."""

    lower: Bools = field(repr=False)
    upper: Bools = field(repr=False)

    @property
    def boundary(self) -> Bools:
        """Rows that belong to it possibly, not surely."""
        between: Bools = self.upper & ~self.lower
        return between

    @property
    def accuracy(self) -> float:
        """The sure rows among the possible ones; 1 where the attributes tell all, and for a class of nobody."""
        return float(self.lower.sum() / self.upper.sum()) if self.upper.any() else 1.0


def approximate(
    X: Any, classes: Any, y: Any = None, *, attributes: Sequence[str] | None = None, schema: Schema | None = None
) -> RoughSet:
    """The lower and upper approximation of a class, or of a union of classes.

    Parameters
    ----------
    X : Table, DataFrame or array
        Rows of plain values. Of a Table the target is taken unless `y` is given.
    classes : label or collection of labels
        The class, or the union.
    y : labels, optional
    attributes : names, optional
        The columns that may be looked at; default: all.
    schema : Schema, optional
        Types and levels of the columns, where the dtypes do not tell them.

    Notes
    -----
    *Threat model*: none. Whether a single row is in a boundary is a fact about one person: for your own eyes.

    References
    ----------
    Pawlak: Rough sets (1982); equation (1) of Inuiguchi, Ichida, Torra (2019).

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.rules import approximate
    >>> seen = approximate(cv.load("toy_evaluation"), "high", attributes=["occupation", "domicile"])
    >>> seen.lower.nonzero()[0] + 1, seen.upper.nonzero()[0] + 1
    (array([1, 6]), array([1, 2, 3, 6]))
    """
    owner = "approximate"
    table = _crisp(X, y, schema, owner)
    wanted = list(classes) if isinstance(classes, (list, tuple, set, frozenset)) else [classes]
    if not wanted or any(c not in table.classes for c in wanted):
        raise bad_parameter(owner, "classes", f"one or several of {list(table.classes)}", classes)
    union = np.uint64(sum(1 << table.classes.index(c) for c in set(wanted)))
    held = (table.decisions & union) != np.uint64(0)
    same = _blocks(table, _named(table, attributes, owner))
    inside, outside = (np.bincount(same, weights=which, minlength=len(same)) > 0 for which in (held, ~held))
    return RoughSet((inside & ~outside)[same][table.group], inside[same][table.group])


def reducts(X: Any, y: Any = None, *, schema: Schema | None = None) -> list[tuple[str, ...]]:
    """All smallest sets of columns that tell classes apart as well as all columns do; shortest first, then by column.

    Such a set changes no approximation, lower or upper, of any union of classes: no two rows look alike in it that
    differ in the classes they may have by all columns. A reduct loses that with any column less. The columns that all
    reducts share are the core: without one of them something is lost.

    Parameters
    ----------
    X : Table, DataFrame or array
        Rows of plain values. Of a Table the target is taken unless `y` is given.
    y : labels, optional
    schema : Schema, optional

    Notes
    -----
    There may be exponentially many: above 10,000 on the way there is an error.

    References
    ----------
    Pawlak: Rough sets (1982); Skowron, Rauszer: The discernibility matrices and functions in information systems
    (1992).

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.rules import reducts
    >>> reducts(cv.load("toy_evaluation"))
    [('sex', 'occupation')]
    """
    owner = "reducts"
    table = _crisp(X, y, schema, owner)
    found: list[int] = [0]
    for clause in _clauses(table):
        met = [r for r in found if r & clause]
        open_ = [r for r in found if not r & clause]
        wider = {r | 1 << j for r in open_ for j in range(len(table.attributes)) if clause >> j & 1}
        found = met + [w for w in wider if not any(r & ~w == 0 for r in met)]
        found = _minimal(found)
        if len(found) > MOST_REDUCTS:
            raise ParameterError(
                f"There are more than {MOST_REDUCTS:,} reducts on the way. Give {owner} fewer columns."
            )
    ordered = sorted(
        ([j for j in range(len(table.attributes)) if r >> j & 1] for r in found), key=lambda c: (len(c), c)
    )
    return [tuple(table.names[j] for j in chosen) for chosen in ordered]


def _clauses(table: ValueTable) -> list[int]:
    """For rows that must be told apart, the attributes in which they differ; only the smallest such sets, as bits."""
    same = _blocks(table, range(len(table.attributes)))
    count = int(same.max()) + 1
    known = np.zeros(count, dtype=np.uint64)  # the classes that a block may have
    np.bitwise_or.at(known, same, table.decisions)
    first = np.unique(same, return_index=True)[1]
    values = table.low[:, first]
    bits: list[int] = []
    for i in range(count - 1):
        others = np.flatnonzero(known[i + 1 :] != known[i]) + i + 1
        differ = np.unique((values[:, others] != values[:, [i]]).T, axis=0)
        bits += [sum(1 << j for j in np.flatnonzero(row).tolist()) for row in differ]
        if len(bits) > MOST_REDUCTS:
            bits = _minimal(bits)
    return _minimal(bits)


def _minimal(sets: Iterable[int]) -> list[int]:
    """The sets that include no other."""
    kept: list[int] = []
    for s in sorted(set(sets), key=lambda v: (v.bit_count(), v)):
        if not any(k & ~s == 0 for k in kept):
            kept.append(s)
    return kept


def _crisp(X: Any, y: Any, schema: Schema | None, owner: str) -> ValueTable:
    """The rows as a value table; cells with sets have no blocks of equal rows."""
    frame = take_features(X, owner)
    frame = frame.set_axis([str(n) for n in frame.columns], axis=1)
    if isinstance(X, Table):
        schema, y = schema or X.schema, take_target(X, owner) if y is None else y
    table = build_value_table(frame, take_labels(y, owner), schema, owner)
    if not table.crisp or table.imprecise:
        raise SchemaError(f"{owner} takes rows of plain values and single classes, but cells hold ranges or sets.")
    return table


def _named(table: ValueTable, attributes: Sequence[str] | None, owner: str) -> list[int]:
    if attributes is None:
        return list(range(len(table.attributes)))
    listed = [attributes] if isinstance(attributes, str) else list(attributes)
    if unknown := [n for n in listed if n not in table.names]:
        raise bad_parameter(owner, "attributes", f"among {table.names}", unknown)
    return [table.names.index(n) for n in listed]


def _blocks(table: ValueTable, chosen: Iterable[int]) -> Ints:
    """A number for each distinct row that is the same where all chosen attributes are."""
    columns = [pd.factorize(table.low[j])[0] for j in chosen]
    if not columns:
        return np.zeros(len(table), dtype=np.int64)
    numbers: Ints = pd.factorize(number_rows(columns))[0].astype(np.int64)
    return numbers
