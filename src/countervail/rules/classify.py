"""Rules as scikit-learn classifiers: MLEM2 (precise rules) and LERS (imprecise ones, publishable with k)."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from countervail.core.errors import bad_parameter
from countervail.core.people import rows_per_person
from countervail.core.release import Release
from countervail.core.schema import Schema
from countervail.core.table import Table
from countervail.rules.induce import SEMANTICS, Inducer, Semantics, cap_unions
from countervail.rules.inputs import build_value_table, encode_rows, take_features, take_labels, take_target
from countervail.rules.round_bounds import bin_numbers, tell_common
from countervail.rules.ruleset import RuleSet
from countervail.rules.value_sets import add_value_sets
from countervail.rules.values import Floats
from countervail.rules.votes import list_conditions, vote

Ties = Literal["first", "last"]
Bounds = Literal["values", "round"]


class RuleClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Learns rules and lets them vote. A subclass writes `_induce`."""

    semantics: Semantics
    ties: Ties
    schema: Schema | None
    max_values: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn rules from a DataFrame or array and its classes, or from a Table or Release and its target.

        Cells of X may be plain values, closed `pd.Interval`s or frozensets, and labels frozensets of classes: a table
        of patterns is training data like any other. Types follow the dtypes (numbers; ordered categories; anything
        else is nominal) unless `schema` says otherwise. The columns of an array are called x0, x1, ...; one of objects
        is read column by column.
        """
        owner = type(self).__name__
        self._check_parameters()
        frame, own = take_features(X, owner), isinstance(X, (Table, Release))
        y = take_target(X, owner) if own and y is None else take_labels(y, owner)
        schema, target = self.schema, str(getattr(y, "name", None) or "class")
        if own:
            schema = schema or X.schema
            target = schema.target or "class"
        validate_data(self, frame, skip_check_array=True)  # notes the columns' number, and names where they have any
        if not hasattr(self, "feature_names_in_"):
            frame = frame.set_axis([f"x{i}" for i in range(self.n_features_in_)], axis=1)
        table = add_value_sets(build_value_table(frame, y, schema, owner), self.max_values, owner)
        self.rows_per_person_ = rows_per_person(X) if isinstance(X, Table) else 1
        one_type = len({type(c) for c in table.classes}) == 1
        self.classes_: NDArray[Any] = np.array(table.classes, dtype=None if one_type else object)
        self.rules_ = self._induce(Inducer(table, self.semantics, target))
        held = (table.decisions[:, None] >> np.arange(len(table.classes), dtype=np.uint64)) & np.uint64(1)
        shares = (table.weight[:, None] * held / held.sum(axis=1, keepdims=True)).sum(axis=0)
        self.shares_: Floats = self._shares(shares)
        return self

    def scores(self, X: Any) -> Floats:
        """What the rules vote for each class; the classes' shares in training where no rule even partly matches."""
        check_is_fitted(self, "rules_")
        rows = self._encode(X)
        weight = (self.rules_.support * self.rules_.specificity).astype(float)
        told = self.rules_.classes
        cast: Floats = np.zeros((len(rows), len(self.classes_)))
        if told:
            place = [self.classes_.tolist().index(c) for c in told]
            cast[:, place] = vote(
                np.ascontiguousarray(rows.T), list_conditions(self.rules_), weight, self.rules_.conclusions, len(told)
            )
        cast[cast.sum(axis=1) == 0] = self.shares_
        return np.round(cast, 9)

    def predict_proba(self, X: Any) -> Floats:
        """The votes as shares. They rank classes; they are no calibrated probabilities."""
        cast = self.scores(X)
        shares: Floats = cast / cast.sum(axis=1, keepdims=True)
        return shares

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with most votes; of equals the first, or the last."""
        cast = self.scores(X)
        last = cast.shape[1] - 1
        best = cast.argmax(axis=1) if self.ties == "first" else last - cast[:, ::-1].argmax(axis=1)
        found: NDArray[Any] = self.classes_[best]
        return found

    def to_frame(self) -> pd.DataFrame:
        """The rules: condition, conclusion, support, strength, specificity."""
        check_is_fitted(self, "rules_")
        return self.rules_.to_frame()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True  # not `categorical`, the tag of estimators that read numbers as labels
        return tags

    def _encode(self, X: Any) -> Floats:
        """Rows as numbers: columns by name, in any order and among others, or by place where names are missing."""
        owner, attributes = type(self).__name__, self.rules_.attributes
        frame = take_features(X, owner)
        if not hasattr(self, "feature_names_in_") or not all(isinstance(n, str) for n in frame.columns):
            validate_data(self, frame, reset=False, skip_check_array=True)
            frame = frame.set_axis([a.name for a in attributes], axis=1)
        return encode_rows(frame, attributes, owner)

    @abstractmethod
    def _induce(self, inducer: Inducer) -> RuleSet: ...

    def _shares(self, people: Floats) -> Floats:
        """What is said where no rule matches: the share of each class."""
        shares: Floats = people / people.sum()
        return shares

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        if self.semantics not in SEMANTICS:
            raise bad_parameter(owner, "semantics", f"one of {SEMANTICS}", self.semantics)
        if self.ties not in ("first", "last"):
            raise bad_parameter(owner, "ties", "'first' or 'last'", self.ties)
        if self.schema is not None and not isinstance(self.schema, Schema):
            raise bad_parameter(owner, "schema", "None or a Schema", type(self.schema).__name__)


class MLEM2(RuleClassifier):
    """Minimal rules for each class by MLEM2, voting by LERS.

    Parameters
    ----------
    semantics : {"strict", "overlap", "paper"}
        When a rule of a table with value sets is valid; ordinary tables: no difference.
    ties : {"first", "last"}
        Which of equally voted classes wins.
    schema : Schema, optional
        Types and levels of the columns, where the dtypes do not tell them.
    max_values : int
        How many values of a nominal column one condition may name ("the city is Ghent or Liège"). 1 is the published
        way for ordinary tables; more lets rules say less about more people.

    Notes
    -----
    *Threat model*: none. Precise rules may speak of one person: look at them, do not hand them out; those of
    `LERS(k=...)` may be. Missing labels are values of their own; missing numbers are an error in training and match no
    condition later, as do values that training never had.

    References
    ----------
    Grzymala-Busse: MLEM2, discretization during rule induction (2003).

    Examples
    --------
    >>> import countervail as cv
    >>> print(cv.MLEM2().fit(cv.load("toy_evaluation")).rules_[0])
    If sex is male and occupation is salesman then evaluation is high.
    """

    def __init__(
        self,
        *,
        semantics: Semantics = "strict",
        ties: Ties = "first",
        schema: Schema | None = None,
        max_values: int = 1,
    ) -> None:
        self.semantics = semantics
        self.ties = ties
        self.schema = schema
        self.max_values = max_values

    def _induce(self, inducer: Inducer) -> RuleSet:
        return inducer.precise()


class LERS(RuleClassifier):
    """Imprecise rules, which conclude one of several classes, voting by LERS; with `k`, only well supported ones.

    Parameters
    ----------
    k : int
        How many rows must support a rule. 1: all rules; where precise rules leave rows open, unions of classes follow.
        From 2 on, rules of fewer rows are withheld and a row is open until the rules that cover it agree on its class
        alone. A class with fewer than k rows gets no rule of its own.
    max_union : int, optional
        The largest union of classes. By default all but one; above 10 classes a cap is set and a warning says which;
        above 16 it must be given.
    bounds : {"values", "round"}
        How conditions on numbers are told: by values that somebody has, as published; or by round numbers that nobody
        has, or that at least k rows (and ten) share, with as many rows between two of them. Rounding is done before
        rules are learnt, so everything said of them holds; no rule names a label or class of fewer than k rows then.
        Cells of a release are left as they are.
    semantics, ties, schema, max_values
        As for `MLEM2`.

    Notes
    -----
    *Threat model*: someone who sees the rules and holds a register of everybody's attributes. At least k people match
    every rule published. Several rules together can still point at fewer: people are not promised to hide in what
    rules have in common.

    References
    ----------
    Inuiguchi, Hamakawa, Ubukata: Imprecise rules for data privacy (2015).

    Examples
    --------
    >>> import countervail as cv
    >>> table = cv.load("toy_evaluation")
    >>> rules = cv.LERS(k=2).fit(table.features, table.target).rules_
    >>> print(rules.to_text().splitlines()[3])
    If domicile is Fukuoka then evaluation is high or medium. (2 rows)
    """

    def __init__(
        self,
        *,
        k: int = 1,
        max_union: int | None = None,
        bounds: Bounds = "values",
        semantics: Semantics = "strict",
        ties: Ties = "first",
        schema: Schema | None = None,
        max_values: int = 1,
    ) -> None:
        self.k = k
        self.max_union = max_union
        self.bounds = bounds
        self.semantics = semantics
        self.ties = ties
        self.schema = schema
        self.max_values = max_values

    def _induce(self, inducer: Inducer) -> RuleSet:
        table = inducer.table
        if self.k > table.rows:
            raise bad_parameter("LERS", "k", f"at most the number of rows, {table.rows}", self.k)
        cap = cap_unions(table, self.max_union, "LERS")
        if cap is not None and self.max_union is None:
            warnings.warn(
                f"{len(table.classes)} classes have too many unions: only those of up to {cap} classes are tried. "
                f"Set max_union to choose.",
                stacklevel=3,
            )
        if self.bounds == "values" or not table.crisp:
            return inducer.imprecise(cap) if self.k == 1 else inducer.supported(self.k, cap).publishable()
        binned, ends = bin_numbers(table, self.k, self.rows_per_person_)
        coarse = Inducer(binned, self.semantics, inducer.target)
        found = coarse.imprecise(cap) if self.k == 1 else coarse.supported(self.k, cap)
        return ends.of(tell_common(found, table, self.k)).publishable()

    def _shares(self, people: Floats) -> Floats:
        """Of classes with at least k rows: a share of one person would give that person away."""
        common = np.where(people >= self.k, people, 0.0)
        return super()._shares(common if common.any() else np.ones(len(people)))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.k, (int, np.integer)) or isinstance(self.k, bool) or self.k < 1:
            raise bad_parameter("LERS", "k", "a whole number of at least 1", self.k)
        if self.bounds not in ("values", "round"):
            raise bad_parameter("LERS", "bounds", "'values' or 'round'", self.bounds)
