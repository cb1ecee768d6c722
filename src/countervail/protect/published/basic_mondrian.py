"""Basic Mondrian: a published code that leaves the right half of a cut unchecked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal, Self

import pandas as pd

from countervail.core.guarantee import Guarantee, NoGuarantee
from countervail.core.hierarchy import Hierarchy
from countervail.core.protocols import LeaveOneOut
from countervail.core.rng import RandomState
from countervail.core.table import Table
from countervail.protect._classes import Classes, ClassProtector
from countervail.protect.mondrian.basic_cuts import partition_basic
from countervail.protect.mondrian.columns import class_column, describe, encode, part_remarks, parts_of
from countervail.protect.mondrian.constraints import Requirements, check_word
from countervail.protect.mondrian.cut_tree import CutTree
from countervail.protect.mondrian.grow import cut_parts
from countervail.protect.mondrian.labels import class_regions, set_names
from countervail.protect.mondrian.without_one import without_each


class BasicMondrian(ClassProtector):
    """Mondrian as one published code cuts: the widest column at the median, and the right half is not counted.

    Parameters
    ----------
    k : int
        The number of rows that half of a cut cell must have, and each child of a categorical one; the right half of
        an ordered cut may have fewer.
    l : float or (float, float), optional
        Diversity of the sensitive column in both halves; `(c, l)` with `diversity="recursive"`.
    t : float, optional
        The greatest distance, from 0 to 1, between the sensitive column in a class and in the table.
    hierarchies : mapping or path, optional
        Column to :class:`~countervail.core.hierarchy.Hierarchy` or CSV file, or a folder with `<column>.csv` files.
    by_class : bool
        Cut every class of the target on its own.
    diversity : {"distinct", "entropy", "recursive", "frequency"}
        What `l` means; "frequency" bounds the largest share by 1/l.
    closeness : {"equal", "ordered", "hierarchical"}
        The ground distance of t-closeness; "hierarchical" takes the sensitive column's hierarchy.
    sensitive : str, optional
        The column that `l` and `t` speak of; they cannot do without.
    labels : {"tight", "hierarchy"}
        Ranges and sets of what the class holds, or the lowest common group of the hierarchy.
    random_state : int, optional
        Seed of the shuffle; default: the system's entropy, the only choice fit for publication.

    Attributes
    ----------
    tree_ : CutTree
        The cuts; `protect` sends new rows down, `to_json` stores them.

    Notes
    -----
    *Threat model*: none. Classes may have fewer than k rows, so somebody with a register of everybody's
    quasi-identifiers can find a single person. It is here because findings about Mondrian were made with it.
    :class:`countervail.Mondrian` checks both halves and keeps the promise.

    References
    ----------
    The Basic Mondrian of Kassem, Acs, Castelluccia: Differential inference testing, a practical approach to evaluate
    anonymized data (2018), after LeFevre, DeWitt, Ramakrishnan: Mondrian multidimensional k-anonymity (2006).

    Examples
    --------
    >>> import pandas as pd, countervail as cv
    >>> table = cv.Table.from_frame(pd.DataFrame({"age": [1, 1, 1, 1, 2]}), quasi_identifiers=["age"])
    >>> release = cv.published.BasicMondrian(k=2).fit(table).protect(table)
    >>> sorted(release.regions.count(table.frame).tolist()), type(release.guarantee).__name__
    ([1, 4], 'NoGuarantee')
    """

    name: ClassVar[str] = "published-basic-mondrian"

    def __init__(
        self,
        k: int = 10,
        *,
        l: float | tuple[float, float] | None = None,  # noqa: E741 -- the name the literature uses
        t: float | None = None,
        hierarchies: Mapping[str, Hierarchy | str | Path] | str | Path | None = None,
        by_class: bool = False,
        diversity: Literal["distinct", "entropy", "recursive", "frequency"] = "distinct",
        closeness: Literal["equal", "ordered", "hierarchical"] = "equal",
        sensitive: str | None = None,
        labels: Literal["tight", "hierarchy"] = "tight",
        random_state: RandomState = None,
    ) -> None:
        self.k = k
        self.l = l
        self.t = t
        self.hierarchies = hierarchies
        self.by_class = by_class
        self.diversity = diversity
        self.closeness = closeness
        self.sensitive = sensitive
        self.labels = labels
        self.random_state = random_state

    def guarantee(self) -> Guarantee:
        """Nothing: a class may have any number of rows."""
        return NoGuarantee("the right half of a cut is not checked")

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(k=3), cls(k=3, by_class=True), cls(k=2, l=2, t=0.6, sensitive="ill")]

    def leave_one_out(self, table: Table, sensitive: str) -> LeaveOneOut | None:
        """What would be released without each person, for tests of a release; None where that takes a run each.

        There is a short way for k or l on the whole table at once (not with t, whose yardstick is the table's own
        distribution).
        """
        if self.by_class or self.t is not None:
            return None
        if self.l is not None and self.sensitive != sensitive:
            return None
        alone = BasicMondrian(**self.get_params(deep=False))
        return without_each(alone, table, sensitive, gain=False, basic=True)

    def _requirements(self) -> Requirements:
        return Requirements(self._owner, self.k, self.l, self.t, self.diversity, self.closeness, self.sensitive)

    def _learn(self, table: Table) -> Classes:
        required, groups = self._requirements(), self.labels == "hierarchy"
        required.check()
        check_word(self._owner, "labels", self.labels, ("tight", "hierarchy"))
        self.by_ = class_column(table, by_class=self.by_class, owner=self._owner)
        self.hierarchies_ = required.read_hierarchies(table, self.hierarchies)
        self.quasi_, codes = encode(table, self.hierarchies_)
        data = describe(self.quasi_, tree_loss=groups)
        secret, constraints = required.read(table, self.hierarchies_)
        check = partial(required.check_part, table=table, by=self.by_)
        found = cut_parts(codes, secret, data, constraints, parts_of(table, self.by_), partition_basic, check)
        self.regions_ = class_regions(
            self.quasi_, found.distinct, found.distinct_cells, found.n_cells, data, groups=groups
        )
        self.tree_ = CutTree.of(self.quasi_, found.branches, self.regions_, self.by_)
        self.words_ = set_names(self.quasi_, groups=groups)
        return Classes(found.cell_of, self.regions_, part_remarks(self.by_), self.words_)

    def _assign(self, frame: pd.DataFrame) -> Classes:
        return self.tree_.classes(frame, self.words_)
