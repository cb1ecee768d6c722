"""What is audited: something that answers, something that was released, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from countervail import registry
from countervail.attack.base import ours
from countervail.attack.shared.persons import owners
from countervail.attack.shared.released import alike, as_seen
from countervail.auditing.unread import unread_in, unread_in_table
from countervail.core.arrays import Bools, Ints, number_columns, number_rows
from countervail.core.cells import cell_text, is_missing
from countervail.core.errors import CountervailError, ParameterError, RefusedError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.guarantee import Guarantee
from countervail.core.people import people_of, person_columns
from countervail.core.release import Release
from countervail.core.rng import generator
from countervail.core.table import Table

UNKNOWN = "unknown"  # the maker of what does not say how it was made
_OVERLAP = 0.05  # share of controls who may be equal to a member beyond what members are to each other
_STEP = 0.1  # of the spread of a number: what lies within it may be the same under noise or rounding
_PROBE, _AGAIN = 20, 200  # questions that show how answers look, and those that are asked twice
_ALONE = 10  # of these, asked one by one besides
_FEWEST = 20  # members and controls below which nothing is worth being counted


@dataclass(frozen=True, eq=False, slots=True)
class Subject:
    """What leaves (`released`), whom an adversary may ask (`oracle`), and what is promised of it.

    `strangers` are the controls who did not ask themselves, or whose own values are marked in the answers: an answer
    that holds the asker's values would else be found to speak of a control. `askers` are those who are asked about.
    `unread` names what leaves beside the values and is read by no attack; `steady` is whether what declares no noise
    gives the same answer to the same question.
    """

    kind: str
    name: str
    released: Explanations | Release
    strangers: Table
    askers: Table
    oracle: Any = None
    maker: Any = None
    caveats: tuple[str, ...] = ()
    made: Mapping[str, Any] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    steady: bool = True

    @property
    def guarantee(self) -> Guarantee:
        """What is promised."""
        return self.released.guarantee

    @property
    def is_table(self) -> bool:
        """Whether rows of a table leave."""
        return isinstance(self.released, Release)


def read_subject(what: Any, table: Table, control: Table, *, answers: int = 1000) -> Subject:
    """Something to audit, asked for what it would release.

    Whatever explains is asked as up to `answers` people of the controls; whatever protects tables gives its release.
    """
    if isinstance(what, Explanations):
        return _answered(what, table, control)
    if isinstance(what, Release):
        _check_table(what, table)
        unread = unread_in_table(what, table, control)
        made = what.provenance
        return Subject("table", _made_by(what), what, control, control, caveats=what.caveats, made=made, unread=unread)
    if hasattr(what, "explain") or hasattr(what, "protect"):
        return _asked(what, table, control, answers)
    if isinstance(what, (str, Path, tuple)) or hasattr(what, "cf_examples_list") or hasattr(what, "to_json"):
        from countervail.explain.foreign import read_explanations

        return _answered(read_explanations(what, table=table), table, control)
    must = (
        "a fitted explainer or protector, Explanations, a Release, a pair of frames (factuals, counterfactuals), or "
        "the path of a file of explanations"
    )
    raise bad_parameter("audit", "what", must, type(what).__name__)


def check_controls(table: Table, control: Table) -> None:
    """Controls are people who were never in the data, and there are enough of both."""
    for name, given in (("table", table), ("control", control)):
        if not isinstance(given, Table):
            raise bad_parameter("audit", name, "a Table, such as a part of `table.split()`", type(given).__name__)
        if len(given) < _FEWEST:
            raise bad_parameter("audit", name, f"a Table of at least {_FEWEST} people", f"{len(given)}")
    if missing := [n for n in table.schema.names() if n not in control.frame.columns and n in table.frame.columns]:
        raise ParameterError(
            f"The 'control' parameter of audit must have the columns of the table. It lacks {len(missing)} of them, "
            f"the first of which is '{missing[0]}'."
        )
    named = person_columns(table)
    if named:
        both = pd.concat([table.frame[named], control.frame[named]], ignore_index=True)
        person = people_of(both, named)
        shared = np.isin(person[len(table) :], person[: len(table)])
        if shared.any():
            _refuse_overlap(int(shared.sum()), "by their identifiers")
    features = [n for n in table.schema.names("quasi", "sensitive", "attribute", "target") if n in table.frame.columns]
    inside, outside = _equal_rows(table.frame, control.frame, features)
    if outside.mean() > 2 * inside.mean() + _OVERLAP:
        _refuse_overlap(int(outside.sum()), "in every column")
    inside, outside = _equal_rows(*_coarse(table, control, features), features)
    if outside.mean() > 2 * inside.mean() + _OVERLAP + 3 / len(outside):  # of few controls some meet by chance
        _refuse_overlap(int(outside.sum()), "in every column but for a little noise or rounding")


def _coarse(table: Table, control: Table, names: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both with numbers in steps of a tenth of their spread."""
    frames = [t.frame[list(names)].copy() for t in (table, control)]
    for name in (n for n in names if table.schema[n].numeric):
        numbers = [pd.to_numeric(f[name], errors="coerce").to_numpy(dtype=float, na_value=np.nan) for f in frames]
        step = _STEP * max(float(np.nanstd(numbers[0])), 1e-12) if np.isfinite(numbers[0]).any() else 1.0
        frames = [f.assign(**{name: np.floor(v / step + 0.5)}) for f, v in zip(frames, numbers)]
    return frames[0], frames[1]


