"""The ways to counterfactuals: whose rows one passes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pandas as pd

from countervail.core.cells import fits, frame_to_json
from countervail.core.guarantee import Guarantee
from countervail.core.phrase import sentence
from countervail.core.schema import Schema
from countervail.core.words.catalogue import catalogue


@dataclass(frozen=True, eq=False)
class Paths:
    """For each answer the rows on the way to it: step 0 is the asker, the last one the answer.

    `rows` has the columns of the table, `query`, `answer` and `step` say which way each row is on, `decision` what the
    model says of it. Every row but the first of a way is another person's record.
    """

    query: pd.Series
    answer: pd.Series
    step: pd.Series
    decision: pd.Series
    rows: pd.DataFrame
    schema: Schema
    guarantee: Guarantee

    def __len__(self) -> int:
        return int((self.step == 0).sum())

    def __repr__(self) -> str:
        return f"Paths({len(self)}, {len(self.step) - len(self)} steps; {self.guarantee})"

    def to_frame(self) -> pd.DataFrame:
        """Query, answer, step and decision beside the cells of each row."""
        lead = {"query": self.query, "answer": self.answer, "step": self.step, "decision": self.decision}
        taken = set(self.rows.columns)
        lead = {n + "_" * (n in taken): v for n, v in lead.items()}
        return pd.concat([pd.DataFrame(lead), self.rows], axis=1)

    def to_text(self, language: str = "en") -> str:
        """Each way in sentences: what changes with every step, and what the decision would be there."""
        catalogue(language)
        lines: list[str] = []
        records: list[dict[str, Any]] = [
            dict(zip(map(str, self.rows.columns), row)) for row in self.rows.astype(object).itertuples(index=False)
        ]
        for i, (step, decision) in enumerate(zip(self.step, self.decision)):
            if step == 0:
                lines += [""] if lines else []
                continue
            before, here = records[i - 1], records[i]
            changes = {n: v for n, v in here.items() if not fits(before[n], v)}
            lines.append(f"{step}. {sentence(before, changes, self.schema, decision, language, 'sentence.if')}")
        return "\n".join(lines)

    def to_json(self) -> str:
        """The ways as JSON, with their promise."""
        data = {
            "kind": "paths",
            "guarantee": self.guarantee.to_dict(),
            "query": self.query.tolist(),
            "answer": self.answer.tolist(),
            "step": self.step.tolist(),
            "decision": frame_to_json(self.decision.to_frame("v"))["v"],
            "rows": frame_to_json(self.rows),
        }
        return json.dumps(data, default=str, allow_nan=False)
