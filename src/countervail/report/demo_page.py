"""The demo: what plain explanations give away on German credit, and what it costs to stop that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from countervail import measure
from countervail.attack import Inversion, Linkage
from countervail.attack.result import AttackResult
from countervail.core.explanation import Explanation, Explanations
from countervail.core.protocols import Progress
from countervail.core.stats import Estimate, mean_interval, plain_json
from countervail.core.table import Table
from countervail.core.words.catalogue import catalogue
from countervail.data.load import load
from countervail.explain.nice import NICE
from countervail.model.train import train_forest
from countervail.protect import CFK
from countervail.report.figures import histograms
from countervail.report.page import Fact, Page, Section
from countervail.report.strips import region_strip

K = 10
Answered = Callable[[Explanations, Explanations, Table, Table], None]


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to explain, attacked and measured."""

    name: str
    exposed: Estimate
    people: int
    smallest_set: int
    set_sizes: tuple[int, ...]
    left: tuple[int, ...]
    ncp: Estimate
    pureness: Estimate
    cost: Estimate
    promise: str

    @property
    def fewest_left(self) -> int:
        """People left, at the least, for someone who knows the code."""
        return min(self.left)


@dataclass(frozen=True, slots=True)
class DemoSummary:
    """What the demo found, as plain data."""

    applicants: int
    refused: int
    trained_on: int
    unique: float
    plain: Variant
    smallest: Variant
    private: Variant
    before: str
    after: str
    sentences: tuple[str, ...]
    strip: str

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain JSON data."""
        return {k: v for k, v in plain_json(self).items() if k != "strip"}

    @property
    def story(self) -> tuple[str, ...]:
        """The findings in five sentences."""
        p, s, q = self.plain, self.smallest, self.private
        alone = sum(n == 1 for n in s.left) / len(s.left)
        return (
            f"A random forest trained on {self.trained_on} people refuses {self.refused} of {self.applicants} "
            f"applicants. {self.unique:.0%} of the people in the training data are unique by eight everyday facts.",
            f"Plain explanations (NICE) answer with a training record: {p.exposed.value:.0%} of them "
            f"[{p.exposed.low:.0%}, {p.exposed.high:.0%}] point at exactly one person, and whoever knows the facts "
            f"about {p.people} people can read the rest of their record.",
            f"k-anonymous explanations (CF-K, k={K}), which ask only for what people can change, show facts that at "
            f"least {q.smallest_set} people share: {q.exposed.value:.0%} of them point at one person.",
            f"But k must hold against someone who knows our code. The smallest region around a record gives its owner "
            f"away: rerunning the search leaves one person for {alone:.0%} of such explanations. With groups that are "
            f"settled beforehand, our default, at least {q.fewest_left} are left.",
            f"The price: the facts are blurred by {q.ncp.value:.1%} of their range (NCP [{q.ncp.low:z.1%}, "
            f"{q.ncp.high:.1%}]); {q.pureness.value:.0%} of the combinations they stand for keep the decision.",
        )


def run_demo(*, progress: Progress | None = None, answered: Answered | None = None) -> DemoSummary:
    """Explain the refused applicants plainly and k-anonymously, and attack both.

    `answered` is handed the plain answers, the private ones, the people behind them, and those who were held out.
    """
    tick = progress or (lambda done, total: None)
    train, test = load("german_credit").split(test_size=0.4, random_state=0)
    model = train_forest(train)
    refused = test.take(model.predict(test.features) == "bad")
    tick(1, 4)
    plain = NICE(target="favourable", justified=False).fit(train, model).explain(refused)
    tick(2, 4)
    smallest = CFK(k=K, search="exact").fit(train, model)
    # Others' answers may ask for anything, as their papers have it; ours keep to what is declared of people.
    asking, _ = load("german_credit", actionable=True).split(test_size=0.4, random_state=0)
    groups = CFK(k=K).fit(asking, model)
    private = groups.explain(refused)
    if answered is not None:
        answered(plain, private, train, test)
    tick(3, 4)
    shown = _telling(plain, private)
    summary = DemoSummary(
        len(test),
        len(refused),
        len(train),
        float((measure.class_sizes(train) == 1).mean()),
        _variant("plain (NICE)", plain, None, train, test, model),
        _variant("CF-K, smallest region", smallest.explain(refused), smallest, train, test, model),
        _variant("CF-K, groups (default)", private, groups, train, test, model),
        plain[shown].sentence,
        private[shown].sentence,
        tuple(x.sentence for x in private if x.found)[:3],
        region_strip(private[shown], train),
    )
    tick(4, 4)
    return summary


def demo_page(summary: DemoSummary) -> Page:
    """The demo's page."""
    p, s, q = summary.plain, summary.smallest, summary.private
    every = (p, s, q)
    sizes = {v.name: np.minimum(v.left, 30) for v in every}
    header = ("", *(v.name for v in every))
    rows = [
        ("explanations that point at one person on a list", *(_share(v.exposed) for v in every)),
        ("people whose record can be read from a list", *(str(v.people) for v in every)),
        ("fewest people behind an explanation, nominally", *(str(v.smallest_set) for v in every)),
        ("fewest people left for someone who knows the code", *(str(v.fewest_left) for v in every)),
        ("blur of the quasi-identifiers (NCP)", *(_share(v.ncp) for v in every)),
        ("combinations that keep the decision (pureness)", *(_share(v.pureness) for v in every)),
        ("distance to the counterfactual (HEOM)", *(_figure(v.cost) for v in every)),
    ]
    return Page(
        "Reasons without giving people away",
        "German credit: what plain explanations expose, and what it costs to stop that.",
        [
            Section(
                "What was found",
                summary.story,
                facts=[
                    Fact(f"{p.exposed.value:.0%}", "of plain explanations point at exactly one person"),
                    Fact(f"{q.exposed.value:.0%}", f"of k-anonymous explanations do (k={K})"),
                    Fact(str(q.fewest_left), "people left, at the least, for someone who knows our code"),
                    Fact(f"{q.ncp.value:.1%}", "blur of the everyday facts (NCP)"),
                    Fact(f"{q.pureness.value:.0%}", "of the combinations keep the decision"),
                ],
            ),
            Section(
                "One explanation, before and after", quotes=[f"Plain: {summary.before}", f"Private: {summary.after}"]
            ),
            Section("Where it lies", picture=summary.strip, caption=catalogue("en").say("page.strip")),
            Section(
                "How many people could it be?",
                picture=histograms(sizes, "people left for someone who knows the code (30: thirty or more)", bins=30),
                caption="One means that the person is found out.",
            ),
            Section("In figures", ["Means and shares with 95% intervals."], header=header, rows=rows),
            Section("More private explanations", quotes=summary.sentences),
        ],
        q.promise,
        "German credit: UCI Machine Learning Repository, Statlog, CC BY 4.0.",
    )


