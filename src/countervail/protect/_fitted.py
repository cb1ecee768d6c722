"""What a fit leaves: its parameters, which answers and promises must share, and no rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, ref

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from countervail.core.errors import SchemaError
from countervail.core.release import parameters_of
from countervail.core.table import Table

Frozen = tuple[tuple[str, Any], ...]
P = TypeVar("P")


class GivenObject:
    """An object that was given as a parameter: equal to itself only, and only while it reads as it did.

    It stays beside the parameter in the protector's state, so that a pickle of both keeps them one object.
    """

    def __init__(self, value: Any) -> None:
        self.value, self.words = value, re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GivenObject) and other.value is self.value and other.words == self.words

    __hash__ = None  # type: ignore[assignment]


class Fit:
    """One fit, to tell it from others."""


# What an audit may ask about fitted rows, such as the class of each: it goes when the table goes, or the fit.
_FACTS: WeakKeyDictionary[Table, WeakKeyDictionary[Fit, Mapping[str, Any]]] = WeakKeyDictionary()


class WithoutRows:
    """A protector that holds no rows once it is fitted.

    The table is its owner's: while somebody keeps it, measures and attacks find it (`table_`); it is not part of the
    protector, nor of its pickle.
    """

    fitted_as_: Frozen

    @property
    def table_(self) -> Table:
        """The fitted table, while somebody keeps it."""
        table: Table | None = self.__dict__.get("_table", lambda: None)()
        if table is None:
            raise AttributeError("A fitted protector holds no rows, and the table that it was fitted to is gone.")
        return table

    def _remember(self, table: Table, **facts: Any) -> None:
        self._table, self._fit = ref(table), Fit()
        _FACTS.setdefault(table, WeakKeyDictionary())[self._fit] = facts

    def _forget(self) -> None:
        """No table was fitted to: whatever an earlier fit remembered is gone."""
        self.__dict__.pop("_table", None), self.__dict__.pop("_fit", None)

    def _recall(self, fact: str) -> Any:
        """What the fit found out about the rows of the table, while somebody keeps it."""
        return _FACTS[self.table_][self._fit][fact]

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()  # scikit-learn's, of the class beside this one
        return {name: value for name, value in state.items() if name not in ("_table", "_fit", "_scan", "_scanned")}


def live_table(protector: Any) -> Table | None:
    """The table that a protector was fitted to, if somebody keeps it."""
    return getattr(protector, "table_", None)


def freeze(protector: Any) -> Frozen:
    """The parameters as they are now: plain values by what they say, all else as the very object that was given."""
    found = parameters_of(protector)
    if any(hasattr(value, "get_params") for value in found.values()):
        found = protector.get_params(deep=True)
    return tuple((name, _as_given(found[name])) for name in sorted(found))


def _as_given(value: Any) -> Any:
    if value is None or type(value) in (str, bool, float):  # most parameters, at every answer
        return repr(value)
    if isinstance(value, (np.ndarray, pd.Series, pd.Index)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return ("mapping", *((repr(k), _as_given(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *(_as_given(v) for v in value))
    if isinstance(value, (set, frozenset)):
        return (type(value).__name__, *sorted(map(repr, value)))
    if isinstance(value, int) and not isinstance(value, bool):
        return f"int {value:x}"  # of any length
    if isinstance(value, (bool, float, str, np.generic)):
        return repr(value)
    return GivenObject(value)


def begin_fit(protector: Any) -> Frozen:
    """The parameters that a fit starts with. One that fails leaves nothing to ask."""
    if hasattr(protector, "fitted_as_"):
        del protector.fitted_as_
    return freeze(protector)


def finish_fit(protector: Any, given: Frozen) -> Frozen:
    """The parameters of a fit, if they are still those that it started with."""
    if freeze(protector) != given:
        raise SchemaError(f"The parameters of {type(protector).__name__} changed while it was fitted. Fit again.")
    return given


def verify_unchanged(protector: Any) -> None:
    """Promises and records are read from the parameters, answers come from those of fit: they must be the same."""
    if not hasattr(protector, "fitted_as_"):
        check_is_fitted(protector, "fitted_as_")  # scikit-learn's words
    if protector.fitted_as_ != freeze(protector):
        name = type(protector).__name__
        raise SchemaError(
            f"The parameters of {name} have changed since fit, which used the old ones. Nothing has left. Fit again."
        )


def verify_promised(protector: Any) -> None:
    """A promise is about what is to come, or about the fit that was made; never about that fit restated."""
    if hasattr(protector, "fitted_as_"):
        verify_unchanged(protector)


def snapshot(protector: P) -> P:
    """The protector as it is now: a fit in another thread must not come between a promise and what it is about."""
    now = object.__new__(type(protector))
    now.__dict__ = dict(protector.__dict__)
    return now


def without_ledger(explainer: P) -> P:
    """The same explainer for another process: its ledger stays here."""
    sent: Any = snapshot(explainer)
    if getattr(sent, "ledger", None) is not None:
        sent.ledger = None
        if hasattr(sent, "fitted_as_"):
            sent.fitted_as_ = freeze(sent)
    return sent  # type: ignore[no-any-return]
