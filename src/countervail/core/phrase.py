"""Sentences: a counterfactual as the change it asks for, in the words that the schema declares.

Nothing is said that the cells do not hold: numbers are shown in full, or said to be about so much, an end of a range is
rounded inwards or not at all, and "or more" stands only where the declared domain ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

import numpy as np
import pandas as pd

from countervail.core.cells import cell_text, fits, is_missing, visible
from countervail.core.schema import Column, Schema
from countervail.core.words.catalogue import Catalogue, catalogue
from countervail.core.words.dates import iso
from countervail.core.words.numbers import difference, exact, inside, plain, rough, rough_down, rough_up, shortened
from countervail.core.words.phrases import Phrases

_FORMS = re.compile(r"([^\s|]+)\|([^\s|]+)")
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[^\W_]+|[^\w\s-]+")
_APART = re.compile(r"[\s_-]+")
_LISTED = 5  # more neighbouring levels than this are a range


def sentence(
    factual: Mapping[str, Any],
    cells: Mapping[str, Any],
    schema: Schema,
    decision: Any,
    language: str = "en",
    template: str = "sentence.if",
) -> str:
    """What would have to be different, and what the decision would be.

    Examples
    --------
    >>> s = Schema((Column("age", "numeric"), Column("housing")))
    >>> print(sentence({"age": 21, "housing": "rent"}, {"age": 24, "housing": "own"}, s, "good"))
    If your age were 3 higher (from 21 to 24) and your housing were own (instead of rent), the decision would be good.
    """
    words = catalogue(language)
    clauses = [
        ColumnWords.of(schema[n], language).clause(factual[n], cell)
        for n, cell in cells.items()
        if n in factual and not fits(factual[n], cell)
    ]
    if not clauses:
        return visible(words.say("sentence.nothing", decision=decision_text(decision, schema, language)))
    said, subject = [], ""
    for who, what in clauses:
        said.append(what if who == subject and words.subject_once else f"{who} {what}")
        subject = who
    marks = words.templates
    listing = marks["sentence.between"].join(said[:-1])
    listing = f"{listing}{marks['sentence.last']}{said[-1]}" if listing else said[-1]
    return visible(words.say(template, changes=listing, outcome=_outcome(decision, schema, language)))


def decision_text(decision: Any, schema: Schema, language: str = "en") -> str:
    """A decision as the target's labels call it."""
    target = Column("decision") if schema.target is None else schema[schema.target]
    return ColumnWords.of(target, language).value(decision)


def _outcome(decision: Any, schema: Schema, language: str) -> str:
    said = decision_text(decision, schema, language)
    phrase = "" if schema.target is None else schema[schema.target].phrases.spoken(language).is_
    return phrase.replace("{}", said) if phrase else catalogue(language).say("sentence.outcome", decision=said)


