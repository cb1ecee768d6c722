"""k, l and t: what the parameters promise, what they ask of a table, and whether a class keeps them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from countervail.core._kernels import Whole as Whole
from countervail.core._kernels import inner as inner
from countervail.core._kernels import kernel as kernel
from countervail.core.canonical import code_values
from countervail.core.errors import bad_parameter
from countervail.core.guarantee import AllOf, Guarantee, KAnonymity, LDiversity, NoGuarantee, TCloseness
from countervail.core.guarantee.diversity import DIVERSITIES, GROUNDS, value_ranks
from countervail.core.hierarchy import Hierarchy, read_hierarchies
from countervail.core.people import rows_per_person
from countervail.core.table import Table
from countervail.engine.scan import Scan

Bytes = NDArray[np.int8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

DIVERSITY: Final = {"none": 0, "distinct": 1, "entropy": 2, "recursive": 3, "frequency": 4}
CLOSENESS: Final = {"none": 0, "equal": 1, "ordered": 2, "hierarchical": 3}
# The constraint that a group breaks first.
FITS: Final = 0
FAILS_K: Final = 1
FAILS_L: Final = 2
FAILS_T: Final = 3

# Sums of logarithms and shares differ in the last digits between orders of summation; exact ties must pass.
_SLACK: Final = 1e-12

Hierarchies = Mapping[str, Hierarchy | str | Path] | str | Path | None


@dataclass(frozen=True, slots=True)
class Requirements:
    """What every class must keep, as a protector's parameters say it; `owner` is whose they are."""

    owner: str
    k: int
    l: float | tuple[float, float] | None = None  # noqa: E741 -- the name the literature uses
    t: float | None = None
    diversity: str = "distinct"
    closeness: str = "equal"
    sensitive: str | None = None

    @property
    def looks_at_secrets(self) -> bool:
        """Whether cuts look at the sensitive column."""
        return self.l is not None or self.t is not None

    def check(self) -> None:
        """Raise for the first parameter that no table could be protected with."""
        if not isinstance(self.k, (int, np.integer)) or isinstance(self.k, bool) or self.k < 1:
            raise bad_parameter(self.owner, "k", "a whole number of at least 1", self.k)
        if self.k >= 2**63:  # what the kernels count with
            raise bad_parameter(self.owner, "k", "at most the number of rows", self.k)
        check_word(self.owner, "diversity", self.diversity, DIVERSITIES)
        check_word(self.owner, "closeness", self.closeness, GROUNDS)
        if self.l is not None:
            self._check_diversity()
        if self.t is not None and not (is_number(self.t) and 0 <= self.t <= 1):
            raise bad_parameter(self.owner, "t", "between 0 and 1", self.t)
        if self.looks_at_secrets and self.sensitive is None:
            must = "the column that l and t speak of"
            raise bad_parameter(self.owner, "sensitive", must, None, "Name it with sensitive='...'.")

    def promise(self, hierarchies: Hierarchies = None) -> Guarantee:
        """k against whoever knows the code, if only quasi-identifiers are looked at; else all against a register."""
        parts: list[Guarantee] = []
        if self.k > 1:
            parts.append(KAnonymity(self.k, against="register" if self.looks_at_secrets else "algorithm"))
        if self.l is not None:
            c, l = self._c_and_l()  # noqa: E741
            parts.append(LDiversity(l, self.diversity, self.sensitive or "", c))
        if self.t is not None:
            parts.append(TCloseness(self.t, self.closeness, self.sensitive or "", tree=self._tree(hierarchies)))
        if not parts:
            return NoGuarantee("k=1: a class may hold a single person")
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def read_hierarchies(self, table: Table | Scan, given: Hierarchies) -> dict[str, Hierarchy]:
        """The hierarchies of the quasi-identifiers, and of the sensitive column where t takes one."""
        if given is None:
            return {}
        wanted = list(table.schema.names("quasi"))
        if self.looks_at_secrets and self.sensitive is not None and self.closeness == "hierarchical":
            wanted.append(self.sensitive)
        found = read_hierarchies(given, wanted, self.owner)
        if dates := table.schema.dates(found):
            must = f"about columns of labels: '{dates[0]}' holds dates, whose classes are ranges"
            hint = f"With table.with_types({dates[0]}='categorical'), months, years and decades are groups of labels."
            raise bad_parameter(self.owner, "hierarchies", must, "one for it", hint)
        return found

    def read(
        self, table: Table, hierarchies: Mapping[str, Hierarchy], counts: Longs | None = None, most: int | None = None
    ) -> tuple[Ints, CutConstraints]:
        """Codes of the sensitive column, and the constraints; the table's distribution is the yardstick of t.

        Where people have up to `most` rows, k * most rows hold k people. `counts`: the rows that each row stands for.
        """
        n, k = len(table.frame), self.k * (rows_per_person(table) if most is None else most)
        counts = np.ones(n, np.int64) if counts is None else counts
        if not self.looks_at_secrets:
            secret = np.zeros(n, np.int32)
            return secret, make_constraints(secret, counts, 1, k)
        column = table.schema[self.sensitive or ""]
        if column.role in ("identifier", "quasi"):
            must = "a column that is neither identifier nor quasi-identifier"
            raise bad_parameter(self.owner, "sensitive", must, self.sensitive)
        codes, values = code_values(table.frame[column.name], column.values)
        above = None
        if self.t is not None and self.closeness == "ordered":
            codes = value_ranks(values, column)[codes]
        if self.t is not None and self.closeness == "hierarchical":
            if column.name not in hierarchies:
                hint = f"Add the hierarchy of '{column.name}'."
                raise bad_parameter(self.owner, "hierarchies", "given for the sensitive column", "none", hint)
            above = hierarchies[column.name].ancestors(values)
        secret = codes.astype(np.int32)
        c, l = (None, 1.0) if self.l is None else self._c_and_l()  # noqa: E741
        constraints = make_constraints(
            secret,
            counts,
            len(values),
            k,
            DIVERSITY[self.diversity if self.l is not None else "none"],
            l,
            1.0 if c is None else c,
            CLOSENESS[self.closeness if self.t is not None else "none"],
            1.0 if self.t is None else self.t,
            above,
        )
        return secret, constraints

    def check_part(self, failed: int, rows: int, table: Table, by: str | None, most: int | None = None) -> None:
        """A part that cannot keep the promise as one class is an error, not one class without a word."""
        if failed == FITS:
            return
        if failed == FAILS_K:
            most = rows_per_person(table) if most is None else most
            what = "the number of rows" if by is None else f"the number of rows of every class of '{by}'"
            each = "" if most == 1 else f", divided by {most}: so many rows some people have, by the identifiers"
            raise bad_parameter(self.owner, "k", f"at most {what}, {rows}{each}", self.k)
        part = "the whole table" if by is None else f"every class of '{by}'"
        if failed == FAILS_L:
            values = table.frame[self.sensitive].nunique(dropna=False)
            must = f"a {self.diversity} diversity that {part} has; '{self.sensitive}' takes {values} different values"
            raise bad_parameter(self.owner, "l", must, self.l)
        raise bad_parameter(self.owner, "t", f"a distance within which {part} lies", self.t)

    def _check_diversity(self) -> None:
        c, l = self._c_and_l()  # noqa: E741
        if c is not None and not (is_number(c) and c > 0):
            raise bad_parameter(self.owner, "l", "(c, l) with a c above 0", self.l)
        fractions = self.diversity in ("entropy", "frequency")
        if not is_number(l) or l < 1 or (not fractions and l != int(l)):
            raise bad_parameter(self.owner, "l", f"a {'' if fractions else 'whole '}number of at least 1", self.l)

    def _c_and_l(self) -> tuple[float | None, float]:
        """Both numbers of recursive (c, l)-diversity; other kinds have no c."""
        if self.diversity != "recursive":
            return None, cast(float, self.l)
        if not isinstance(self.l, (tuple, list)) or len(self.l) != 2:
            raise bad_parameter(self.owner, "l", "the pair (c, l) with diversity='recursive'", self.l)
        return self.l[0], self.l[1]

    def _tree(self, given: Hierarchies) -> tuple[tuple[str, ...], ...] | None:
        """The sensitive column's hierarchy, if the distance is along it and it is there."""
        if self.closeness != "hierarchical" or self.sensitive is None:
            return None
        if isinstance(given, Mapping):
            given = {n: h for n, h in given.items() if n == self.sensitive}
        found = read_hierarchies(given, [self.sensitive], self.owner)
        return found[self.sensitive].rows if self.sensitive in found else None


