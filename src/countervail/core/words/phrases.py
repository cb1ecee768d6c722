"""What a schema says about a column in words: its name, its values, its changes, in one language or several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from countervail.core.errors import SchemaError
from countervail.core.words.catalogue import LANGUAGES

_TEXTS = ("more", "less", "is", "subject", "numbers")


@dataclass(frozen=True, slots=True)
class Phrases:
    """How a column and a change of it are said; `{}` stands for the amount or the value.

    Parameters
    ----------
    more, less : str
        What follows "you" when a number grows or shrinks, e.g. "earned {} more".
    is_ : str
        What follows "you" when a value is another one, e.g. "lived in {}"; "{}" where labels say it all. On the
        target: what the decision would be, e.g. "your application would be {}".
    subject : str
        What the column is called, as the asker hears it: "your income".
    labels : mapping
        What a value is called: `{"1<=X<4": "1 to 4 years"}`; truth values are written "true" and "false".
    numbers : str
        "plain" for numbers without separators, such as years.
    unit : str
        Only inside `languages`: the column's unit there.
    languages : mapping
        The same for other languages, by their codes.
    """

    more: str = ""
    less: str = ""
    is_: str = ""
    subject: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    numbers: str = ""
    unit: str = ""
    languages: Mapping[str, Phrases] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.numbers not in ("", "plain"):
            raise SchemaError("The 'numbers' of a column's phrases must be 'plain', or be left out.")

    def to_dict(self) -> dict[str, Any]:
        """The entries of a column that hold words: phrases, labels, languages."""
        own = {n: getattr(self, "is_" if n == "is" else n) for n in _TEXTS}
        parts = {
            "phrases": {n: text for n, text in own.items() if text},
            "labels": dict(self.labels),
            "languages": {code: words.flat() for code, words in self.languages.items()},
        }
        return {n: part for n, part in parts.items() if part}

    def flat(self) -> dict[str, Any]:
        """The words of one language in one table."""
        parts = self.to_dict()
        unit = {"unit": self.unit} if self.unit else {}
        return {**unit, **parts.pop("phrases", {}), **parts}

    @classmethod
    def from_dict(cls, name: str, entry: Mapping[str, Any]) -> Self:
        """The words in a column's entry; `name` is the column's, for errors."""
        words, labels = entry.get("phrases", {}), entry.get("labels", {})
        languages = entry.get("languages", {})
        known = f"{', '.join(_TEXTS[:-1])} and {_TEXTS[-1]}"
        if not isinstance(words, Mapping):
            raise SchemaError(f"The phrases of column '{name}' must be a table with the keys {known}.")
        if unknown := sorted(set(words) - set(_TEXTS)):
            raise SchemaError(f"Unknown phrases for column '{name}': {unknown}. Known: {known}.")
        if not isinstance(labels, Mapping):
            raise SchemaError(f"The labels of column '{name}' must be a table: a text for each value.")
        if not all(isinstance(v, str) for v in (*words.values(), *labels.values())):
            raise SchemaError(f"The phrases and the labels of column '{name}' must be text.")
        if not isinstance(languages, Mapping) or not all(isinstance(v, Mapping) for v in languages.values()):
            raise SchemaError(f"The languages of column '{name}' must be tables: one for each language.")
        if unknown := sorted(set(languages) - set(LANGUAGES)):
            raise SchemaError(f"Unknown languages for column '{name}': {unknown}. Known: {list(LANGUAGES)}.")
        return cls(
            words.get("more", ""),
            words.get("less", ""),
            words.get("is", ""),
            words.get("subject", ""),
            dict(labels),
            words.get("numbers", ""),
            languages={str(code): cls._of_language(name, part) for code, part in languages.items()},
        )

    @classmethod
    def _of_language(cls, name: str, part: Mapping[str, Any]) -> Self:
        unit = part.get("unit", "")
        if "languages" in part or not isinstance(unit, str):
            raise SchemaError(f"The languages of column '{name}' must hold texts and labels only.")
        words = {n: v for n, v in part.items() if n not in ("unit", "labels")}
        plain = cls.from_dict(name, {"phrases": words, "labels": part.get("labels", {})})
        return cls(plain.more, plain.less, plain.is_, plain.subject, plain.labels, plain.numbers, unit)

    def spoken(self, language: str) -> Self:
        """The words for one language; where it has none, those that need no translation."""
        here = self.languages.get(language)
        if language == "en" and here is None:
            return self
        # Labels that are whole predicates belong to the phrase that they were written for.
        labels = {} if self.is_ == "{}" else dict(self.labels)
        if here is None:
            return type(self)(labels=labels, numbers=self.numbers)
        return type(self)(
            here.more, here.less, here.is_, here.subject, {**labels, **here.labels},
            here.numbers or self.numbers, here.unit,
        )  # fmt: skip
