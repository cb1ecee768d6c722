"""k-common pattern tables: what rules with enough support say, instead of the rows they were learnt from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd

from countervail.core.errors import RefusedError, SchemaError, bad_parameter
from countervail.core.files.json_data import texts
from countervail.core.guarantee import KCommonality
from countervail.core.people import rows_for
from countervail.core.release import Release, provenance, without_traces
from countervail.core.rng import RandomState, generator
from countervail.core.schema import Schema
from countervail.core.sealed import spell_favourable
from countervail.core.table import Rows, Table
from countervail.protect._classes import SEEDED, canonical_release, checked
from countervail.protect._fitted import begin_fit, finish_fit, live_table, verify_promised, verify_unchanged
from countervail.protect.base import TableProtector
from countervail.protect.mondrian.columns import content_order
from countervail.protect.patterns.compose import Objects, PatternParts, choose, compose, describe_rest
from countervail.protect.saved import Savable, release_from_json, release_to_json
from countervail.rules import RuleSet, ValueTable
from countervail.rules.given import count_exceptions, fit_rules
from countervail.rules.induce import Inducer, cap_unions
from countervail.rules.inputs import build_value_table

Undescribed = Literal["delete", "widen"]


class KCommonPatterns(Savable, TableProtector):
    """A table of patterns: value sets for every column and a set of classes, each true of at least k rows.

    All features are generalised, whatever their role; the target becomes a set of classes. Patterns are not rows: there
    may be more or fewer of them. What well supported rules say about the class of a row, its patterns say too.

    Parameters
    ----------
    k : int
        How many rows of the table fit every pattern at least.
    objects : {"max", "min"}
        Fill a rule up with the values of the supporters most like the row (closer to the data; the paper's cT1, cT2),
        or least like it (vaguer; cT3, cT4).
    spread : bool
        Also widen columns by the other rules of the same row (cT2, cT4).
    max_union : int, optional
        The largest union of classes that a rule may conclude; see `LERS`.
    undescribed : {"delete", "widen"}
        What becomes of rows that no rule with enough support covers: the paper deletes them; "widen" (ours) gives each
        a pattern of the k rows most (or least) like it that leaves the class open.
    rules : RuleSet, optional
        Rules to make patterns of, as :func:`countervail.rules.read_rules` reads them or `LERS` learns them, in the
        place of those that would be learnt here. At least k rows must support each: they meet its condition and
        have a class of its conclusion. Patterns show the given bounds and values.
    random_state : int, optional
        Seed of the shuffle.

    Notes
    -----
    *Threat model*: someone with a register of everybody's attributes who looks at patterns one at a time. Patterns
    overlap, and what several have in common may fit fewer people than k: this is no k-anonymity. `attack.Shallow` and
    `attack.Deep` measure what is left.

    With two classes only rules for a single class exist, so rows in mixed neighbourhoods are deleted instead of being
    described vaguely, unless `undescribed="widen"`. Classes of fewer than k rows appear in unions only. Missing labels
    count as values; missing numbers are an error.

    References
    ----------
    Inuiguchi, Ichida, Torra: Data anonymization with imprecise rules and its performance evaluations (2019).

    Examples
    --------
    >>> import countervail as cv
    >>> table = cv.load("toy_evaluation")
    >>> release = cv.KCommonPatterns(k=2, random_state=0).fit(table).protect(table)
    >>> release.guarantee.k, int(release.regions.count(table.frame).min()), release.suppressed
    (2, 2, 0)
    """

    name: ClassVar[str] = "k-common"
    keeps_rows: ClassVar[bool] = False
    rows_are: ClassVar[str] = "patterns"

    def __init__(
        self,
        k: int = 5,
        objects: Objects = "max",
        spread: bool = False,
        *,
        max_union: int | None = None,
        undescribed: Undescribed = "delete",
        rules: RuleSet | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.k = k
        self.objects = objects
        self.spread = spread
        self.max_union = max_union
        self.undescribed = undescribed
        self.rules = rules
        self.random_state = random_state

    def guarantee(self) -> KCommonality:
        """Every pattern fits k people."""
        verify_promised(self)
        return KCommonality(self.k)

    def fit(self, table: Table) -> Self:
        """Learn the rules and patterns of a table."""
        given = begin_fit(self)
        self._check_parameters(table)
        self._learn(table)
        self.schema_ = spell_favourable(table.schema.kept_for({}))
        self.release_ = self._published()
        self._remember(table)
        self.fitted_as_ = finish_fit(self, given)
        return self

    def protect(self, rows: Rows | None = None) -> Release:
        """Release the patterns of the fitted table."""
        verify_unchanged(self)
        if rows is not None and rows is not live_table(self):
            must = "the fitted table itself: its patterns say nothing of other rows"
            raise bad_parameter("KCommonPatterns", "rows", must, "others", "Fit to them instead.")
        order = generator(self.random_state).permutation(len(self.release_))
        release = replace(self.release_, regions=self.release_.regions[order], audit=live_table(self))
        return checked(self._owner, release)

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls(k=3), cls(k=3, objects="min", spread=True), cls(k=5, spread=True, undescribed="widen")]

    def _saved(self) -> dict[str, Any]:
        inferred = [c.name for c in self.schema_ if c.inferred]
        return {
            "release": release_to_json(self.release_),
            "schema": self.schema_.to_dict(),
            "inferred": inferred,
        }

    def _restore(self, data: dict[str, Any], model: Any) -> None:
        self.release_ = release_from_json(data["release"], self.guarantee())
        self.schema_ = Schema.from_dict(data["schema"]).with_inferred(texts(data["inferred"]))
        self.patterns_, self.deleted_ = self.release_.regions, self.release_.suppressed

    def _learn(self, table: Table) -> None:
        target = str(table.schema.target)
        rows = table.frame[[*table.schema.features, target]].iloc[content_order(table)]
        rows = without_traces(rows.reset_index(drop=True), table.schema)
        values = build_value_table(rows[table.schema.features], rows[target], table.schema, "KCommonPatterns")
        k = rows_for(self.k, table, "KCommonPatterns")
        cap, excepted = None, False
        if self.rules is None:
            cap = cap_unions(values, self.max_union, "KCommonPatterns")
            self.rules_ = Inducer(values, target=target).supported(k, cap)
        else:
            self.rules_ = self._given(self.rules, values, table.schema, k)
            excepted = count_exceptions(self.rules_, values) > 0
        choices: list[PatternParts | None] = [None] * len(values)
        if len(self.rules_):
            choices = choose(values, self.rules_, k, self.objects)
        told = np.array([c is not None for c in choices])
        rules, rest = self.rules_, int(values.weight[~told].sum())
        widened = rest if self.undescribed == "widen" else 0
        self.deleted_ = rest - widened
        if widened:
            rules, choices[:] = describe_rest(values, rules, choices, k, self.objects)
        elif not told.any():
            raise RefusedError(
                f"KCommonPatterns cannot describe any row: no rule has k={k} supporting rows. "
                f"Nothing has left. Lower k, or use Mondrian."
            )
        kept = [c for c in choices if c is not None]
        self.patterns_ = compose(values, rules, kept, self.spread, target).pruned()
        self.rules_ = self.rules_.publishable()
        two = len(values.classes) == 2 and not widened and self.rules is None
        self.remarks_ = _remarks(two, self.deleted_, widened, cap, excepted)

    def _given(self, rules: RuleSet, values: ValueTable, schema: Schema, k: int) -> RuleSet:
        """The given rules on this table, if k rows support each."""
        fitted = fit_rules(rules, values, schema, "KCommonPatterns")
        if few := int((fitted.support < k).sum()):
            must = f"a RuleSet of rules that {k} rows support each"
            hint = (
                f"Leave those out, or learn others: LERS(k={self.k}), or countervail rules --k {self.k} -o rules.json."
            )
            raise bad_parameter("KCommonPatterns", "rules", must, f"{few} of {len(fitted)} rules with fewer", hint)
        return fitted

    def _published(self) -> Release:
        schema, n = self.schema_, len(self.patterns_)
        caveats = list(self.remarks_)
        if self.random_state is not None:
            caveats.append(SEEDED)
        release = Release(
            self.patterns_,
            np.arange(n, dtype=np.int64),
            pd.DataFrame(index=pd.RangeIndex(n)),
            schema,
            self.guarantee(),
            provenance("protector", self, schema),
            tuple(caveats),
            suppressed=self.deleted_,
        )
        return canonical_release(release, schema)

    def _check_parameters(self, table: Any) -> None:
        owner = "KCommonPatterns"
        if not isinstance(table, Table):
            hint = "Build one with Table.from_frame(df, target=...) or Table.read(path, schema=...)."
            raise bad_parameter(owner, "table", "a Table", type(table).__name__, hint)
        if not isinstance(self.k, (int, np.integer)) or isinstance(self.k, bool) or self.k < 2:
            raise bad_parameter(owner, "k", "a whole number of at least 2", self.k)
        if self.objects not in ("max", "min"):
            raise bad_parameter(owner, "objects", "'max' or 'min'", self.objects)
        if self.undescribed not in ("delete", "widen"):
            raise bad_parameter(owner, "undescribed", "'delete' or 'widen'", self.undescribed)
        if self.rules is not None and (not isinstance(self.rules, RuleSet) or not len(self.rules)):
            must, hint = "None or a RuleSet of at least one rule", "countervail.rules.read_rules reads files and data."
            raise bad_parameter(owner, "rules", must, type(self.rules).__name__, hint)
        if self.rules is not None and self.max_union is not None:
            raise bad_parameter(owner, "max_union", "None where rules are given", self.max_union)
        if table.schema.target is None or not table.schema.features:
            raise SchemaError(f"{owner} learns rules for a target, but the table lacks a target or features.")


def _remarks(two: bool, deleted: int, widened: int, cap: int | None, excepted: bool) -> tuple[str, ...]:
    # Whether there is a rare class is not told: beside the number of deleted rows it would be told of them.
    out = ["A class with fewer than k rows, if there is one, appears only together with others, or not at all."]
    if deleted:
        out.append(f"{deleted} row(s) were deleted: no rule with enough support describes them.")
    if widened:
        out.append(
            f"{widened} row(s) that no rule with enough support describes stand in patterns that leave the class open."
        )
    if two:
        out.append(
            "With two classes only rules that settle the class take part: what a union of classes would keep is lost."
        )
    if cap is not None:
        out.append(f"Only unions of up to {cap} classes were tried.")
    if excepted:
        out.append("Some of the given rules have exceptions: not everybody who meets a pattern has one of its classes.")
    return tuple(out)
