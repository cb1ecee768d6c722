"""Mondrian: a table cut into classes that at least k people share, with l-diversity and t-closeness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from sklearn.base import clone

from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.guarantee import AllOf, Guarantee, KAnonymity, LDiversity, NoGuarantee, TCloseness
from countervail.core.guarantee.diversity import value_ranks
from countervail.core.hierarchy import Hierarchy, read_hierarchies
from countervail.core.protocols import LeaveOneOut
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.rng import RandomState, generator
from countervail.core.table import Rows, Table
from countervail.ledger.ledger import Ledger, check_ledger
from countervail.protect._recorded import partition_digest
from countervail.protect.base import Classes, TableProtector, check_unchanged
from countervail.protect.mondrian.columns import describe, encode
from countervail.protect.mondrian.constraints import (
    CLOSENESS,
    DIVERSITY,
    FAILS_K,
    FAILS_L,
    FITS,
    Attributes,
    Ints,
    Rules,
    make_rules,
)
from countervail.protect.mondrian.cut_tree import Branch, CutTree
from countervail.protect.mondrian.grow import Partition, partition
from countervail.protect.mondrian.labels import class_regions, group_names
from countervail.protect.mondrian.parameters import check_parameters
from countervail.protect.mondrian.profiles import partition_basic, partition_equal
from countervail.protect.mondrian.relaxed import share_ties
from countervail.protect.mondrian.route import as_one
from countervail.protect.mondrian.suppress import leave_out
from countervail.protect.mondrian.without_one import WithoutEach

_NEW_ROWS = (
    "Rows that were not part of the fitted table have been sent to its nearest cells.",
    "Do not release another set of rows with some of the same people: who is in one set only is the difference of the "
    "two releases.",
)


class Mondrian(TableProtector):
    """Mondrian: cut at the median while both halves keep k, l and t; publish the cells' ranges and sets.

    Parameters
    ----------
    k : int
        The least number of rows that share every published combination of quasi-identifiers; 1 promises nothing.
    l : float, optional
        Diversity of the sensitive column in every class.
    t : float, optional
        The greatest distance, from 0 to 1, between the sensitive column in a class and in the table.
    mode : {"strict", "relaxed"}
        Equal values stay together; or cells of 2k rows and more are cut on, and rows of equal value are shared out
        between the halves, by lot where all quasi-identifiers are equal. New rows go to the strict cells.
    hierarchies : mapping or path, optional
        Column to :class:`~countervail.core.hierarchy.Hierarchy` or CSV file, or a folder with `<column>.csv` files.
    by_class : bool
        Cut every class of the target on its own.
    choose : {"gain", "span"}
        Cut the column that saves most information loss, or the one of widest span (classic).
    diversity : {"distinct", "entropy", "recursive", "frequency"}
        What `l` means; "recursive" also takes `c`, "frequency" bounds the largest share by 1/l.
    c : float
        Of recursive (c, l)-diversity.
    closeness : {"equal", "ordered", "hierarchical"}
        The ground distance of t-closeness; "hierarchical" takes the sensitive column's hierarchy.
    sensitive : str, optional
        The column that `l` and `t` protect; default: the schema's only sensitive one.
    labels : {"tight", "hierarchy"}
        Ranges and sets of what the class holds, or the lowest common group of the hierarchy.
    profile : {None, "basic"}
        "basic" leaves the right half of a cut unchecked, as one published code does: for reproduction only.
    halves : {None, "equal"}
        "equal" cuts sorted rows in the middle and parts equal rows by lot; k only, and no tree for new rows.
    suppress : float
        The share of rows that may be left out so that the others of their class get narrower labels; not with `t`.
    random_state : int, optional
        Seed of the shuffle; default: the system's entropy, the only choice fit for publication.
    ledger : Ledger, optional
        Records the classes before a table leaves; other classes of the same people are refused from then on, and so
        are rows that are not the fitted table.

    Attributes
    ----------
    tree_ : CutTree
        The cuts; `protect` sends new rows down, `to_json` stores them.

    Notes
    -----
    *Threat model*: someone who holds a register of everybody's quasi-identifiers. Cuts that look at quasi-identifiers
    alone withstand one who also reruns this code (`against="algorithm"`), shared ties and suppressed rows included.
    A lot is drawn at `fit`: publish one fit of the same people, not several. With l or t the cuts depend on the
    sensitive values and a cut that was refused tells something: all promises are `against="register"`. Columns that are
    neither identifiers nor quasi-identifiers are published as they are. See docs/decisions/mondrian-guarantee.md. A
    fitted object holds the table: its pickle is as private as the rows.

    References
    ----------
    LeFevre, DeWitt, Ramakrishnan: Mondrian multidimensional k-anonymity (2006). Machanavajjhala et al.: l-diversity
    (2007). Li, Li, Venkatasubramanian: t-closeness (2007).

    Examples
    --------
    >>> import countervail as cv
    >>> table = cv.load("toy_credit")
    >>> release = cv.Mondrian(k=5).fit(table).protect(table)
    >>> print("; ".join(sorted(release.regions.text())))
    age 23-47, gender {F, M}, city Antwerp; age 25-70, gender {F, M}, city Brussels
    """

    name: ClassVar[str] = "mondrian"

    def __init__(
        self,
        k: int = 10,
        *,
        l: float | None = None,  # noqa: E741 -- the name the literature uses
        t: float | None = None,
        mode: Literal["strict", "relaxed"] = "strict",
        hierarchies: Mapping[str, Hierarchy | str | Path] | str | Path | None = None,
        by_class: bool = False,
        choose: Literal["gain", "span"] = "gain",
        diversity: Literal["distinct", "entropy", "recursive", "frequency"] = "distinct",
        c: float = 3.0,
        closeness: Literal["equal", "ordered", "hierarchical"] = "equal",
        sensitive: str | None = None,
        labels: Literal["tight", "hierarchy"] = "tight",
        profile: Literal["basic"] | None = None,
        halves: Literal["equal"] | None = None,
        suppress: float = 0.0,
        random_state: RandomState = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.k = k
        self.l = l
        self.t = t
        self.mode = mode
        self.hierarchies = hierarchies
        self.by_class = by_class
        self.choose = choose
        self.diversity = diversity
        self.c = c
        self.closeness = closeness
        self.sensitive = sensitive
        self.labels = labels
        self.profile = profile
        self.halves = halves
        self.suppress = suppress
        self.random_state = random_state
        self.ledger = ledger

    def guarantee(self) -> Guarantee:
        """k against whoever knows the code, if only quasi-identifiers were looked at; else all against a register."""
        if self.profile == "basic":
            return NoGuarantee("the right half of a cut is not checked (profile='basic')")
        secret = getattr(self, "sensitive_", self.sensitive) or ""
        parts: list[Guarantee] = []
        if self.k > 1:
            parts.append(KAnonymity(self.k, against="register" if self._looks_at_secrets else "algorithm"))
        if self.l is not None:
            c = self.c if self.diversity == "recursive" else None
            parts.append(LDiversity(self.l, self.diversity, secret, c))
        if self.t is not None:
            parts.append(TCloseness(self.t, self.closeness, secret, tree=self._secret_tree(secret)))
        if not parts:
            return NoGuarantee("k=1: a class may hold a single person")
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def protect(self, rows: Rows) -> Release:
        """Release rows: the fitted table, or new rows sent to its classes.

        New rows leave in classes that keep the promise among themselves; the others are suppressed and counted. With a
        ledger only the fitted table leaves, once its classes are recorded.
        """
        check_unchanged(self)
        if self.ledger is not None and rows is not self.table_:
            must = "the fitted table itself with a ledger: two sets of rows that overlap can be subtracted"
            hint = "Fit to all rows that are to be released, or pass `table_` of a protector that was read from a file."
            raise bad_parameter("Mondrian", "rows", must, "other rows", hint)
        release = super().protect(rows)
        if self.ledger is not None:
            label = self.cell_of_.astype(np.int64)
            self.ledger.record_grouping(partition_digest(self.ledger, self.table_, label, self.regions_), self.name)
        return release

    @property
    def tree_(self) -> CutTree:
        """The cut tree."""
        branches: list[Branch] | None = getattr(self, "branches_", None)
        if branches is None:
            raise AttributeError("There is no cut tree before fit, and none at all with halves='equal'.")
        return CutTree.of(self.quasi_, branches, self.strict_regions_, self.by_)

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [
            cls(k=5),
            cls(k=5, choose="span", by_class=True),
            cls(k=4, l=2, sensitive="ill"),
            cls(k=4, l=1.5, diversity="entropy", t=0.4, sensitive="ill"),
            cls(k=5, halves="equal"),
            cls(k=5, mode="relaxed", suppress=0.1),
            cls(k=3, profile="basic"),
            cls(k=1),
        ]

    def leave_one_out(self, table: Table, sensitive: str) -> LeaveOneOut | None:
        """What would be released without each person, for tests of a release; None where that takes a run each.

        There is a short way for strict cuts with k and l (not with t, whose yardstick is the table's own distribution,
        nor where lots are drawn or rows left out).
        """
        if self.mode != "strict" or self.t is not None or self.halves is not None or self.suppress > 0:
            return None
        if self.profile == "basic" and self.by_class:
            return None
        if sensitive not in table.schema or table.schema[sensitive].role in ("identifier", "quasi"):
            return None
        fresh = Mondrian(**{**self.get_params(deep=False), "ledger": None}).fit(table)
        if fresh.sensitive_ not in (None, sensitive):
            return None
        return fresh._without_each(table, sensitive)

    def _without_each(self, table: Table, sensitive: str) -> WithoutEach | None:
        def refit(others: Table) -> tuple[Regions, Ints]:
            again = clone(self).fit(others)
            return again.regions_, again.cell_of_

        _, codes = encode(table, {q.column.name: q.hierarchy for q in self.quasi_ if q.hierarchy is not None})
        data = describe(self.quasi_, tree_loss=self.labels == "hierarchy")
        secret, kinds = pd.factorize(table.frame[sensitive], use_na_sentinel=False)
        values = tuple(None if pd.isna(v) else v for v in kinds.tolist())
        _, rules = self._rules(table)
        part = np.zeros(len(table), np.int32)
        for number, (_, rows) in enumerate(self._parts(table)):
            part[rows] = number
        groups, gain, basic = self.labels == "hierarchy", self.choose == "gain", self.profile == "basic"
        found = WithoutEach(
            table, tuple(self.quasi_), codes, data, rules, secret.astype(np.int32), values, part, groups, gain, basic,
            refit,
        )  # fmt: skip
        return found if found.survives() else None

    @property
    def _looks_at_secrets(self) -> bool:
        return self.l is not None or self.t is not None

    def _learn(self, table: Table) -> None:
        check_parameters(vars(self))
        check_ledger(self.ledger, "Mondrian")
        self.by_ = self._class_column(table)
        self.sensitive_ = self._sensitive(table)
        wanted = table.schema.names("quasi")
        extra = [self.sensitive_] if self.sensitive_ and self.closeness == "hierarchical" else []
        self.hierarchies_ = read_hierarchies(self.hierarchies, [*wanted, *extra], "Mondrian")
        grouped = {n: h for n, h in self.hierarchies_.items() if n in wanted}
        self.quasi_, codes = encode(table, grouped)
        data = describe(self.quasi_, tree_loss=self.labels == "hierarchy")
        secret, rules = self._rules(table)
        if self.halves == "equal":
            self._learn_halves(table, codes, data, rules)
        else:
            self._learn_cuts(table, codes, data, secret, rules)

    def _learn_cuts(self, table: Table, codes: Ints, data: Attributes, secret: Ints, rules: Rules) -> None:
        """Equal rows are cut as one; a label needs each of them once."""
        cell_of = np.empty(len(table), np.int32)
        branches, first, parts = [], 0, []
        for value, rows in self._parts(table):
            distinct, values, counts, which = as_one(codes[rows], secret[rows], data.sizes, len(rules.share))
            cut = partition_basic if self.profile == "basic" else self._partition
            found = cut(distinct, counts, values, data, rules)
            self._check_root(found, table, len(rows))
            branches.append(Branch(value, first, found.tree))
            cell_of[rows] = found.cell_of[which] + first
            parts.append((distinct, found.cell_of + np.int32(first)))
            first += found.n_cells
        self.branches_: list[Branch] | None = branches
        self._label(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]), first, data)
        self._narrow(codes, secret, cell_of, first, data, rules)

    def _learn_halves(self, table: Table, codes: Ints, data: Attributes, rules: Rules) -> None:
        """Rows sorted by content; the order of equal ones is drawn by lot, so that it tells nothing about them."""
        rng = generator(self.random_state)
        cell_of, first = np.empty(len(table), np.int32), 0
        for _, rows in self._parts(table):
            if len(rows) < self.k:
                raise self._too_few(len(rows))
            drawn = rng.permutation(rows)
            order = drawn[np.lexsort(codes[drawn].T[::-1])]
            cells, n_cells = partition_equal(codes[order], data, self.k)
            cell_of[order] = cells + first
            first += n_cells
        self.branches_ = None
        self._label(codes, cell_of, first, data)
        self._narrow(codes, np.zeros(len(codes), np.int32), cell_of, first, data, rules)

    def _narrow(self, codes: Ints, secret: Ints, cell_of: Ints, n_cells: int, data: Attributes, rules: Rules) -> None:
        """Share ties out and leave rows out, where that is wanted; new rows keep to the cells without either."""
        self.strict_regions_, self.suppressed_ = self.regions_, 0
        if self.mode == "relaxed":
            drawn = generator(self.random_state).permutation(len(codes))
            gain = self.choose == "gain"
            cell_of, n_cells = share_ties(codes, secret, cell_of, n_cells, data, rules, drawn, gain=gain)
        if budget := int(self.suppress * len(codes)):
            cell_of = leave_out(codes, secret, cell_of, n_cells, data, rules, budget)
            self.suppressed_ = int((cell_of < 0).sum())
        self.cell_of_ = cell_of
        if self.mode == "relaxed" or self.suppressed_:
            self._label(codes, cell_of, n_cells, data)

    def _label(self, codes: Ints, cell_of: Ints, n_cells: int, data: Attributes) -> None:
        groups = self.labels == "hierarchy"
        self.regions_ = class_regions(self.quasi_, codes, cell_of.astype(np.int32), n_cells, data, groups=groups)

    def _partition(self, codes: Ints, counts: Any, secret: Ints, data: Attributes, rules: Rules) -> Partition:
        return partition(codes, counts, secret, data, rules, gain=self.choose == "gain")

    def _assign(self, frame: pd.DataFrame | None) -> Classes:
        if frame is None:
            return Classes(self.cell_of_, self.regions_, self._remarks(), self._words())
        if self.branches_ is None:
            raise bad_parameter(
                "Mondrian", "rows", "the fitted table itself with halves='equal'", "other rows", "Fit to them instead."
            )
        tree = self.tree_
        cells = tree.cells(frame)
        lost = int((cells < 0).sum())
        text = f"{lost} row(s) were suppressed: they hold categories, classes or missing values the cuts never saw."
        remarks = (*_NEW_ROWS, *((text,) if lost else ()), *self._by_class())
        return Classes(cells, tree.regions, remarks, self._words())

    def _by_class(self) -> list[str]:
        return [] if self.by_ is None else [f"The classes of '{self.by_}' were cut one by one."]

    def _remarks(self) -> tuple[str, ...]:
        remarks = self._by_class()
        if self.mode == "relaxed" or self.halves == "equal":
            remarks.append(
                "Equal rows were shared out between classes by lot. Do not publish another fit of the same people: "
                "two lots together tell more than one."
            )
        if self.suppress > 0:
            allowed = int(self.suppress * len(self.cell_of_))
            remarks.append(f"{self.suppressed_} row(s) were suppressed to spare the others; {allowed} were allowed.")
        return tuple(remarks)

    def _words(self) -> dict[str, dict[str, str]]:
        """What hierarchies call the published sets."""
        return {q.column.name: group_names(q) for q in self.quasi_ if q.hierarchy and self.labels == "hierarchy"}

    def _parts(self, table: Table) -> Iterator[tuple[Any, Any]]:
        """The rows to cut: all at once, or each class of the target in the order of its name."""
        if self.by_ is None:
            yield None, np.arange(len(table))
            return
        codes, kinds = pd.factorize(table.frame[self.by_], use_na_sentinel=False)
        values = [None if pd.isna(v) else v for v in kinds.tolist()]
        for i in sorted(range(len(values)), key=lambda i: (type(values[i]).__name__, str(values[i]))):
            yield values[i], np.flatnonzero(codes == i)

    def _rules(self, table: Table) -> tuple[Ints, Rules]:
        """Codes of the sensitive column, and the constraints; the table's distribution is the yardstick of t."""
        n = len(table)
        if not self._looks_at_secrets:
            secret = np.zeros(n, np.int32)
            return secret, make_rules(secret, np.ones(n, np.int64), 1, self.k)
        column = table.schema[self.sensitive_ or ""]
        codes, kinds = pd.factorize(table.frame[column.name], use_na_sentinel=False)
        values = [None if pd.isna(v) else v for v in kinds.tolist()]
        above = None
        if self.t is not None and self.closeness == "ordered":
            codes = value_ranks(values, column)[codes]
        if self.t is not None and self.closeness == "hierarchical":
            if column.name not in self.hierarchies_:
                hint = f"Add the hierarchy of '{column.name}'."
                raise bad_parameter("Mondrian", "hierarchies", "given for the sensitive column", "none", hint)
            above = self.hierarchies_[column.name].ancestors(values)
        secret = codes.astype(np.int32)
        rules = make_rules(
            secret,
            np.ones(n, np.int64),
            len(values),
            self.k,
            DIVERSITY[self.diversity if self.l is not None else "none"],
            1.0 if self.l is None else self.l,
            self.c,
            CLOSENESS[self.closeness if self.t is not None else "none"],
            1.0 if self.t is None else self.t,
            above,
        )
        return secret, rules

    def _check_root(self, found: Partition, table: Table, rows: int) -> None:
        """A table that cannot keep the promise as one class is an error, not one class without a word."""
        if found.failed == FITS:
            return
        if found.failed == FAILS_K:
            raise self._too_few(rows)
        part = "the whole table" if self.by_ is None else f"every class of '{self.by_}'"
        if found.failed == FAILS_L:
            values = table.frame[self.sensitive_].nunique(dropna=False)
            must = f"a {self.diversity} diversity that {part} has; '{self.sensitive_}' takes {values} different values"
            raise bad_parameter("Mondrian", "l", must, self.l)
        raise bad_parameter("Mondrian", "t", f"a distance within which {part} lies", self.t)

    def _too_few(self, rows: int) -> Exception:
        what = "the number of rows" if self.by_ is None else f"the number of rows of every class of '{self.by_}'"
        return bad_parameter("Mondrian", "k", f"at most {what}, {rows}", self.k)

    def _class_column(self, table: Table) -> str | None:
        if self.by_class and table.schema.target is None:
            raise SchemaError("Mondrian(by_class=True) cuts the classes of the target, but the table has no target.")
        return table.schema.target if self.by_class else None

    def _sensitive(self, table: Table) -> str | None:
        """The column that l and t protect."""
        if not self._looks_at_secrets:
            return None
        if self.sensitive is None:
            named = table.schema.names("sensitive")
            if len(named) != 1:
                hint = "Name one with sensitive='...'."
                raise bad_parameter("Mondrian", "sensitive", "given: the schema has not exactly one", named, hint)
            return named[0]
        if table.schema[self.sensitive].role in ("identifier", "quasi"):
            must = "a column that is neither identifier nor quasi-identifier"
            raise bad_parameter("Mondrian", "sensitive", must, self.sensitive)
        return self.sensitive

    def _secret_tree(self, secret: str) -> tuple[tuple[str, ...], ...] | None:
        if self.closeness != "hierarchical" or not secret:
            return None
        held = getattr(self, "hierarchies_", None)
        found = held if held is not None else _one_hierarchy(self.hierarchies, secret)
        return found[secret].rows if secret in found else None


def _one_hierarchy(given: Any, name: str) -> dict[str, Hierarchy]:
    wanted = {name: given[name]} if isinstance(given, Mapping) and name in given else given
    return read_hierarchies(wanted, [name], "Mondrian") if not isinstance(given, Mapping) or name in given else {}
