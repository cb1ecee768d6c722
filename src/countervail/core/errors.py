"""Errors that name who, what must be, what was got and the way out; never a row's values."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

_LONG = 200
_MANY = 20


class CountervailError(Exception):
    """Base of every error that Countervail raises on purpose."""


class SchemaError(CountervailError, ValueError):
    """Rows, schema and model do not fit together."""


class ParameterError(CountervailError, ValueError):
    """A parameter is outside what its owner accepts."""


class DataNotFoundError(CountervailError, FileNotFoundError):
    """A registered data set or a file is nowhere to be found."""


class ModelFileError(CountervailError, ValueError):
    """A saved model cannot be loaded safely."""


class RemoteModelError(CountervailError, RuntimeError):
    """A model behind HTTP does not answer, or not as a model does."""


class RefusedError(CountervailError, RuntimeError):
    """A release failed its own check: nothing has left."""


class BudgetError(CountervailError, RuntimeError):
    """The privacy budget does not cover what was asked."""


class LedgerError(CountervailError, RuntimeError):
    """A ledger cannot be used: no answer was given, and what it held it still holds."""


class PrivacyWarning(UserWarning):
    """Something is about to be less private than it looks."""


class InputWarning(UserWarning):
    """A file may not be read as it was meant."""


class ModelWarning(UserWarning):
    """A model may not be read as it was meant."""


def bad_parameter(owner: str, name: str, must: str, got: Any, way_out: str = "") -> ParameterError:
    """The error for a parameter, in the one form that all of ours share."""
    hint = f" {way_out}" if way_out else ""
    return ParameterError(f"The '{name}' parameter of {owner} must be {must}. Got {shown(got)} instead.{hint}")


def shown(value: Any) -> str:
    """What was got, for one line: long ones are cut, and numbers that Python will not even spell are described."""
    try:
        text = repr(value)
    except ValueError:
        return f"{type(value).__name__} with a number of thousands of digits"
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."


def check_count(owner: str, name: str, value: Any, most: int | None = None) -> None:
    """A whole number of at least one."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < 1 or (most is not None and value > most):
        limit = f" and at most {most}" if most is not None else ""
        raise bad_parameter(owner, name, f"a whole number of at least 1{limit}", value)


def listed(names: Sequence[Any]) -> str:
    """Names for one line; of very many, the first."""
    more = f" and {len(names) - _MANY:,} more" if len(names) > _MANY else ""
    return f"{[str(n) for n in names[:_MANY]]}{more}"