def check_word(owner: str, name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Raise unless a parameter is one of the words it may be."""
    if value not in allowed:
        raise bad_parameter(owner, name, f"one of {allowed}", value)


def is_number(value: Any) -> bool:
    """Whether a parameter is a finite number."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return number and bool(abs(value) <= sys.float_info.max)


class CutConstraints(NamedTuple):
    """What both halves of a cut must satisfy; `share` is the sensitive value's distribution in the table."""

    k: int
    diversity: int
    l: float  # noqa: E741 -- the name the literature uses
    c: float
    closeness: int
    t: float
    share: Floats
    ancestors: Ints


def make_constraints(
    secret: Ints,
    counts: Longs,
    n_secret: int,
    k: int,
    diversity: int = 0,
    l: float = 1.0,  # noqa: E741 -- the name the literature uses
    c: float = 1.0,
    closeness: int = 0,
    t: float = 1.0,
    secret_ancestors: Ints | None = None,
) -> CutConstraints:
    """Bundle the constraints; the distribution that t-closeness compares with is the one of these rows.

    `diversity` and `closeness` are values of DIVERSITY and CLOSENESS. `secret_ancestors[value, level]` is the node
    above a sensitive value, level 0 the value itself and the last level the root: two values are as far apart as the
    level where they meet, divided by the root's.
    """
    if secret_ancestors is None:
        secret_ancestors = np.zeros((n_secret, 1), np.int32)
    classes = np.bincount(secret, weights=counts, minlength=n_secret)
    share = classes / max(float(counts.sum()), 1.0)
    above = np.array(secret_ancestors, np.int32, order="C")
    return CutConstraints(int(k), int(diversity), float(l), float(c), int(closeness), float(t), share, above)


@kernel
def earth_mover(classes: Longs, total: int, share: Floats, closeness: int, ancestors: Ints, flow: Floats) -> float:
    """Distance of a class's distribution from `share`: equal, ordered or hierarchical ground distance."""
    n = classes.shape[0]
    if n < 2:
        return 0.0
    moved = 0.0
    if closeness == 1:
        for s in range(n):
            moved += abs(classes[s] / total - share[s])
        return float(moved / 2.0)
    if closeness == 2:
        surplus = 0.0
        for s in range(n - 1):
            surplus += classes[s] / total - share[s]
            moved += abs(surplus)
        return float(moved / (n - 1))
    height = ancestors.shape[1] - 1
    if height < 1:
        return 0.0
    # In a tree the optimal flow crosses every edge with the net surplus below it; an edge costs 1/(2 height).
    for level in range(height):
        for s in range(n):
            flow[s] = 0.0
        for s in range(n):
            flow[ancestors[s, level]] += classes[s] / total - share[s]
        for s in range(n):
            moved += abs(flow[s])
    return float(moved / (2.0 * height))


@inner
def _top(classes: Longs, count: Whole, scratch: Longs) -> int:
    """Sum of the `count` largest entries."""
    n = classes.shape[0]
    for s in range(n):
        scratch[s] = classes[s]
    total = 0
    for _ in range(min(count, n)):
        best = 0
        for s in range(1, n):
            if scratch[s] > scratch[best]:
                best = s
        total += scratch[best]
        scratch[best] = 0
    return total


@kernel
def entropy(classes: Longs, total: int) -> float:
    """Shannon entropy in nats of a vector of counts."""
    result = 0.0
    for s in range(classes.shape[0]):
        if classes[s] > 0:
            p = classes[s] / total
            result -= p * np.log(p)
    return result


@kernel
def fits(classes: Longs, total: int, constraints: CutConstraints, scratch: Longs, flow: Floats) -> int:
    """FITS, or the first constraint that a group with these sensitive values breaks."""
    if total < constraints.k or total < 1:
        return FAILS_K
    if constraints.diversity == 1:
        distinct = 0
        for s in range(classes.shape[0]):
            if classes[s] > 0:
                distinct += 1
        if distinct < constraints.l:
            return FAILS_L
    elif constraints.diversity == 2:
        if entropy(classes, total) < np.log(constraints.l) - _SLACK:
            return FAILS_L
    elif constraints.diversity == 3:
        largest = _top(classes, np.int64(1), scratch)
        if not largest < constraints.c * (total - _top(classes, int(constraints.l) - 1, scratch)):
            return FAILS_L
    elif constraints.diversity == 4 and _top(classes, np.int64(1), scratch) * constraints.l > total * (1.0 + _SLACK):
        return FAILS_L
    if constraints.closeness > 0:
        distance = earth_mover(classes, total, constraints.share, constraints.closeness, constraints.ancestors, flow)
        if distance > constraints.t + _SLACK:
            return FAILS_T
    return FITS


def first_broken(secret: Ints, counts: Longs, constraints: CutConstraints) -> int:
    """FITS, or the first constraint that these rows break as one class."""
    total, n_secret = int(counts.sum()), len(constraints.share)
    if constraints.diversity == 0 and constraints.closeness == 0:
        return FITS if total >= max(constraints.k, 1) else FAILS_K
    classes = np.bincount(secret, weights=counts, minlength=n_secret).astype(np.int64)
    return fits(classes, total, constraints, np.zeros(n_secret, np.int64), np.zeros(n_secret, np.float64))
