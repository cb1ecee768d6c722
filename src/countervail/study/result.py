"""What a study has found: sums per cell, pooled over seeds into figures with intervals."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import Floats
from countervail.core.files.json_data import is_count, is_number, need, whole_json
from countervail.core.guarantee import NoGuarantee
from countervail.core.stats import Estimate, clopper_pearson, plain_json, plain_value
from countervail.measure.private import AnswerFigures, FigureSpread
from countervail.study.plan import Cell, StudyPlan

SHARES = ("correctness", "m0", "m1")
_LARGEST = 1e150
FIGURES = ("dist_rec", "plaus_prox", "correctness", "m0", "m1", "d_min")


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, sum and sum of squares over people (each person's mean over runs) and over answers."""

    people: int
    total: float
    squares: float
    answers: int
    answer_total: float
    answer_squares: float

    @classmethod
    def of(cls, values: Floats, person: NDArray[np.int64]) -> Self:
        """From one value per answer, and whose answer it is."""
        _, place = np.unique(person, return_inverse=True)
        mean = np.bincount(place, values) / np.bincount(place) if len(place) else np.zeros(0)
        return cls(
            len(mean),
            float(mean.sum()),
            float((mean**2).sum()),
            len(values),
            float(values.sum()),
            float((values**2).sum()),
        )

    def __add__(self, other: Moments) -> Moments:
        return Moments(*(a + b for a, b in zip(asdict(self).values(), asdict(other).values())))

    def estimate(self, *, share: bool, level: float = 0.95) -> Estimate:
        """The mean with Student's interval over people; a share that never varied gets the binomial one."""
        if not self.people:
            return Estimate(math.nan, math.nan, math.nan, 0, level)
        mean = self.total / self.people
        spread = _variance(self.people, self.total, self.squares)
        if share and spread < 1e-12:
            return clopper_pearson(round(mean * self.people), self.people, level)
        if self.people == 1:
            return Estimate(mean, -math.inf, math.inf, 1, level)
        from scipy.stats import t

        half = float(t.ppf((1 + level) / 2, self.people - 1)) * math.sqrt(spread / self.people)
        low, high = mean - half, mean + half
        return Estimate(mean, max(low, 0.0), min(high, 1.0) if share else high, self.people, level)

    def deviation(self) -> float:
        """Standard deviation over answers, as the paper gives it."""
        return math.sqrt(_variance(self.answers, self.answer_total, self.answer_squares))


def _variance(n: int, total: float, squares: float) -> float:
    return max(0.0, (squares - total**2 / n) / (n - 1)) if n > 1 else 0.0


@dataclass(frozen=True, slots=True)
class CellResult:
    """The sums of one cell; `asked` answers were wanted."""

    moments: Mapping[str, Moments]
    asked: int
    accuracy: float
    seconds: float

    @classmethod
    def of(cls, figures: AnswerFigures, person: NDArray[np.int64], asked: int, accuracy: float, seconds: float) -> Self:
        """From the figures of every answer."""
        values = {
            "dist_rec": figures.dist_rec,
            "plaus_prox": figures.plaus_prox,
            "correctness": figures.correct.astype(float),
            "m0": (figures.matches == 0).astype(float),
            "m1": (figures.matches == 1).astype(float),
            "d_min": figures.d_min,
        }
        return cls({n: Moments.of(v, person) for n, v in values.items()}, asked, accuracy, seconds)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON data."""
        return plain_json(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`."""
        with whole_json("data", "CellResult.from_dict", "CellResult.to_dict()"):
            need(is_count(data["asked"]) and set(data["moments"]) == set(FIGURES))
            moments = {n: _moments(data["moments"][n], share=n in SHARES) for n in FIGURES}
            return cls(moments, data["asked"], _figure(data["accuracy"]), _figure(data["seconds"]))


