"""The paper's Table 8, measured: which mechanism suits which priority, on the data at hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from countervail import registry
from countervail.core.errors import RefusedError, bad_parameter
from countervail.core.guarantee import DifferentialPrivacy
from countervail.core.stats import plain_value
from countervail.study.mechanisms import OPEN, mechanisms
from countervail.study.result import Row, Study

PRIORITIES: dict[str, str] = {
    "correctness": "answers that change the decision",
    "proximity": "answers near to the person who asks",
    "plausibility": "answers near to people who exist",
    "privacy": "the least epsilon over all answers",
    "trade-off": "privacy and near, plausible answers together",
    "model-agnostic": "answers that change the decision, made private around any explainer",
}
_FIGURE = {
    "correctness": "correctness",
    "model-agnostic": "correctness",
    "proximity": "dist_rec",
    "plausibility": "plaus_prox",
}
_FLOOR = 0.9


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The row that suits a priority best, the others in their order, and what is to be said about it."""

    priority: str
    best: Row
    ranked: tuple[Row, ...]
    as_good: tuple[str, ...]
    without_noise: Row | None
    answers: int
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON data."""
        return {
            "priority": self.priority,
            "recommended": self.best.to_dict(),
            "as_good": list(self.as_good),
            "answers": plain_value(self.answers),
            "sentence": self.sentence,
            "rows": [
                {**r.to_dict(), "total_epsilon": plain_value(total_epsilon(r, self.answers))} for r in self.ranked
            ],
            "without_noise": None if self.without_noise is None else self.without_noise.to_dict(),
        }


def recommend(
    study: Study, priority: str, *, answers: int = 1000, allow_no_guarantee: bool = False, floor: float = _FLOOR
) -> Recommendation:
    """The mechanism that suits a priority best, out of what a study measured on one table and model.

    Parameters
    ----------
    study : Study
        Of one table and one model; every setting in it is a candidate.
    priority : {"correctness", "proximity", "plausibility", "privacy", "trade-off", "model-agnostic"}
        What counts most. "trade-off" adds a setting's place by epsilon over all answers to its place by distance and
        plausibility (a promise that is no epsilon comes last by epsilon); "model-agnostic" looks at mechanisms that
        take any explainer as it is, and at Correctness. Near answers are worth nothing when they do not change the
        decision, so proximity and plausibility are compared among mechanisms that do it often enough, if there are
        any. Of those that the intervals cannot tell apart, the one that costs the least epsilon is taken. What was
        measured to carry nothing of the records at an epsilon (`pays_above`: private-neighbours up to 10) is shown, and
        never taken.
    answers : int
        How many answers will be given: what is drawn once costs its epsilon once, the others cost it every time.
    allow_no_guarantee : bool
        Whether a mechanism without a guarantee may be recommended at all.
    floor : float
        What "often enough" means: the least Correctness.
    """
    if priority not in PRIORITIES:
        raise bad_parameter("recommend", "priority", f"one of {list(PRIORITIES)}", priority)
    if answers < 1:
        raise bad_parameter("recommend", "answers", "a whole number of at least 1", answers)
    rows = study.rows()
    if len({(r.table, r.model) for r in rows}) > 1:
        raise bad_parameter("recommend", "study", "about one table and one model", "several")
    plain = next((r for r in rows if r.mechanism == OPEN), None)
    able = [r for r in rows if r.mechanism != OPEN and (r.proven or allow_no_guarantee) and r.people]
    if not able:
        raise RefusedError(
            "The study holds no mechanism with a guarantee, and one without is recommended only when that is allowed "
            "(allow_no_guarantee=True, --allow-no-guarantee)."
        )
    if priority == "model-agnostic":
        able = [r for r in able if "explainer" in registry.parameters(study.plan.named[r.mechanism].kind)]
        if not able:
            raise RefusedError("The study holds no mechanism that takes any explainer: compare noisy-counterfactual.")
    ranked = _ranked(able, priority, answers, floor)
    worth = [r for r in ranked if study.plan.named[r.mechanism].pays(r.epsilon)]
    if not worth:
        raise RefusedError(
            f"The study holds nothing that pays: at these epsilons the answers of {title(ranked[0])} are those of a "
            f"pool without any record. Compare private-synthetic, which spends its epsilon once."
        )
    level = [r for r in worth if _level(r, worth[0], priority, floor)]
    best = min(level, key=lambda r: (total_epsilon(r, answers), ranked.index(r)))
    as_good = tuple(title(r) for r in level if r is not best)
    left = tuple(dict.fromkeys(r.mechanism for r in ranked if r not in worth))
    text = _sentence(best, priority, plain, as_good, answers, left)
    return Recommendation(priority, best, tuple(ranked), as_good, plain, answers, text)


def total_epsilon(row: Row, answers: int) -> float:
    """What so many answers cost together; without a guarantee, without bound."""
    if not row.proven or row.epsilon is None:
        return math.inf
    known = mechanisms()
    if row.mechanism not in known:
        return math.inf
    promise = known[row.mechanism].make(row.epsilon, row.neighbours).guarantee().over(answers)
    return promise.total if isinstance(promise, DifferentialPrivacy) else math.inf


def _ranked(rows: Sequence[Row], priority: str, answers: int, floor: float) -> list[Row]:
    """The best first."""
    if priority != "trade-off":
        return sorted(rows, key=lambda r: _order(r, priority, answers, floor))
    spent, cost = [total_epsilon(r, answers) for r in rows], [_cost(r) for r in rows]
    places = [sum(s < a for s in spent) + sum(c < b for c in cost) for a, b in zip(spent, cost)]
    order = sorted(range(len(rows)), key=lambda i: (_mean_of(rows[i], "correctness") < floor, places[i], cost[i]))
    return [rows[i] for i in order]


def _cost(row: Row) -> float:
    """How far answers are from the asker, and from people."""
    return _mean_of(row, "dist_rec") + _mean_of(row, "plaus_prox")


def _mean_of(row: Row, figure: str) -> float:
    return row.figures[figure].mean.value


def _order(row: Row, priority: str, answers: int, floor: float) -> tuple[float, ...]:
    """Smaller is better; later figures settle ties."""
    correct, cost = _mean_of(row, "correctness"), _cost(row)
    if _FIGURE.get(priority) == "correctness":
        return (-round(correct, 3), cost)
    if priority == "privacy":
        return (total_epsilon(row, answers), -correct, cost)
    return (correct < floor, _mean_of(row, _FIGURE[priority]), -correct)


def _level(row: Row, first: Row, priority: str, floor: float) -> bool:
    """Whether the measurement cannot tell a row from the first."""
    if priority not in _FIGURE or row is first:
        return row is first
    figure = _FIGURE[priority]
    one, other = first.figures[figure].mean, row.figures[figure].mean
    enough = [r.figures["correctness"].mean.value >= floor for r in (first, row)]
    fit = figure == "correctness" or not enough[0] or enough[1]
    return fit and other.low <= one.high and one.low <= other.high


def title(row: Row) -> str:
    """A row's name with its setting."""
    near = f", {row.neighbours} neighbours" if row.neighbours is not None else ""
    return row.mechanism if row.epsilon is None else f"{row.mechanism} (epsilon {row.epsilon:g}{near})"


