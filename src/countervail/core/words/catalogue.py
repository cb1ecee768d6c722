"""Catalogues: the sentences of each language, one file each."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from countervail.core.errors import bad_parameter
from countervail.core.words import numbers

LANGUAGES: tuple[str, ...] = ("de", "en", "fr", "nl")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The templates of one language, by names such as `higher.least`, and how it writes numbers and lists."""

    language: str
    templates: Mapping[str, str]
    units: Mapping[str, str]
    months: tuple[str, ...]
    singular_below: int
    subject_once: bool
    keeps_capitals: bool  # of names of columns

    def say(self, template: str, **parts: str) -> str:
        """A template with its places filled."""
        return self.templates[template].format(**parts)

    def number(self, number: Decimal, *, grouped: bool = True) -> str:
        """A number with this language's decimal mark, and its mark between thousands."""
        mark = self.templates["number.thousands"] if grouped else ""
        return numbers.plain(number, mark, self.templates["number.decimal"])

    def one_of(self, values: list[str], *, clauses: bool = False) -> str:
        """`a`, `a or b`, `one of a, b or c`; of clauses, `a, b or c`."""
        if len(values) < 3:
            return self.templates["list.or"].join(values)
        return self.say("list.any" if clauses else "list.one_of", most=", ".join(values[:-1]), last=values[-1])

    def is_singular(self, number: Decimal) -> bool:
        """Whether a thing is counted in the singular."""
        return abs(number) == 1 or abs(number) < self.singular_below


@cache
def catalogue(language: str) -> Catalogue:
    """The catalogue of a language."""
    if language not in LANGUAGES:
        raise bad_parameter("The catalogue", "language", f"one of {list(LANGUAGES)}", language)
    data = tomllib.loads((files(__package__) / f"{language}.toml").read_text(encoding="utf-8"))
    units, months = data.pop("units"), tuple(data.pop("months"))
    about = [data.pop(name) for name in ("singular_below", "subject_once", "keeps_capitals")]
    return Catalogue(language, _flat(data), units, months, *about)


def _flat(data: Mapping[str, Any]) -> dict[str, str]:
    """Nested tables as one, by names with dots."""
    parts: dict[str, str] = {}
    for name, value in data.items():
        parts |= {f"{name}.{k}": v for k, v in _flat(value).items()} if isinstance(value, Mapping) else {name: value}
    return parts