def _moments(data: Mapping[str, Any], *, share: bool) -> Moments:
    """Sums that belong together: a share is at most one for everybody."""
    need(set(data) == {f.name for f in fields(Moments)})
    sums: dict[str, Any] = {k: v if k in ("people", "answers") else _figure(v) for k, v in data.items()}
    made = Moments(**sums)
    need(is_count(made.people) and is_count(made.answers) and made.people <= made.answers)
    need(not share or not (made.total < 0 or made.total > made.people + 1e-6))
    return made


def _figure(value: Any) -> float:
    """A figure of JSON data, where what is not finite is left open; its square is finite, too."""
    need(value is None or (is_number(value) and abs(value) < _LARGEST))
    return math.nan if value is None else float(value)


@dataclass(frozen=True, slots=True)
class Row:
    """One mechanism with one setting on one table and model, over all seeds."""

    table: str
    model: str
    mechanism: str
    epsilon: float | None
    neighbours: int | None
    proven: bool
    guarantee: str
    figures: Mapping[str, FigureSpread]
    people: int
    answers: int
    asked: int
    seeds: int
    accuracy: float
    audited: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON data."""
        figures = {n: {**f.mean.to_dict(), "deviation": plain_value(f.deviation)} for n, f in self.figures.items()}
        rest = {k: v for k, v in plain_json(self).items() if k != "figures"}
        return {**rest, "figures": figures}


@dataclass(frozen=True, eq=False, slots=True)
class Study:
    """Finished cells and the plan they belong to. M0, M1 and d_min look at the private table: for its owner only."""

    plan: StudyPlan
    results: Mapping[Cell, CellResult]
    audits: Mapping[tuple[str, float], float] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every cell of the plan is finished."""
        return all(cell in self.results for cell in self.plan.cells())

    def rows(self) -> list[Row]:
        """The comparison, pooled over seeds, in the order of the plan."""
        groups: dict[tuple[Any, ...], list[CellResult]] = {}
        for c in self.plan.cells():
            if c in self.results:
                groups.setdefault((c.table, c.model, c.mechanism, c.epsilon, c.neighbours), []).append(self.results[c])
        return [self._row(key, found) for key, found in groups.items()]

    def _row(self, key: tuple[Any, ...], found: Sequence[CellResult]) -> Row:
        table, model, name, epsilon, neighbours = key
        mechanism = self.plan.named[name]
        missing = tuple(self.plan.missing.get(table, ()))
        pooled = {n: _sum([r.moments[n] for r in found]) for n in FIGURES}
        figures = {n: FigureSpread(m.estimate(share=n in SHARES), m.deviation()) for n, m in pooled.items()}
        return Row(
            table,
            model,
            name,
            epsilon,
            neighbours,
            mechanism.proven,
            _promise(mechanism.make(epsilon, neighbours, missing, self.plan.target)),
            figures,
            pooled["dist_rec"].people,
            pooled["dist_rec"].answers,
            sum(r.asked for r in found),
            len(found),
            float(np.mean([r.accuracy for r in found])),
            self.audits.get((name, float(epsilon))) if epsilon is not None else None,
        )

    def to_frame(self) -> pd.DataFrame:
        """One line per row, with the ends of each interval."""
        lines = []
        for row in self.rows():
            line = {k: v for k, v in asdict(row).items() if k not in ("figures", "guarantee")}
            for n, f in row.figures.items():
                line |= {n: f.mean.value, f"{n}_low": f.mean.low, f"{n}_high": f.mean.high, f"{n}_sd": f.deviation}
            lines.append(line)
        return pd.DataFrame(lines)

    def plot(self) -> str:
        """Each figure of each row with its interval, as an SVG picture."""
        from countervail.study.pictures import study_picture

        return study_picture(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """The plan and its rows as plain JSON data."""
        return {"plan": self.plan.to_dict(), "complete": self.complete, "rows": [r.to_dict() for r in self.rows()]}

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)


def _promise(made: Any) -> str:
    """What an explainer promises, in words; whoever says nothing promises nothing."""
    told = made.guarantee() if callable(getattr(made, "guarantee", None)) else NoGuarantee("it states none")
    return str(told)


def _sum(parts: Sequence[Moments]) -> Moments:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