def _refuse_overlap(count: int, how: str) -> None:
    raise ParameterError(
        f"The 'control' parameter of audit must hold people who are not in the table: {count:,} of them are equal to "
        f"members {how}. Hold people out before anything is fitted, as table.split() does."
    )


def _equal_rows(table: pd.DataFrame, control: pd.DataFrame, names: list[str]) -> tuple[Bools, Bools]:
    """Which rows of the table are equal to another of its rows, and which controls are equal to a row of it."""
    both = pd.concat([table[names], control[names]], ignore_index=True)
    number = number_rows([np.zeros(len(both), dtype=np.int64), *number_columns(both, names)])
    inside = number[: len(table)]
    counts = np.bincount(inside, minlength=int(number.max()) + 1)
    return counts[inside] > 1, counts[number[len(table) :]] > 0


def _asked(what: Any, table: Table, control: Table, answers: int) -> Subject:
    name = getattr(type(what), "name", type(what).__name__)
    if getattr(what, "ledger", None) is not None:
        raise ParameterError(
            f"The 'what' given to audit is {type(what).__name__} with a ledger: an audit asks many questions, and each "
            f"would be debited. Fit one without a ledger on the same table and audit that."
        )
    try:
        if not hasattr(what, "explain") or isinstance(what, tuple(registry.table_protectors().values())):
            released: Explanations | Release = what.protect(table)
            if isinstance(released, Release):
                _check_table(released, table)
            unread = unread_in_table(released, table, control) if isinstance(released, Release) else ()
            return Subject(
                "table protector",
                name,
                released,
                control,
                control,
                maker=what,
                caveats=released.caveats,
                made=released.provenance,
                unread=unread,
            )
        marked = what.explain(_rows(control, _PROBE)).own is not None
        askers, strangers = (control, control) if marked else control.split(test_size=0.5, random_state=0)
        rows = _rows(askers, answers)
        some = generator(0).permutation(len(rows))[:_AGAIN]  # in another order, and beside others than before
        first, again = what.explain(rows), what.explain(rows.iloc[some].reset_index(drop=True))
        alone = [what.explain(rows.iloc[[i]].reset_index(drop=True)) for i in some[:_ALONE]]
    except CountervailError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever somebody else's code raises; its text may hold rows
        raise RefusedError(
            f"What is to be audited raised {type(error).__name__} when it was asked about the people of the controls."
        ) from None
    if not isinstance(first, Explanations):
        raise bad_parameter("audit", "what", "something whose explain() gives Explanations", type(first).__name__)
    _check_columns(first, table)
    _check_rows(first, rows)
    noisy = bool(registry.fact(type(what), "draws_noise")) and not registry.fact(type(what), "keeps_draw")
    mine, unread = ours(what), unread_in(first, table, control, mine=ours(what), asked=True)
    steady = _same(first, again, some) and all(_same(first, e, some[[i]]) for i, e in enumerate(alone))
    if noisy and not mine and not steady:
        unread = (*unread, "it declares noise of its own: what it answers on other occasions than these")
    return Subject(
        "explainer",
        name,
        as_seen(first.without_audit(), rows),
        strangers,
        askers,
        what,
        what,
        first.caveats if mine else (),
        first.provenance,
        unread,
        noisy or steady,
    )


