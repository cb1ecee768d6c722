"""Explanations: what a person who asked why gets to see."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date as Date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.cells import cell_text, fits, frame_from_json, frame_to_json, is_missing, visible
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.files.json_data import is_number, is_scalar, is_text, json_object, need, places, texts, whole_json
from countervail.core.guarantee import Guarantee, guarantee_from_dict
from countervail.core.phrase import sentence
from countervail.core.region import Regions
from countervail.core.schema import Schema
from countervail.core.stats import plain_value
from countervail.core.table import Table
from countervail.core.words.catalogue import catalogue
from countervail.core.words.dates import dated_frame, shown_cell
from countervail.core.words.letters import write_letters
from countervail.core.words.notes import say_note
from countervail.core.words.people import change_table, people

Status = Literal["found", "already_favourable", "no_counterfactual"]
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Explanation:
    """One answer: the factual row, the cells of the counterfactual, and the decision they lead to.

    `own` names the cells that are the asker's own values, unmoved: they say nothing about anybody else.
    """

    factual: Mapping[str, Any]
    cells: Mapping[str, Any]
    status: Status
    before: Any
    after: Any
    schema: Schema
    note: str = ""
    pureness: float | None = None
    own: frozenset[str] = frozenset()

    @property
    def found(self) -> bool:
        """Whether there is a counterfactual."""
        return self.status == "found"

    @property
    def changes(self) -> dict[str, Any]:
        """The cells that the factual row does not lie in."""
        if not self.found:
            return {}
        return {n: c for n, c in self.cells.items() if n not in self.own and not fits(self.factual[n], c)}

    @property
    def sentence(self) -> str:
        """The explanation in one sentence."""
        return self.say()

    def say(self, language: str = "en", *, further: bool = False) -> str:
        """The explanation in one sentence of a language; as a `further` one, it begins with "or"."""
        if not self.found:
            return catalogue(language).say(f"status.{self.status}")
        template = "sentence.also" if further else "sentence.if"
        return sentence(self.factual, self.changes, self.schema, self.after, language, template)

    def to_text(self, language: str = "en", *, further: bool = False) -> str:
        """The sentence, and below it what must be known about it."""
        lines = [self.say(language, further=further)]
        if self.pureness is not None and self.pureness < 1:
            # Rounded down: "100%" of the combinations would be all of them.
            share = f"{math.floor(100 * self.pureness)}"
            lines.append(f"  {catalogue(language).say('sentence.combinations', share=share)}")
        if self.note:
            lines.append(f"  {visible(say_note(self.note, self.schema, language, self.factual))}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()


@dataclass(frozen=True, eq=False)
class Explanations:
    """Answers in the order of the queries; all that the asker sees.

    `factuals` and `counterfactuals` run row by row together. With several counterfactuals per query, `query` says
    which query each row answers. `own` (row x column) says which cells are the asker's own values, unmoved: they count
    for nothing where people are counted. `ids` says who asked (:meth:`with_ids`). The training table is held for the
    measures while the process lives; it is not part of repr, JSON or pickle.
    """

    factuals: pd.DataFrame
    counterfactuals: pd.DataFrame
    status: pd.Series
    before: pd.Series
    after: pd.Series
    schema: Schema
    guarantee: Guarantee
    provenance: Mapping[str, Any] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()
    query: NDArray[np.int64] | None = None
    notes: tuple[str, ...] | None = None
    pureness: NDArray[np.float64] | None = None
    scores: pd.DataFrame | None = field(default_factory=lambda: None)  # no default that would hide what is made later
    own: NDArray[np.bool_] | None = None
    ids: pd.Series | None = None
    audit: Table | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.query is None:
            object.__setattr__(self, "query", np.arange(len(self.factuals)))

    @classmethod
    def later(cls, make: Callable[[], Self], **held: Any) -> Self:
        """Explanations of which only `held` is there; `make` gives all of them when another part is looked at."""
        made = object.__new__(cls)
        vars(made).update(held, _make=make)
        return made

    def with_parts(self, **held: Any) -> Self:
        """The same with other parts; what is made later is still made later."""
        make = vars(self).get("_make")
        if make is None:
            return replace(self, **held)
        there = {name: value for name, value in vars(self).items() if name in _FIELDS}
        return self.later(lambda: replace(make(), **held), **(there | held))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What is not there yet. Several threads may make it at once, and make the same."""
            if (make := vars(self).get("_make")) is not None and name in _FIELDS:
                vars(self).update(vars(make()))
                vars(self).pop("_make", None)
            if name not in vars(self):
                raise AttributeError(f"Explanations have no attribute {name!r}.")
            return vars(self)[name]

    def __len__(self) -> int:
        assert self.query is not None
        return len(self.query)

    def __getitem__(self, i: int) -> Explanation:
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        return self._one(i, _arrays(self.factuals), _arrays(self.counterfactuals))

    def __iter__(self) -> Iterator[Explanation]:
        # The columns are taken apart once: a frame is slow to be asked for one cell after the other.
        factuals, counterfactuals = _arrays(self.factuals), _arrays(self.counterfactuals)
        return (self._one(i, factuals, counterfactuals) for i in range(len(self)))

    def _one(self, i: int, factuals: dict[str, Any], counterfactuals: dict[str, Any]) -> Explanation:
        return Explanation(
            {n: values[i] for n, values in factuals.items()},
            {n: values[i] for n, values in counterfactuals.items()},
            self.status.iloc[i],
            self.before.iloc[i],
            self.after.iloc[i],
            self.schema,
            self.notes[i] if self.notes is not None else "",
            float(self.pureness[i]) if self.pureness is not None and self.status.iloc[i] == "found" else None,
            frozenset() if self.own is None else frozenset(n for n, own in zip(counterfactuals, self.own[i]) if own),
        )

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {s}" for s, n in self.status.value_counts(sort=False).items())
        return f"Explanations({counts}; {self.guarantee})"

    @property
    def found(self) -> NDArray[np.bool_]:
        """Which rows hold a counterfactual."""
        return (self.status == "found").to_numpy()

    @property
    def regions(self) -> Regions:
        """The quasi-identifiers of the counterfactuals found (of all features when none is declared).

        Where a cell is the asker's own, the counterfactual's owner may have any value.
        """
        names = self.schema.names("quasi") or self.schema.features
        shown = self.counterfactuals.loc[self.found, names]
        if shown.empty:
            return Regions((), 0)
        cells = Regions.from_cells(shown.astype(object).to_dict("records"), self.schema)  # type: ignore[arg-type]
        return cells if self.own is None else replace(cells, free=self.unmoved(names)[self.found])

    def unmoved(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """Row x column: which cells are the asker's own."""
        columns = list(self.counterfactuals.columns)
        if self.own is None:
            return np.zeros((len(self), len(names)), dtype=bool)
        return self.own[:, [columns.index(n) for n in names]]

    def training_table(self, table: Table | None = None) -> Table:
        """The table that the measures need: the one given, or the one still held in this process."""
        held = table if table is not None else self.audit
        if held is None:
            raise SchemaError("These explanations no longer hold their training table. Pass table=... to the measure.")
        return held

    def with_ids(self, ids: Any, name: str | None = None) -> Self:
        """The answers with an identifier of each asker, one per query; no model and no protector ever sees it.

        Parameters
        ----------
        ids : Series or list
            Such as `rows["application_id"]`, in the order of the rows that were explained.
        name : str, optional
            What it is called; default: the name of the Series, or "id".
        """
        assert self.query is not None
        given = pd.Series(ids)
        called = str(given.name if given.name is not None else "id") if name is None else name
        asked = int(self.query.max()) + 1 if len(self) else 0
        if len(given) != asked or bool(given.isna().any()):
            must = f"one identifier for each of the {asked} queries, none of them missing"
            raise bad_parameter("with_ids", "ids", must, f"{len(given)}, {int(given.isna().sum())} of them missing")
        if called in (*self.factuals.columns, *self.schema.names(), "query", "status", "decision"):
            raise bad_parameter("with_ids", "name", "no column that is explained or written beside it", called)
        texts_of = [cell_text(v) for v in given.tolist()]
        return replace(self, ids=pd.Series([texts_of[q] for q in self.query], name=called, dtype=object))

    def to_frame(self) -> pd.DataFrame:
        """Query, status and decision beside the cells of each counterfactual; who asked, where that is known."""
        who = {} if self.ids is None else {str(self.ids.name): self.ids}
        lead = {**who, "query": self.query, "status": self.status, "decision": self.after}
        taken = set(self.counterfactuals.columns)
        lead = {n + "_" * (n in taken): v for n, v in lead.items()}
        cells = dated_frame(self.counterfactuals, self.schema.dates(self.counterfactuals.columns))
        return pd.concat([pd.DataFrame(lead), cells], axis=1)

    def to_text(self, language: str = "en") -> str:
        """All explanations in sentences, one below the other; of several answers to one person, each once."""
        return "\n".join(self.to_quotes(language))

    def to_quotes(self, language: str = "en") -> list[str]:
        """For each query all its answers as one text, with who asked in front where that is known."""
        assert self.query is not None
        said = ["\n".join(texts) for texts in self.texts(language)]
        if self.ids is None:
            return said
        who = dict(zip(self.query.tolist(), self.ids)).values()
        return [f"{visible(i)}: {text}" for i, text in zip(who, said)]

    def texts(self, language: str = "en") -> list[list[str]]:
        """For each query its answers in words, each of them once."""
        assert self.query is not None
        said: dict[int, dict[str, str]] = {}
        for query, e in zip(self.query.tolist(), self):
            there, text = said.setdefault(query, {}), e.to_text(language)
            if text not in there:
                there[text] = e.to_text(language, further=True) if there else text
        return [list(there.values()) for there in said.values()]

    def to_table(self, language: str = "en") -> pd.DataFrame:
        """The changes in words, one per row: who, which answer, what, now, instead, and the decision they lead to."""
        return change_table(self, language)

    def to_letters(
        self, language: str = "en", *, template: str | Path | None = None, sender: str = "", date: Date | None = None
    ) -> list[str]:
        """A letter for each person, about that person alone; `template` is a file for jinja2 in the place of ours."""
        return write_letters(self, language, template, sender, date)

    def to_json(self, language: str = "en") -> str:
        """The explanations, their promise and their provenance as JSON; `people` holds each person's changes."""
        assert self.query is not None
        return json.dumps(
            {
                "kind": "explanations",
                "version": 2,
                "schema": self.schema.to_dict(),
                "guarantee": self.guarantee.to_dict(),
                "provenance": plain_value(self.provenance),
                "caveats": list(self.caveats),
                "query": self.query.tolist(),
                "status": self.status.tolist(),
                "before": frame_to_json(self.before.to_frame("v"))["v"],
                "after": frame_to_json(self.after.to_frame("v"))["v"],
                "factuals": frame_to_json(self.factuals),
                "counterfactuals": frame_to_json(self.counterfactuals),
                "notes": None if self.notes is None else list(self.notes),
                "pureness": None if self.pureness is None else plain_value(self.pureness),
                "scores": None if self.scores is None else frame_to_json(self.scores),
                "own": None if self.own is None else plain_value(self.own),
                "ids": None if self.ids is None else {"name": str(self.ids.name), "values": self.ids.tolist()},
                "language": language,
                "sentences": [e.say(language) for e in self],
                "people": people(self, language),
            },
            default=str,
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of :meth:`to_json`; the training table does not come along."""
        owner, writer = "Explanations.from_json", "Explanations.to_json()"
        data = json_object(text, "text", owner, writer)
        if data.get("kind") != "explanations" or data.get("version") not in (1, 2):
            raise SchemaError("This JSON does not hold explanations of version 1 or 2.")
        with whole_json("text", owner, writer):
            made = cls(
                frame_from_json(data["factuals"]),
                frame_from_json(data["counterfactuals"]),
                pd.Series(texts(data["status"]), dtype=object),
                _labels(data["before"]),
                _labels(data["after"]),
                Schema.from_dict(data["schema"]),
                guarantee_from_dict(data["guarantee"]),
                dict(data["provenance"]),
                texts(data["caveats"]),
                places(data["query"], 2**63),
                None if data["notes"] is None else texts(data["notes"]),
                None if data["pureness"] is None else np.array(data["pureness"], dtype=float),
                None if data["scores"] is None else frame_from_json(data["scores"]),
                _flags(data.get("own")),
                ids=_ids(data.get("ids")),
            )
            made._check_together()
        return made

    def _check_together(self) -> None:
        """What was read is one answer per line, about columns that the schema knows."""
        parts = (
            self.counterfactuals,
            self.status,
            self.before,
            self.after,
            self.query,
            self.notes,
            self.scores,
            self.ids,
        )
        need(all(part is None or len(part) == len(self) for part in parts))
        need(self.pureness is None or self.pureness.shape == (len(self),))
        need(self.own is None or self.own.shape == self.counterfactuals.shape)
        need(set(self.status) <= set(STATUSES))
        shown = set(self.counterfactuals.columns)
        need(shown <= set(self.factuals.columns) and shown <= set(self.schema.names()))
        for column in (c for c in self.schema if c.numeric and c.name in shown):
            cells = (*self.factuals[column.name], *self.counterfactuals[column.name])
            parts_of = (v for cell in cells for v in (cell if isinstance(cell, frozenset) else (cell,)))
            need(all(is_missing(v) or isinstance(v, pd.Interval) or is_number(_item(v)) for v in parts_of))

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: None if f.name == "audit" else getattr(self, f.name) for f in fields(self)}

    def without_audit(self) -> Self:
        """The explanations as an outsider holds them."""
        return replace(self, audit=None)

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(n for e in self for n in e.changes))
        who = "" if self.ids is None else f"<th>{html.escape(str(self.ids.name))}</th>"
        head = "".join(f"<th>{html.escape(n)}</th>" for n in names)
        ids = [None] * len(self) if self.ids is None else self.ids.tolist()
        body = "".join(_html_rows(e, names, i) for e, i in zip(self, ids))
        caveats = "".join(f"<p>{html.escape(c)}</p>" for c in self.caveats)
        return (
            f"<p>{html.escape(str(self.guarantee))}</p>{caveats}"
            f"<table><thead><tr>{who}<th></th>{head}<th>decision</th></tr></thead><tbody>{body}</tbody></table>"
        )


_FIELDS = frozenset(f.name for f in fields(Explanations))


def _arrays(frame: pd.DataFrame) -> dict[str, Any]:
    return {str(n): frame[n].array for n in frame.columns}


def _labels(data: Any) -> pd.Series:
    need(isinstance(data, list) and all(is_scalar(v) for v in data))
    return pd.Series(data, dtype=object)


def _flags(data: Any) -> NDArray[np.bool_] | None:
    need(data is None or (isinstance(data, list) and all(isinstance(row, list) for row in data)))
    need(data is None or all(isinstance(flag, bool) for row in data for flag in row))
    return None if data is None else np.array(data, dtype=bool)


def _ids(data: Any) -> pd.Series | None:
    if data is None:
        return None
    need(is_text(data["name"]))
    return pd.Series(texts(data["values"]), name=data["name"], dtype=object)


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _html_rows(e: Explanation, names: list[str], who: str | None) -> str:
    """Two lines of a table: the values that some answer changes, as they are and as they would be."""
    mark = "" if who is None else f"<th>{html.escape(who)}</th>"
    blank = "" if who is None else "<th></th>"
    kinds = {n: e.schema[n].type for n in names}
    before = "".join(f"<td>{html.escape(shown_cell(e.factual[n], kinds[n]))}</td>" for n in names)
    first = f"<tr>{mark}<th>now</th>{before}<td>{html.escape(str(e.before))}</td></tr>"
    if not e.found:
        text = html.escape(e.sentence)
        return f'{first}<tr>{blank}<th></th><td colspan="{len(names) + 1}"><em>{text}</em></td></tr>'
    changed = e.changes
    after = "".join(
        f"<td><strong>{html.escape(shown_cell(changed[n], kinds[n]))}</strong></td>" if n in changed else "<td>·</td>"
        for n in names
    )
    return f"{first}<tr>{blank}<th>instead</th>{after}<td>{html.escape(str(e.after))}</td></tr>"
