"""What leaves and is read by no attack: words, figures and orders beside the values, and values that nobody has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from countervail.attack.shared.released import alike, unmoved_cells
from countervail.core.arrays import Bools, Floats, number_columns, number_rows
from countervail.core.canonical import canonical_value, code_values
from countervail.core.explanation import Explanations
from countervail.core.region import Axis, Range, Regions
from countervail.core.release import Release
from countervail.core.schema import Column
from countervail.core.table import Table
from countervail.core.words.notes import is_written

_DECISIONS = 20  # different decisions, beyond which they are no decisions
_OUTSIDE = 0.05  # share of a column's numbers that may lie a little outside of what people have
_PLACES = 6  # decimals from which on a column is taken to have any number of them
_WORDY, _MANY = 60, 40  # letters of one setting, and settings, that say how something was made
_COUNTED = re.compile(r"(\d+) of (\d+) different answers were found\.")


def unread_in(e: Explanations, table: Table, control: Table, *, mine: bool, asked: bool) -> tuple[str, ...]:
    """What leaves with answers and is read by no attack.

    `mine` is whether code of this package answers, `asked` whether it was run here.
    """
    said = list(_words(e, asked and not mine))
    if asked and not mine:
        said += _figures(e)
    shown = [str(n) for n in e.counterfactuals.columns]
    if shown != [n for n in table.schema.names() if n in shown]:
        said.append("the columns stand in another order than in the schema")
    if not asked and (count := _unknown_askers(e, control)):
        said.append(
            f"{count:,} answers hold values that are called the asker's own, of rows that are none of the controls "
            f"(give those who asked as controls, or audit what answers)"
        )
    return (*said, *_strange(e, table, control))


def unread_in_table(release: Release, table: Table, control: Table) -> tuple[str, ...]:
    """What a published table says that no attack reads."""
    return tuple(_strange(release, table, control))


def _words(e: Explanations, foreign: bool) -> Iterator[str]:
    if notes := sum(bool(text) and not (is_written(text, e.schema) and _counts(text)) for text in e.notes or ()):
        yield f"{notes:,} answers come with notes in words of their own"
    if foreign and e.caveats:
        yield f"the answers come with caveats in words of their own ({len(e.caveats):,}, not repeated here)"


def _counts(text: str) -> bool:
    """Whether numbers in a note are those of a few answers."""
    found = _COUNTED.fullmatch(text)
    return found is None or int(found[1]) <= int(found[2]) <= _MANY


def _figures(e: Explanations) -> Iterator[str]:
    """Figures and words beside the answers of somebody else's code."""
    for part, what in ((e.scores, "scores"), (e.pureness, "shares of what was tried"), (e.ids, "identifiers")):
        if part is not None:
            yield f"the answers come with {what}"
    kinds = max(len(set(map(str, labels))) for labels in (e.before, e.after))
    if kinds > _DECISIONS:
        yield f"the answers speak of {kinds:,} different decisions"
    if not plain_settings(e.provenance):
        yield "the answers say more of how they were made than a few settings"


def plain_settings(made: Mapping[str, Any]) -> bool:
    """Whether what is said of how something was made is a few names and numbers, and can hold nobody's record."""
    settings = made.get("parameters", {})
    if not isinstance(settings, Mapping):
        return False
    held = [*settings.values(), *(v for k, v in made.items() if k != "parameters")]
    plain = all(v is None or (isinstance(v, (bool, int, float, str)) and len(str(v)) <= _WORDY) for v in held)
    return plain and len(held) <= _MANY


def _unknown_askers(e: Explanations, control: Table) -> int:
    """Answers with values that are called the asker's own, of rows that no control has: nobody vouches for these."""
    if e.own is None:
        return 0
    claimed = e.found & e.own.any(axis=1)
    names = [n for n in e.factuals.columns if n in control.frame.columns]
    if not claimed.any() or not names:
        return int(claimed.sum())
    asked = e.factuals.loc[claimed, names].astype(object)
    both = pd.concat([control.frame[names].astype(object), asked], ignore_index=True)
    number = number_rows([np.zeros(len(both), dtype=np.int64), *number_columns(both, names)])
    return int((~np.isin(number[len(control) :], number[: len(control)])).sum())


