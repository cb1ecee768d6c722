"""Notes below an answer, as people read them: with the words of columns, in their language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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
_TOLD = 4  # limits that are told one by one
# Which words a limit gets; a value that may not be left is fixed for whoever has it.
_LIMITS = re.compile(
    r"that '(?P<that>.+?)' (?P<does>stays as it is|keeps its value|does not go down|does not go up)|"
    r"the (?P<what>direction|range|forbidden steps) of '(?P<of>.+?)'|(?P<count>the limit on the number of changes)"
)
_KINDS = {
    "stays as it is": "fixed",
    "keeps its value": "fixed",
    "does not go down": "lower",
    "does not go up": "raise",
    "direction": "direction",  # as earlier files have it
    "range": "range",
    "forbidden steps": "steps",
}


def say_note(text: str, schema: Schema, language: str, factual: Mapping[str, Any] | None = None) -> str:
    """A note in a language; what the asker told us (`factual`) stands beside the columns that are named."""
    for name, form in _WRITTEN.items():
        if found := re.fullmatch(form, text):
            parts = found.groupdict()
            if name == "relax" and len(_LIMITS.findall(parts["limits"])) > _TOLD:
                return catalogue(language).say("note.several")
            if name == "relax":
                parts = {"limits": _limits(parts["limits"], schema, language, factual or {})}
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
            named = [n for f in _LIMITS.finditer(found["limits"]) for n in (f["that"], f["of"]) if n]
            beside = re.sub(r",|;|\band\b|\bor\b|\s", "", _LIMITS.sub("", found["limits"]))
            return not beside and all(n in schema for n in named)
        return True
    return False


def _limits(text: str, schema: Schema, language: str, factual: Mapping[str, Any]) -> str:
    """What stands in the way, limits of one kind together."""
    words, kinds = catalogue(language), dict[str, list[str]]()
    for found in _LIMITS.finditer(text):
        kind = "count" if found["count"] else _KINDS[found["does"] or found["what"]]
        name = "" if kind == "count" else _owned(found["that"] or found["of"], schema, language, factual)
        kinds.setdefault(kind, []).append(name)
    said = []
    for kind, names in kinds.items():
        last = words.templates["note.last"]
        listing = last.join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        said.append(words.say(f"note.{kind}", **({} if kind == "count" else {"columns": listing})))
    return words.templates["note.join"].join(said) or text


def _owned(name: str, schema: Schema, language: str, factual: Mapping[str, Any]) -> str:
    """A column with the asker's own value. A label that was written for a longer phrase stands for nothing alone."""
    said = _name(name, schema, language)
    if name not in schema or name not in factual:
        return said
    words = ColumnWords.of(schema[name], language)
    value, phrase = words.value(factual[name]), words.phrases.is_
    if value in said or (schema[name].type != "numeric" and phrase and len(phrase.split()) != 2):
        return said
    return catalogue(language).say("note.owned", column=said, value=value)


def _name(name: str, schema: Schema, language: str) -> str:
    """What a column is called; a clause of a name ends in a comma, which no list needs."""
    return ColumnWords.of(schema[name], language).name.rstrip(",") if name in schema else name