@dataclass(frozen=True, slots=True)
class ColumnWords:
    """What is said of one column in one language."""

    column: Column
    phrases: Phrases
    unit: str
    words: Catalogue

    @classmethod
    def of(cls, column: Column, language: str) -> Self:
        """The words of a column."""
        words, phrases = catalogue(language), column.phrases.spoken(language)
        return cls(column, phrases, phrases.unit or words.units.get(column.unit, column.unit), words)

    @property
    def name(self) -> str:
        """What the column is called, as the asker hears it."""
        if self.phrases.subject:
            return self.phrases.subject
        plain_name = _plain_name(self.column.name, capitals=self.words.keeps_capitals)
        said = self.words.say("subject.column", column=plain_name)
        lead = said[: said.find(plain_name)]
        return plain_name if lead and plain_name.startswith(lead) else said

    def value(self, value: Any) -> str:
        """A single value."""
        if is_missing(value):
            return self.words.templates["value.missing"]
        if (label := self.phrases.labels.get(_key(value))) is not None:
            return label
        if isinstance(value, (bool, np.bool_)):
            return self.words.templates["value.yes" if value else "value.no"]
        if self.column.type == "date" and _is_number(value):
            return self.words.say("value.raw", value=iso(float(value)))
        if self.column.type == "numeric" and _is_number(value):
            return self.counted(exact(value))
        return self.words.say("value.raw", value=_key(value))

    def cell(self, cell: Any) -> str:
        """A cell: a value, a range, or one of several."""
        if isinstance(cell, frozenset):
            return self._set(cell)
        if isinstance(cell, pd.Interval) and cell.left < cell.right and self.column.type == "date":
            return self.words.say("range.span", low=iso(cell.left), high=iso(cell.right))
        if isinstance(cell, pd.Interval) and cell.left < cell.right:
            return self._range(*self._ends(cell))
        return self.value(cell.left if isinstance(cell, pd.Interval) else cell)

    def counted(self, number: Decimal) -> str:
        """A number with its unit."""
        return self._with_unit(self._number(number), number)

    def clause(self, value: Any, cell: Any) -> tuple[str, str]:
        """Subject and predicate of a change."""
        if isinstance(cell, frozenset) and len(cell) == 1:
            (cell,) = cell
        if self._is_amount(value) and (isinstance(cell, pd.Interval) or self._is_amount(cell)):
            now, ends = exact(value), self._ends(cell, value)
            if (self.phrases.more if ends[0] > now else self.phrases.less) or not self.phrases.is_:
                return self._shift(now, *ends)
        return self._swap(value, cell)

    def _is_amount(self, value: Any) -> bool:
        """Whether a value is a number to reckon with: not missing, and not one that has a name of its own."""
        return self.column.type == "numeric" and _is_number(value) and _key(value) not in self.phrases.labels

    def _shift(self, now: Decimal, low: Decimal, high: Decimal) -> tuple[str, str]:
        """A number that grows or shrinks, by how much, from where, to where."""
        more = low > now
        near, far = difference(low if more else high, now), difference(high if more else low, now)
        phrase, direction = (self.phrases.more, "higher") if more else (self.phrases.less, "lower")
        form, amounts, count = self._amount(near, far, bare=bool(phrase))
        change = "change.span" if low.is_finite() and high.is_finite() and low < high else "change.moved"
        moved = self._moved(change, now, low, high)
        if phrase:
            said = phrase.replace("{}", self.words.say(f"amount.{form}", **amounts))
            return self._predicate(f"{_inflected(said, self.words.is_singular(count))} {moved}", phrase)
        return self.name, f"{self.words.say(f'{direction}.{form}', **amounts)} {moved}"

    def _moved(self, change: str, now: Decimal, low: Decimal, high: Decimal) -> str:
        """From where to where. A single number that is long is shortened, and said to be, if both stay apart."""
        short, end = shortened(now, (low, high)), shortened(low, (now, now)) if low == high else low
        if low == high and (short == end or (short < end) != (now < low)):
            short, end = now, low
        then = self._range(low, high, bare=True) if low < high else self._in_pattern(self._number(end), end)
        if low == high and end != low:
            then = self.words.say("amount.about", amount=then)
        form = change if short == now else f"{change}_about"
        return self.words.say(form, now=self._in_pattern(self._number(short), short), then=then)

    def _amount(self, near: Decimal, far: Decimal, *, bare: bool) -> tuple[str, dict[str, str], Decimal]:
        """How an amount is put: its form, its parts, and the number that its unit agrees with."""
        put = self._in_pattern if bare else self._with_unit
        if near == far:
            short = rough(near)
            form = "exact" if short == near else "about"
            return form, {"amount": put(self._number(short, amount=True), short)}, short
        if not far.is_finite():
            short = rough_up(near)
            return "least", {"amount": put(self._number(short, amount=True), short)}, short
        a, b = (rough_up(near), rough_down(far)) if rough_up(near) <= rough_down(far) else (near, far)
        texts = self._number(a, amount=True), self._number(b, amount=True)
        return "span", {"near": self._in_pattern(texts[0], a), "far": put(texts[1], b)}, b

    def _swap(self, value: Any, cell: Any) -> tuple[str, str]:
        """A value in the place of another one."""
        phrase, then = self.phrases.is_, self.cell(cell)
        form = "change.missing" if is_missing(value) else "change.instead"
        instead = "" if phrase == "{}" else f" {self.words.say(form, now=self.value(value))}"
        if not phrase:
            return self.name, f"{self.words.say('value.is', value=then)}{instead}"
        one = _is_number(cell) and self.words.is_singular(exact(cell))
        return self._predicate(_inflected(phrase, one).replace("{}", then) + instead, phrase)

    def _predicate(self, said: str, phrase: str) -> tuple[str, str]:
        you = self.words.templates["subject.you"]
        said = said.removeprefix(f"{you} ")
        # "{} years older" needs its verb; "lived in {}" brings one, and so does a label that says it all.
        bare = phrase.startswith("{}") and phrase != "{}"
        return you, self.words.say("subject.predicate", phrase=said) if bare else said

    def _ends(self, cell: Any, now: Any = None) -> tuple[Decimal, Decimal]:
        """Both ends as they are said; one that the declared domain ends at is no bound."""
        if not isinstance(cell, pd.Interval):
            return exact(cell), exact(cell)
        low, high = exact(cell.left), exact(cell.right)
        if low == high:
            return low, high
        domain = self.column.public if self.column.type == "numeric" else None
        if domain is not None and (now is None or domain[0] <= now <= domain[1]):
            if cell.right >= domain[1] and cell.left > domain[0]:
                high = Decimal("inf")
            elif cell.left <= domain[0] and cell.right < domain[1]:
                low = Decimal("-inf")
        # Of others' values the whole range is said: a shorter one would hold fewer people than was promised.
        return (low, high) if self.column.role == "quasi" else inside(low, high)

    def _range(self, low: Decimal, high: Decimal, *, bare: bool = False) -> str:
        put = self._in_pattern if bare else self._with_unit
        if low == high:
            return self.words.say("range.exact", low=put(self._number(low), low))
        if not high.is_finite():
            return self.words.say("range.least", low=put(self._number(low), low))
        if not low.is_finite():
            return self.words.say("range.most", high=put(self._number(high), high))
        return self.words.say(
            "range.span", low=self._in_pattern(self._number(low), low), high=put(self._number(high), high)
        )

    def _set(self, values: frozenset[Any]) -> str:
        if not values:
            return self.words.templates["value.none"]
        levels = {v: i for i, v in enumerate(self.column.levels or ())}
        ranks = sorted(levels[v] for v in values if v in levels)
        if len(values) > _LISTED and len(ranks) == len(values) == ranks[-1] - ranks[0] + 1:
            ends = [self.value((self.column.levels or ())[i]) for i in (ranks[0], ranks[-1])]
            return self.words.say("value.ordered", low=ends[0], high=ends[1])
        known = levels or {v: i for i, v in enumerate(self.column.values or ())}
        ordered = sorted(values, key=lambda v: (is_missing(v), known.get(v, len(known)), *_order(v)))
        said = list(dict.fromkeys(self.cell(v) for v in ordered))
        return self.words.one_of(said, clauses=self.phrases.is_ == "{}")

    def _number(self, number: Decimal, *, amount: bool = False) -> str:
        return self.words.number(number, grouped=amount or self.phrases.numbers != "plain")

    def _in_pattern(self, text: str, number: Decimal) -> str:
        return _inflected(self.unit.replace("{}", text), self.words.is_singular(number)) if "{}" in self.unit else text

    def _with_unit(self, text: str, number: Decimal) -> str:
        unit = f"{{}} {self.unit}" if self.unit and "{}" not in self.unit else self.unit or "{}"
        return _inflected(unit, self.words.is_singular(number)).replace("{}", text)