def _variant(name: str, e: Explanations, protector: CFK | None, train: Table, test: Table, model: Any) -> Variant:
    result: AttackResult = Linkage().run(e, train, test)
    left = Inversion().run(protector, train, test).set_sizes if protector is not None else result.set_sizes
    return Variant(
        name,
        result.exposed,
        round(result.members.value * result.members.n),
        int(result.set_sizes.min()),
        tuple(int(s) for s in result.set_sizes),
        tuple(int(s) for s in left),
        mean_interval(measure.ncp(e)),
        mean_interval(measure.pureness(e, model)),
        mean_interval(measure.recourse_cost(e)),
        str(e.guarantee),
    )


def _telling(plain: Explanations, private: Explanations) -> int:
    """A pair that shows the difference: both found, the private one with a numeric range, few changes."""

    def rank(pair: tuple[Explanation, Explanation]) -> tuple[bool, int]:
        a, b = pair
        return not (a.found and b.found and "age" in b.changes), len(b.changes) if b.found else 99

    pairs = list(zip(plain, private))
    return min(range(len(pairs)), key=lambda i: rank(pairs[i]))


def _share(x: Estimate) -> str:
    return f"{x.value:.1%} [{x.low:z.1%}, {x.high:.1%}]"


def _figure(x: Estimate) -> str:
    return f"{x.value:.2f} [{x.low:.2f}, {x.high:.2f}]"
