"""Mondrian: a table cut into classes that at least k people share, with l-diversity and t-closeness."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.errors import bad_parameter
from countervail.core.files.json_data import texts
from countervail.core.guarantee import Guarantee
from countervail.core.hierarchy import Hierarchy
from countervail.core.people import say_rows_per_person
from countervail.core.protocols import LeaveOneOut
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.rng import RandomState, generator
from countervail.core.schema import Schema
from countervail.core.table import Rows, Table
from countervail.engine.scan import Scan
from countervail.ledger.ledger import Ledger, check_ledger
from countervail.protect._classes import Classes, ClassProtector
from countervail.protect._fitted import live_table, verify_promised, verify_unchanged
from countervail.protect._scanned import ScannedClasses
from countervail.protect.mondrian.columns import (
    Attributes,
    as_one,
    class_column,
    content_order,
    describe,
    encode,
    named_gaps,
    part_remarks,
    parts_of,
)
from countervail.protect.mondrian.constraints import CutConstraints, Ints, Longs, Requirements, check_word, is_number
from countervail.protect.mondrian.cut_tree import CutTree
from countervail.protect.mondrian.grow import CutRows, Partition, cut_parts, partition
from countervail.protect.mondrian.labels import class_regions, set_names
from countervail.protect.mondrian.local.exchange import improve
from countervail.protect.mondrian.named.gaps import partition_named
from countervail.protect.mondrian.narrow import leave_out, share_ties
from countervail.protect.mondrian.scanned.learn import CountedRows, learn_scan
from countervail.protect.mondrian.sorted_growth import MANY, partition_sorted
from countervail.protect.mondrian.without_one import without_each
from countervail.protect.saved import Savable, parameters_to_json, release_from_json, release_to_json

_MOST_PAIRS = 10**10  # of a distinct row and a class: minutes
BY_LOT = (
    "Equal rows were shared out between classes by lot. Do not publish another fit of the same people: two lots "
    "together tell more than one."
)


class Mondrian(Savable, ClassProtector):
    """Mondrian: cut at the median while both halves keep k, l and t; publish the cells' ranges and sets.

    Parameters
    ----------
    k : int
        The least number of rows that share every published combination of quasi-identifiers; 1 promises nothing.
    l : float or (float, float), optional
        Diversity of the sensitive column in every class; `(c, l)` with `diversity="recursive"`.
    t : float, optional
        The greatest distance, from 0 to 1, between the sensitive column in a class and in the table.
    mode : {"strict", "relaxed", "local"}
        Equal values stay together; or cells of 2k rows and more are cut on, and rows of equal value are shared out
        between the halves, by lot where all quasi-identifiers are equal; or rows (equal ones together) move between
        cells while the table loses less, which takes longer. New rows go to the strict cells.
    hierarchies : mapping or path, optional
        Column to :class:`~countervail.core.hierarchy.Hierarchy` or CSV file, or a folder with `<column>.csv` files.
    by_class : bool
        Cut every class of the target on its own.
    choose : {"gain", "span"}
        Cut the column that saves most information loss, or the one of widest span (classic).
    diversity : {"distinct", "entropy", "recursive", "frequency"}
        What `l` means; "frequency" bounds the largest share by 1/l.
    closeness : {"equal", "ordered", "hierarchical"}
        The ground distance of t-closeness; "hierarchical" takes the sensitive column's hierarchy.
    sensitive : str, optional
        The column that `l` and `t` speak of; they cannot do without.
    labels : {"tight", "hierarchy"}
        Ranges and sets of what the class holds, or the lowest common group of the hierarchy.
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
    fitted object holds what it publishes and the cuts, and no rows.

    References
    ----------
    LeFevre, DeWitt, Ramakrishnan: Mondrian multidimensional k-anonymity (2006). Machanavajjhala et al.: l-diversity
    (2007). Li, Li, Venkatasubramanian: t-closeness (2007). Variants that others published: `cv.published`.

    Examples
    --------
    >>> import countervail as cv
    >>> table = cv.load("toy_credit")
    >>> release = cv.Mondrian(k=5).fit(table).protect(table)
    >>> print("; ".join(sorted(release.regions.text())))
    age 23-47, gender {F, M}, city Antwerp; age 25-70, gender {F, M}, city Brussels
    """

    name: ClassVar[str] = "mondrian"
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"l": 3, "sensitive": "illness"})

    def __init__(
        self,
        k: int = 10,
        *,
        l: float | tuple[float, float] | None = None,  # noqa: E741 -- the name the literature uses
        t: float | None = None,
        mode: Literal["strict", "relaxed", "local"] = "strict",
        hierarchies: Mapping[str, Hierarchy | str | Path] | str | Path | None = None,
        by_class: bool = False,
        choose: Literal["gain", "span"] = "gain",
        diversity: Literal["distinct", "entropy", "recursive", "frequency"] = "distinct",
        closeness: Literal["equal", "ordered", "hierarchical"] = "equal",
        sensitive: str | None = None,
        labels: Literal["tight", "hierarchy"] = "tight",
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
        self.closeness = closeness
        self.sensitive = sensitive
        self.labels = labels
        self.suppress = suppress
        self.random_state = random_state
        self.ledger = ledger

    def guarantee(self) -> Guarantee:
        """k against whoever knows the code, if only quasi-identifiers were looked at; else all against a register."""
        verify_promised(self)
        return self._requirements().promise(getattr(self, "hierarchies_", self.hierarchies))

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [
            cls(k=5),
            cls(k=5, choose="span", by_class=True),
            cls(k=4, l=2, sensitive="ill"),
            cls(k=4, l=(3.0, 2), diversity="recursive", sensitive="ill"),
            cls(k=4, l=1.5, diversity="entropy", t=0.4, sensitive="ill"),
            cls(k=5, mode="relaxed", suppress=0.1),
            cls(k=5, mode="local"),
            cls(k=1),
        ]

    def leave_one_out(self, table: Table, sensitive: str) -> LeaveOneOut | None:
        """What would be released without each person, for tests of a release; None where that takes a run each.

        There is a short way for strict cuts with k and l (not with t, whose yardstick is the table's own distribution,
        nor where lots are drawn, rows left out, or values missing under a hierarchy that names the classes).
        """
        if self.mode != "strict" or self.t is not None or self.suppress > 0:
            return None
        if self.l is not None and self.sensitive != sensitive:
            return None
        alone = Mondrian(**{**self.get_params(deep=False), "ledger": None})
        return without_each(alone, table, sensitive, gain=self.choose == "gain", basic=False)

    def _requirements(self) -> Requirements:
        return Requirements("Mondrian", self.k, self.l, self.t, self.diversity, self.closeness, self.sensitive)

    def _released(self, rows: Rows | None) -> Release:
        """With a ledger only the fitted table leaves, once its classes are recorded."""
        verify_unchanged(self)
        if self.ledger is not None and rows is not None and rows is not live_table(self):
            must = "the fitted table itself with a ledger: two sets of rows that overlap can be subtracted"
            hint = "Fit to all rows that are to be released, or leave `rows` out to release the fitted table."
            raise bad_parameter("Mondrian", "rows", must, "other rows", hint)
        release = super()._released(rows)
        if self.ledger is not None:
            self.ledger.record_grouping(self.partition_, self.name)
        return release

    def _learn(self, table: Table, counted: CountedRows | None = None) -> Classes:
        """The classes of a table, or of distinct rows that stand for as many as were counted."""
        counts, most = (None, None) if counted is None else (counted.counts, counted.most)
        required = self._requirements()
        required.check()
        self._check_cuts()
        if self.ledger is not None:
            check_ledger(self.ledger, "Mondrian")
        self.by_ = class_column(table, by_class=self.by_class, owner="Mondrian")
        self.hierarchies_ = required.read_hierarchies(table, self.hierarchies)
        self.quasi_, codes = encode(table, self.hierarchies_)
        data = describe(self.quasi_, tree_loss=self.labels == "hierarchy")
        secret, constraints = required.read(table, self.hierarchies_, counts, most)
        cut: Callable[..., Partition] = partial(partition, gain=self.choose == "gain")
        if self.choose == "gain" and len(codes) > MANY:
            cut = partition_sorted
        if self.choose == "gain" and (gaps := named_gaps(self.quasi_, tree_loss=data.tree_loss)):
            cut = partial(partition_named, gaps=gaps)
        check = partial(required.check_part, table=table, by=self.by_, most=most)
        found = cut_parts(codes, secret, data, constraints, parts_of(table, self.by_), cut, check, counts)
        self.strict_regions_ = self._named(found.distinct, found.distinct_cells, found.n_cells, data)
        cell_of = self._narrow(table, codes, secret, found, data, constraints, counted)
        self.tree_ = CutTree.of(self.quasi_, found.branches, self.strict_regions_, self.by_)
        self.words_ = set_names(self.quasi_, groups=self.labels == "hierarchy")
        rows = len(table) if counted is None else counted.rows
        people = say_rows_per_person(table, self.k) if counted is None else counted.remarks(self.k)
        return Classes(cell_of, self.regions_, self._remarks(people, rows), self.words_)

    def _narrow(
        self,
        table: Table,
        codes: Ints,
        secret: Ints,
        found: CutRows,
        data: Attributes,
        constraints: CutConstraints,
        counted: CountedRows | None,
    ) -> Ints:
        """Share ties out and leave rows out, where that is wanted; new rows keep to the cells without either."""
        cell_of, n_cells = found.cell_of, found.n_cells
        self.suppressed_ = 0
        gain, relaxed = self.choose == "gain", self.mode == "relaxed"
        if relaxed and counted is None:
            drawn = generator(self.random_state).permutation(content_order(table))
            cell_of, n_cells = share_ties(codes, secret, cell_of, n_cells, data, constraints, drawn, gain=gain)
        if self.mode == "local":
            weights = None if counted is None else counted.counts
            cell_of, n_cells = self._exchange(codes, cell_of, n_cells, data, constraints.k, weights)
        budget = int(self.suppress * (len(codes) if counted is None else counted.rows))
        if counted is not None and (budget or relaxed):
            shared = counted.narrow(codes, secret, cell_of, n_cells, data, constraints, budget, relaxed, gain)
            self.suppressed_ = int(shared.count[shared.cell < 0].sum())
            self.regions_ = self._named(shared.codes, shared.cell, shared.n_cells, data)
            return shared.classes()
        if budget:
            cell_of = leave_out(codes, secret, cell_of, n_cells, data, constraints, budget)
            self.suppressed_ = int((cell_of < 0).sum())
        self.regions_ = self.strict_regions_
        if self.mode != "strict" or self.suppressed_:
            self.regions_ = self._named(codes, cell_of, n_cells, data)
        return cell_of

    def _exchange(
        self, codes: Ints, cell_of: Ints, n_cells: int, data: Attributes, k: int, weights: Longs | None
    ) -> tuple[Ints, int]:
        """Distinct rows moved between cells."""
        distinct, _, counts, which = as_one(codes, np.zeros(len(codes), np.int32), data.sizes, 1)
        if weights is not None:
            counts = np.bincount(which, weights, len(distinct)).astype(np.int64)
        if len(distinct) * n_cells > _MOST_PAIRS:
            hint = "Round numbers, or group values, so that there are fewer different rows."
            must = "'strict' or 'relaxed' for so many different rows and classes"
            raise bad_parameter("Mondrian", "mode", must, self.mode, hint)
        cells = np.zeros(len(distinct), np.int32)
        cells[which] = cell_of
        cells = improve(distinct, counts, cells, data, k)
        return cells[which], int(cells.max()) + 1

    def _named(self, codes: Ints, cell_of: Ints, n_cells: int, data: Attributes) -> Regions:
        groups = self.labels == "hierarchy"
        return class_regions(self.quasi_, codes, cell_of.astype(np.int32), n_cells, data, groups=groups)

    def _learn_scan(self, scan: Scan) -> ScannedClasses:
        return learn_scan(self, scan, self._requirements())

    def _assign(self, frame: pd.DataFrame) -> Classes:
        return self.tree_.classes(frame, self.words_)

    def _saved(self) -> dict[str, Any]:
        self._refuse_when_continued("a saved protector")
        if self.ledger is not None:
            self.ledger.record_grouping(self.partition_, self.name)
        parameters = {**self.get_params(deep=False), "hierarchies": self.hierarchies_ or None}
        return {
            "parameters": parameters_to_json(parameters),
            "release": release_to_json(self.release_),
            "schema": self.schema_.to_dict(),
            "inferred": [c.name for c in self.schema_ if c.inferred],
            "tree": json.loads(self.tree_.to_json()),
            "words": self.words_,
        }

    def _restore(self, data: dict[str, Any], model: Any) -> None:
        given = self.hierarchies if isinstance(self.hierarchies, Mapping) else {}
        self.hierarchies_ = {n: h for n, h in given.items() if isinstance(h, Hierarchy)}
        self.schema_ = Schema.from_dict(data["schema"]).with_inferred(texts(data["inferred"]))
        self.tree_ = CutTree.from_json(json.dumps(data["tree"]))
        self.words_ = {n: dict(words) for n, words in data["words"].items()}
        self.release_ = release_from_json(data["release"], self.guarantee())
        self.regions_, self.by_, self.partition_ = self.release_.regions, self.tree_.by, b""
        self.version_ = 1

    def _remarks(self, people: tuple[str, ...], rows: int) -> tuple[str, ...]:
        remarks = [*people, *part_remarks(self.by_)]
        if self.mode == "relaxed":
            remarks.append(BY_LOT)
        if self.suppress > 0:
            allowed = int(self.suppress * rows)
            remarks.append(f"{self.suppressed_} row(s) were suppressed to spare the others; {allowed} were allowed.")
        return tuple(remarks)

    def _check_cuts(self) -> None:
        """What the other parameters must be, whatever the table."""
        check_word("Mondrian", "mode", self.mode, ("strict", "relaxed", "local"))
        if self.mode == "local" and (self.l is not None or self.t is not None or self.by_class):
            hint = "Rows move by quasi-identifiers alone, and would not keep what l, t or by_class settled."
            raise bad_parameter("Mondrian", "mode", "'strict' or 'relaxed' with l, t or by_class", self.mode, hint)
        check_word("Mondrian", "choose", self.choose, ("gain", "span"))
        check_word("Mondrian", "labels", self.labels, ("tight", "hierarchy"))
        if not (is_number(self.suppress) and 0 <= self.suppress < 1):
            must = "a share of rows, at least 0 and below 1"
            raise bad_parameter("Mondrian", "suppress", must, self.suppress)
        if self.suppress > 0 and self.t is not None:
            hint = "The yardstick of t is the table; rows that are left out would bend it."
            raise bad_parameter("Mondrian", "suppress", "0 with t", self.suppress, hint)


def class_rows(table: Table, k: int) -> NDArray[np.int64]:
    """The class of each row in the strict table that hides everybody among k."""
    return Mondrian(k)._learn(table).of.astype(np.int64)