def _inflected(text: str, singular: bool) -> str:
    """`month|months` in the number that is due."""
    return _FORMS.sub(lambda m: m[1] if singular else m[2], text)


def _plain_name(name: str, *, capitals: bool = False) -> str:
    """`credit_amount`, `hours-per-week`, `NumSatisfactoryTrades` as words; `capitals` stay where words have them."""
    apart = _APART.split(name) if name.isprintable() else []
    parts = [p for word in apart for p in (_PARTS.findall(word) if word.isascii() else [word])]
    if not capitals:
        # Of AGE the letters say nothing; in MSinceTrade and 6M they are a word of their own.
        parts = [p if p.isupper() and not name.isupper() else p.lower() for p in parts]
    return " ".join(p for p in parts if p) or name


def _is_number(value: Any) -> bool:
    plain_kinds = (int, float, np.integer, np.floating)
    return isinstance(value, plain_kinds) and not isinstance(value, bool) and not is_missing(value)


def _key(value: Any) -> str:
    """A value as a schema file writes it."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return plain(exact(value)) if _is_number(value) else cell_text(value)


def _order(value: Any) -> tuple[bool, float, str]:
    """Numbers by size, then texts."""
    left = value.left if isinstance(value, pd.Interval) else value
    return (not _is_number(left), float(left) if _is_number(left) else 0.0, cell_text(value))