def _sentence(
    best: Row, priority: str, plain: Row | None, as_good: Sequence[str], answers: int, left: Sequence[str]
) -> str:
    f = best.figures
    total = total_epsilon(best, answers)
    parts = [
        f"For {PRIORITIES[priority]}: {title(best)}.",
        f"{_share(f['correctness'].mean)} of its answers change the decision, at a distance of "
        f"{_mean(f['dist_rec'].mean)} from the asker and {_mean(f['plaus_prox'].mean)} from the nearest records"
        + (_beside(plain) if plain is not None else "")
        + ".",
    ]
    if best.proven and math.isfinite(total):
        parts.append(f"{answers:,} answers cost epsilon {total:g} together.")
    elif best.proven:
        parts.append(f"Its promise is no epsilon: {best.guarantee}")
    else:
        parts.append("It has no privacy guarantee.")
    if best.audited is not None and best.epsilon is not None:
        parts.append(f"Measured from outside, its epsilon of {best.epsilon:g} is at least {max(best.audited, 0):.2f}.")
    if as_good:
        parts.append(f"It costs the least of those that the measurement cannot tell apart: {', '.join(as_good)}.")
    if left:
        parts.append(f"Not recommended at such epsilons, where its answers carry nothing: {', '.join(left)}.")
    parts.append(f"Measured on {best.people:,} people and {best.answers:,} answers, with 95% intervals.")
    return " ".join(parts)


def _beside(plain: Row) -> str:
    mean = {n: f.mean.value for n, f in plain.figures.items()}
    return f" (plain NICE: {mean['dist_rec']:.2f} and {mean['plaus_prox']:.2f})"


def _share(e: Any) -> str:
    return f"{100 * e.value:.1f}% [{100 * e.low:.1f}, {100 * e.high:.1f}]"


def _mean(e: Any) -> str:
    return f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]"