def _answered(e: Explanations, table: Table, control: Table) -> Subject:
    """Explanations, and those of the controls who did not ask for them."""
    _check_columns(e, table)
    strangers = control
    if e.own is None:
        names = [n for n in e.factuals.columns if n in control.frame.columns]
        _, asked = _equal_rows(e.factuals, control.frame, names)
        if (whose := owners(control)) is not None:
            asked = np.isin(whose, whose[asked])  # whoever asked with one row did
        if (~asked).sum() < _FEWEST:
            raise ParameterError(
                f"The 'control' parameter of audit must hold at least {_FEWEST} people who did not ask for these "
                f"explanations: whoever asked is found in the answer. Give other people."
            )
        strangers = control.take(~asked) if asked.any() else control
    return Subject(
        "explanations",
        _made_by(e),
        as_seen(e),
        strangers,
        control,
        caveats=e.caveats,
        made=e.provenance,
        unread=unread_in(e, table, control, mine=False, asked=False),
    )


def _check_rows(e: Explanations, rows: pd.DataFrame) -> None:
    """Answers are about the rows that were asked about."""
    if not all(isinstance(f.index, pd.RangeIndex) for f in (e.factuals, e.counterfactuals, e.status)):
        raise RefusedError(
            "What is to be audited gives answers with an index of its own, which may name people: no attack reads it. "
            "Give them the numbers of the rows."
        )
    query = np.asarray(e.query)
    there = len(query) == len(e.factuals) and ((query >= 0) & (query < len(rows))).all()
    asked = rows.iloc[query if there else query[:0]].reset_index(drop=True)
    names = [n for n in e.factuals.columns if n in asked.columns]
    if not there or not names or not all(alike(asked[n], e.factuals[n]).all() for n in names):
        raise RefusedError(
            "What is to be audited gives answers about other rows than it was asked about: the values that it calls "
            "the asker's own may be anybody's. `factuals` must be the rows that were asked about, in their order."
        )


def _rows(people: Table, most: int) -> pd.DataFrame:
    return people.frame[people.schema.features].iloc[:most].reset_index(drop=True)


def _same(first: Explanations, again: Explanations, rows: Ints) -> bool:
    """Whether these queries got the same answers, notes and statuses both times; `again` has them in this order."""
    both = []
    for e, order in ((first, rows), (again, np.arange(len(rows)))):
        query = np.asarray(e.query)
        at = np.concatenate([np.flatnonzero(query == q) for q in order])
        notes = pd.Series([""] * len(e) if e.notes is None else list(e.notes))
        told = pd.concat([e.status, e.after, notes, e.counterfactuals], axis=1).iloc[at].astype(object)
        both.append(told.map(lambda v: "" if is_missing(v) else cell_text(v)).reset_index(drop=True))
    return list(both[0].columns) == list(both[1].columns) and both[0].equals(both[1])


def _made_by(released: Explanations | Release) -> str:
    made = released.provenance
    return str(made.get("protector") or made.get("explainer") or made.get("format") or UNKNOWN)


def _check_columns(e: Explanations, table: Table) -> None:
    """Explanations speak of the table's own columns, and of no identifier."""
    shown = [str(n) for n in e.counterfactuals.columns]
    _refuse_identifiers("The explanations given to audit show", shown, table)
    strange = [n for n in shown if n not in table.schema.names()]
    if strange:
        raise ParameterError(
            f"The explanations given to audit speak of columns that the table does not have: {', '.join(strange[:5])}. "
            f"Give the table that they came from, or read them with cv.read_explanations(..., decode=...)."
        )


def _check_table(release: Release, table: Table) -> None:
    """A published table has columns of the table that it came from, and no identifier."""
    shown = [*map(str, release.regions.names), *map(str, release.others.columns)]
    _refuse_identifiers("The published table given to audit has", shown, table)
    strange = [n for n in shown if n not in table.schema.names()]
    if strange:
        raise ParameterError(
            f"The published table given to audit has {len(strange)} columns that the table behind it does not have: no "
            f"attack would read them. Leave them out, or declare them in the schema."
        )


def _refuse_identifiers(whose: str, shown: Sequence[str], table: Table) -> None:
    if named := [n for n in shown if n in table.schema.names("identifier")]:
        raise ParameterError(
            f"{whose} {len(named)} columns that are declared identifiers, '{named[0]}' among them: that names people, "
            f"and no attack is needed. Leave them out."
        )
