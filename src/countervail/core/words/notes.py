"""Notes below an answer, as people read them: with the words of columns, in their language."""

from __future__ import annotations

import re

from countervail.core.phrase import ColumnWords
from countervail.core.schema import Schema
from countervail.core.words.catalogue import catalogue

# As they are written where they arise; one that is not among them stays as it is.
_WRITTEN = {
    "nothing": r"Without any constraints there would be none either\.",
    "relax": r"There would be one without (?P<limits>.+)\.",
    "stuck": r"Values that may not change, or not this way, lie outside what is allowed: (?P<columns>.+)\.",
    "fewer": r"(?P<held>\d+) of (?P<all>\d+) different answers were found\.",
    "budget": r"No row that changes the decision was found within this budget; the last one tried is given\.",
    "undone": r"The noise has undone the counterfactual: the decision stays as it was\.",
}
_LIMITS = re.compile(
    r"that '(?P<fixed>.+?)' stays as it is|the direction of '(?P<direction>.+?)'|the range of '(?P<range>.+?)'|"
    r"the forbidden steps of '(?P<steps>.+?)'|(?P<count>the limit on the number of changes)"
)


def say_note(text: str, schema: Schema, language: str) -> str:
    """A note in a language."""
    for name, form in _WRITTEN.items():
        if found := re.fullmatch(form, text):
            parts = found.groupdict()
            if name == "relax":
                parts = {"limits": _limits(parts["limits"], schema, language)}
            elif name == "stuck":
                parts = {"columns": ", ".join(_name(n, schema, language) for n in parts["columns"].split(", "))}
            return catalogue(language).say(f"note.{name}", **parts)
    return text


def is_written(text: str, schema: Schema) -> bool:
    """Whether a note is one that is written here, about columns of the schema: it then holds no value of anybody.

    Examples
    --------
    >>> import countervail as cv
    >>> schema = cv.load("toy_credit").schema
    >>> is_written("1 of 3 different answers were found.", schema), is_written("Fiona earns 52,000.", schema)
    (True, False)
    """
    for name, form in _WRITTEN.items():
        if (found := re.fullmatch(form, text)) is None:
            continue
        if name == "stuck":
            return all(n in schema for n in found["columns"].split(", "))
        if name == "relax":
            named = [
                n for f in _LIMITS.finditer(found["limits"]) for k, n in f.groupdict().items() if n and k != "count"
            ]
            beside = re.sub(r",|;|\band\b|\bor\b|\s", "", _LIMITS.sub("", found["limits"]))
            return not beside and all(n in schema for n in named)
        return True
    return False


def _limits(text: str, schema: Schema, language: str) -> str:
    """What stands in the way, limit by limit."""
    said = []
    for found in _LIMITS.finditer(text):
        kind, name = next((k, n) for k, n in found.groupdict().items() if n is not None)
        place = {} if kind == "count" else {"column": _name(name, schema, language)}
        said.append(catalogue(language).say(f"note.{kind}", **place))
    return "; ".join(said) or text


def _name(name: str, schema: Schema, language: str) -> str:
    return ColumnWords.of(schema[name], language).name if name in schema else name