def _strange(release: Explanations | Release, table: Table, control: Table) -> Iterator[str]:
    """Columns with values that nobody has: other labels, more decimals, other numbers."""
    for name, cells in _shown(release):
        if name not in table.frame.columns or name not in control.frame.columns:
            continue
        column, held = table.schema[name], [t.frame[name] for t in (table, control)]
        means = bool(getattr(release.guarantee, "centres", False))
        why = _numbers(cells, column, held, means) if column.numeric else _labels(cells, column, held)
        if why:
            yield f"'{name}' shows {why}"


def _shown(release: Explanations | Release) -> Iterator[tuple[str, Axis | pd.Series]]:
    if isinstance(release, Release):
        yield from ((str(a.name), a) for a in release.regions.axes)
        yield from ((str(n), release.others[n]) for n in release.others.columns)
        return
    found = release.found
    if not found.any():
        return
    shown = release.counterfactuals.loc[found].reset_index(drop=True)
    asked = release.factuals.loc[found].reset_index(drop=True)
    own = unmoved_cells(release, list(shown.columns))
    regions = Regions.from_cells(shown.astype(object).to_dict("records"), release.schema)  # type: ignore[arg-type]
    for axis in regions.axes:
        name = str(axis.name)
        moved = ~own[:, list(shown.columns).index(name)]
        if name in asked:
            moved &= ~alike(asked[name], shown[name])
        some: Regions = Regions((axis,), len(shown))[np.flatnonzero(moved)]
        if moved.any():
            yield name, some.axes[0]


def _labels(cells: Axis | pd.Series, column: Column, held: list[pd.Series]) -> str:
    known = {canonical_value(v) for values in held for v in code_values(values)[1]}
    known |= {canonical_value(v) for v in (*(column.levels or ()), *_domain(column))}
    if isinstance(cells, pd.Series):
        kinds = code_values(cells)[1]
    elif isinstance(cells, Range):
        return "numbers in the place of labels"
    else:
        kinds = [cells.known[i] for i in np.flatnonzero(cells.member.any(axis=0))]
    strange = sum(canonical_value(v) not in known for v in kinds if not _missing(v))
    return f"{strange:,} labels that nobody has" if strange else ""


def _numbers(cells: Axis | pd.Series, column: Column, held: list[pd.Series], means: bool) -> str:
    known = np.concatenate([_floats(values) for values in held])
    known = known[np.isfinite(known)]
    if isinstance(cells, Range):
        shown = np.concatenate([cells.low, cells.high])
    else:
        shown = _floats(cells) if isinstance(cells, pd.Series) else np.zeros(0)
    shown = shown[np.isfinite(shown)]
    if not len(known) or not len(shown):
        return ""
    low, high = float(known.min()), float(known.max())
    declared = [float(v) for v in _domain(column) if np.isfinite(v)]
    low, high = min([low, *declared]), max([high, *declared])
    outside: Bools = np.asarray((shown < low) | (shown > high))
    far = (shown < 2 * low - high) | (shown > 2 * high - low)
    if far.any() or outside.mean() > _OUTSIDE:
        return "numbers outside of what people have: it may be encoded, or another column"
    places = _decimals(known)
    if not means and places < _PLACES and _decimals(shown) > places:
        return "numbers with more decimals than anybody's"
    return ""


def _domain(column: Column) -> tuple[Any, ...]:
    declared = tuple(column.domain or ())
    return declared[:2] if column.numeric else declared  # a third number says how fine the grid is


def _decimals(numbers: Floats) -> int:
    """How many decimals numbers have, at most; from a few on they are taken to have any number."""
    for places in range(_PLACES):
        scaled = numbers * 10.0**places
        if np.allclose(scaled, np.rint(scaled), rtol=1e-9, atol=1e-6):
            return places
    return _PLACES


def _floats(values: pd.Series) -> Floats:
    return pd.to_numeric(values, errors="coerce").to_numpy(dtype=float, na_value=np.nan)


def _missing(value: Any) -> bool:
    return value is None or bool(pd.isna(value))
