"""Explanations: what a person who asked why gets to see."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.cells import cell_text, fits, frame_from_json, frame_to_json, is_missing, visible
from countervail.core.errors import SchemaError
from countervail.core.files.json_data import is_number, is_scalar, json_object, need, places, texts, whole_json
from countervail.core.guarantee import Guarantee, guarantee_from_dict
from countervail.core.phrase import sentence
from countervail.core.region import Regions
from countervail.core.schema import Schema
from countervail.core.stats import plain_value
from countervail.core.table import Table

Status = Literal["found", "already_favourable", "no_counterfactual"]
STATUS_TEXT: dict[str, str] = {
    "found": "",
    "already_favourable": "The decision is already favourable.",
    "no_counterfactual": "No counterfactual exists within what was asked for.",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """One answer: the factual row, the cells of the counterfactual, and the decision they lead to."""

    factual: Mapping[str, Any]
    cells: Mapping[str, Any]
    status: Status
    before: Any
    after: Any
    schema: Schema
    note: str = ""
    pureness: float | None = None

    @property
    def found(self) -> bool:
        """Whether there is a counterfactual."""
        return self.status == "found"

    @property
    def changes(self) -> dict[str, Any]:
        """The cells that the factual row does not lie in."""
        if not self.found:
            return {}
        return {n: c for n, c in self.cells.items() if not fits(self.factual[n], c)}

    @property
    def sentence(self) -> str:
        """The explanation in one sentence."""
        if not self.found:
            return STATUS_TEXT[self.status]
        return sentence(self.factual, self.cells, self.schema, self.after)

    def to_text(self) -> str:
        """The sentence, and below it what must be known about it."""
        lines = [self.sentence]
        if self.pureness is not None and self.pureness < 1:
            lines.append(f"  It holds for {self.pureness:.0%} of the combinations of these values.")
        if self.note:
            lines.append(f"  {visible(self.note)}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()


@dataclass(frozen=True, eq=False)
class Explanations:
    """Answers in the order of the queries; all that the asker sees.

    `factuals` and `counterfactuals` run row by row together. With several counterfactuals per query, `query` says
    which query each row answers. The training table is held for the measures while the process lives; it is not part
    of repr, JSON or pickle.
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
    scores: pd.DataFrame | None = None
    audit: Table | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.query is None:
            object.__setattr__(self, "query", np.arange(len(self.factuals)))

    def __len__(self) -> int:
        return len(self.factuals)

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
        """The quasi-identifiers of the counterfactuals found (of all features when none is declared)."""
        names = self.schema.names("quasi") or self.schema.features
        shown = self.counterfactuals.loc[self.found, names]
        if shown.empty:
            return Regions((), 0)
        return Regions.from_cells(shown.astype(object).to_dict("records"), self.schema)  # type: ignore[arg-type]

    def training_table(self, table: Table | None = None) -> Table:
        """The table that the measures need: the one given, or the one still held in this process."""
        held = table if table is not None else self.audit
        if held is None:
            raise SchemaError("These explanations no longer hold their training table. Pass table=... to the measure.")
        return held

    def to_frame(self) -> pd.DataFrame:
        """Query, status and decision beside the cells of each counterfactual."""
        lead = {"query": self.query, "status": self.status, "decision": self.after}
        taken = set(self.counterfactuals.columns)
        lead = {n + "_" * (n in taken): v for n, v in lead.items()}
        return pd.concat([pd.DataFrame(lead), self.counterfactuals], axis=1)

    def to_text(self) -> str:
        """All explanations in sentences, one below the other."""
        return "\n".join(e.to_text() for e in self)

    def to_json(self) -> str:
        """The explanations, their promise and their provenance as JSON."""
        assert self.query is not None
        return json.dumps(
            {
                "kind": "explanations",
                "version": 1,
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
                "sentences": [e.sentence for e in self],
            },
            default=str,
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of :meth:`to_json`; the training table does not come along."""
        owner, writer = "Explanations.from_json", "Explanations.to_json()"
        data = json_object(text, "text", owner, writer)
        if data.get("kind") != "explanations" or data.get("version") != 1:
            raise SchemaError("This JSON does not hold explanations of version 1.")
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
            )
            made._check_together()
        return made

    def _check_together(self) -> None:
        """What was read is one answer per line, about columns that the schema knows."""
        parts = (self.counterfactuals, self.status, self.before, self.after, self.query, self.notes, self.scores)
        need(all(part is None or len(part) == len(self) for part in parts))
        need(self.pureness is None or self.pureness.shape == (len(self),))
        need(set(self.status) <= set(STATUS_TEXT))
        shown = set(self.counterfactuals.columns)
        need(shown <= set(self.factuals.columns) and shown <= set(self.schema.names()))
        for column in (c for c in self.schema if c.type == "numeric" and c.name in shown):
            cells = (*self.factuals[column.name], *self.counterfactuals[column.name])
            parts_of = (v for cell in cells for v in (cell if isinstance(cell, frozenset) else (cell,)))
            need(all(is_missing(v) or isinstance(v, pd.Interval) or is_number(_item(v)) for v in parts_of))

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: None if f.name == "audit" else getattr(self, f.name) for f in fields(self)}

    def without_audit(self) -> Self:
        """The explanations as an outsider holds them."""
        return replace(self, audit=None)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(str(n))}</th>" for n in self.counterfactuals.columns)
        body = "".join(_html_rows(e) for e in self)
        caveats = "".join(f"<p>{html.escape(c)}</p>" for c in self.caveats)
        return (
            f"<p>{html.escape(str(self.guarantee))}</p>{caveats}"
            f"<table><thead><tr><th></th>{head}<th>decision</th></tr></thead><tbody>{body}</tbody></table>"
        )


def _arrays(frame: pd.DataFrame) -> dict[str, Any]:
    return {str(n): frame[n].array for n in frame.columns}


def _labels(data: Any) -> pd.Series:
    need(isinstance(data, list) and all(is_scalar(v) for v in data))
    return pd.Series(data, dtype=object)


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _html_rows(e: Explanation) -> str:
    before = "".join(f"<td>{html.escape(cell_text(v))}</td>" for v in e.factual.values())
    first = f"<tr><th>now</th>{before}<td>{html.escape(str(e.before))}</td></tr>"
    if not e.found:
        text = html.escape(STATUS_TEXT[e.status])
        return f'{first}<tr><th></th><td colspan="{len(e.cells) + 1}"><em>{text}</em></td></tr>'
    changed = e.changes
    after = "".join(
        f"<td><strong>{html.escape(cell_text(c))}</strong></td>" if n in changed else "<td>·</td>"
        for n, c in e.cells.items()
    )
    return f"{first}<tr><th>instead</th>{after}<td>{html.escape(str(e.after))}</td></tr>"
