"""The demo: what is computed, and the page that shows it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from countervail import measure
from countervail.core.protocols import Progress
from countervail.core.stats import mean_interval
from countervail.data.load import load
from countervail.explain.nice import NICE, REWARDS
from countervail.model.train import train_forest
from countervail.report.figures import histograms
from countervail.report.page import Page, Section


@dataclass(frozen=True, slots=True)
class DemoSummary:
    """What the demo found, as plain data."""

    opening: str
    sentences: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    costs: dict[str, tuple[float, ...]]
    promise: str

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain JSON data."""
        return asdict(self)


def run_demo(*, progress: Progress | None = None) -> DemoSummary:
    """Train a forest on German credit and explain the applicants whom it refuses."""
    train, test = load("german_credit").split(test_size=0.4, random_state=0)
    model = train_forest(train)
    refused = test.take(model.predict(test.features) == "bad")
    sentences: tuple[str, ...] = ()
    rows, promise = [], ""
    costs: dict[str, tuple[float, ...]] = {}
    for step, reward in enumerate(REWARDS):
        e = NICE(reward=reward, target="favourable").fit(train, model).explain(refused)
        promise = str(e.guarantee)
        if reward == "sparsity":
            sentences = tuple(x.sentence for x in list(e)[:3])
        cost = measure.recourse_cost(e)
        costs[reward] = tuple(float(v) for v in cost)
        cells = [
            f"{np.nanmean(measure.validity(e, model)):.0%}",
            *(
                _with_interval(v)
                for v in (
                    cost,
                    measure.sparsity(e),
                    measure.plausibility(e, neighbours=1),
                    measure.plausibility(e, neighbours=5),
                )
            ),
        ]
        rows.append((f"NICE, reward {reward}", *cells))
        if progress is not None:
            progress(step + 1, len(REWARDS))
    opening = (
        f"A random forest refuses {len(refused)} of {len(test)} applicants of the German credit data. "
        f"What would have to be different for three of them:"
    )
    header = ("explainer", "valid", "recourse cost", "columns changed", "nearest person", "5 nearest people")
    return DemoSummary(opening, sentences, header, tuple(rows), costs, promise)


def demo_page(summary: DemoSummary) -> Page:
    """The demo's page."""
    notes = [
        "Valid: the model decides as promised. Recourse cost: distance to walk (HEOM). Nearest person: distance from "
        "the counterfactual to the closest training record; zero means that it is somebody's record.",
        "Means with 95% intervals over the refused applicants.",
    ]
    return Page(
        "Explaining credit decisions",
        summary.opening,
        [
            Section("In words", quotes=summary.sentences),
            Section("How good are they?", notes, header=summary.header, rows=summary.rows),
            Section(
                "How far is the way?",
                picture=histograms(summary.costs, "recourse cost (HEOM distance)"),
                caption="Distance from each refused applicant to the counterfactual.",
            ),
        ],
        summary.promise,
        "German credit: UCI Machine Learning Repository, Statlog, CC BY 4.0.",
    )


def _with_interval(values: Any) -> str:
    x = mean_interval(values)
    return f"{x.value:.2f} [{x.low:.2f}, {x.high:.2f}]"
