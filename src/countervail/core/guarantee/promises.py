"""Guarantees: promises computed from parameters alone, that name their adversary and can try to refute themselves."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from countervail.core.arrays import Floats, Ints
from countervail.core.errors import bad_parameter
from countervail.core.files.json_data import is_count, is_number, is_scalar, is_text, need, texts, whole_json
from countervail.core.guarantee.budget import Budget
from countervail.core.guarantee.diversity import DIVERSITIES, GROUNDS, SLACK, Tally
from countervail.core.guarantee.evidence import rerun_evidence
from countervail.core.stats import plain_json

if TYPE_CHECKING:
    import pandas as pd

    from countervail.core.region import Regions
    from countervail.core.schema import Schema
    from countervail.core.table import Table

Flags = NDArray[np.bool_]
Against = Literal["register", "algorithm"]
ADVERSARIES: dict[str, str] = {
    "register": "someone who holds a register of everybody's quasi-identifiers and sees the release",
    "algorithm": "someone who holds a register of everybody's quasi-identifiers, the model, our code and its settings, "
    "and asks without limit",
}


class PublishedRegions(Protocol):
    """What a refutation looks at: the regions that left."""

    @property
    def regions(self) -> Regions: ...


@runtime_checkable
class PublishedTable(Protocol):
    """Rows that left: which of them share their published quasi-identifiers, and their other columns."""

    @property
    def schema(self) -> Schema: ...

    def classes(self) -> Ints: ...

    def column(self, name: str) -> pd.Series: ...


Again = Callable[["Table"], PublishedRegions]


_PAIRS = 1 << 24  # regions x rows looked at at once


def class_sizes(release: PublishedTable) -> Ints:
    """How many rows each class has."""
    classes, lines = release.classes(), _lines(release)
    if lines is None:
        return np.bincount(classes)
    sizes: Ints = np.zeros(int(classes.max(initial=-1)) + 1, np.int64)
    np.add.at(sizes, classes, lines)
    return sizes


def _lines(release: PublishedTable) -> Ints | None:
    """How many rows each line stands for, where equal rows have been counted; None where each stands for itself."""
    return getattr(release, "counts", None)


def _strange(release: PublishedRegions, table: Table) -> str | None:
    """What is wrong with regions that cannot be about the table."""
    missing = [n for n in release.regions.names if n not in table.frame.columns]
    return f"the regions name {len(missing)} column(s) that the table does not have" if missing else None


def _people(release: PublishedRegions, table: Table) -> Iterator[Flags]:
    """Who of the table lies in each region."""
    regions, step = release.regions, max(1, _PAIRS // max(len(table), 1))
    for a in range(0, len(regions), step):
        yield from regions[a : a + step].covers(table.frame)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A promise. `refute` gives a reason why it does not hold, or None when it found none."""

    proof: ClassVar[str | None] = None

    def __str__(self) -> str:
        return f"{self.claim} against {self.adversary}."

    def over(self, answers: int) -> Guarantee:
        """The promise for this many answers together."""
        return self

    @property
    def adversary(self) -> str | None:
        """Whom the promise withstands, in words."""
        return ADVERSARIES.get(getattr(self, "against", ""))

    @property
    def claim(self) -> str:
        """The promise in a few words, without its adversary."""
        return "nothing"

    def failing(self, release: PublishedTable) -> Flags:
        """Which classes of equal published quasi-identifiers break the promise, counted on the rows alone."""
        return np.zeros(int(release.classes().max(initial=-1)) + 1, dtype=bool)

    def recount(self, release: PublishedRegions | PublishedTable) -> str | None:
        """What is broken in the published rows alone, in words that name nobody; None when nothing is."""
        if not isinstance(release, PublishedTable):
            return None
        failing = self.failing(release)
        return f"{int(failing.sum())} of {len(failing)} classes break {self.claim}" if failing.any() else None

    def refute(self, release: PublishedRegions, table: Table, again: Again | None = None) -> str | None:
        """Try to show that the promise is broken."""
        return self.recount(release)

    def to_dict(self) -> dict[str, Any]:
        """The promise as plain JSON data."""
        return {"promise": type(self).__name__, **plain_json(self)}


@dataclass(frozen=True, slots=True)
class NoGuarantee(Guarantee):
    """Nothing is promised, and `why`."""

    why: str

    def __str__(self) -> str:
        return f"No privacy guarantee: {self.why}."


@dataclass(frozen=True, slots=True)
class KAnonymity(Guarantee):
    """At least `k` people of the table share every released combination of quasi-identifiers.

    `centres`: what they share is the centre of their group, in which nobody need lie.
    """

    k: int
    against: Against = "register"
    centres: bool = False

    def __post_init__(self) -> None:
        _check_against("KAnonymity", self.against)

    @property
    def claim(self) -> str:
        """The promise in a few words."""
        return f"{self.k}-anonymity"

    def to_dict(self) -> dict[str, Any]:
        """The promise as plain JSON data; of centres only where cells are centres."""
        data = {"promise": "KAnonymity", **plain_json(self)}
        return data if self.centres else {n: v for n, v in data.items() if n != "centres"}

    def failing(self, release: PublishedTable) -> Flags:
        """Which published classes have fewer than k rows."""
        return class_sizes(release) < self.k

    def refute(self, release: PublishedRegions, table: Table, again: Again | None = None) -> str | None:
        """Count the rows of each class that left, then the people in each region."""
        if (broken := self.recount(release)) is not None:
            return broken
        if (strange := _strange(release, table)) is not None:
            return strange
        regions = getattr(release, "held", None) if self.centres else release.regions
        if regions is None:
            return None
        counts = regions.count(table.frame)
        short = int((counts < self.k).sum())
        if short:
            return f"{short} of {len(counts)} regions hold fewer than k={self.k} people; the least holds {counts.min()}"
        return None


@dataclass(frozen=True, slots=True)
class KCommonality(Guarantee):
    """At least `k` people of the table fit every released pattern (or rule); these overlap: it is no k-anonymity."""

    k: int
    of: str = "pattern"
    against: Against = "register"
    proof: ClassVar[str | None] = "docs/decisions/k-commonality.md"

    def __post_init__(self) -> None:
        _check_against("KCommonality", self.against)

    def __str__(self) -> str:
        return (
            f"{self.claim} against {self.adversary}: every {self.of} fits at least {self.k} people. "
            f"{self.of.capitalize()}s overlap: what several of them have in common may fit fewer."
        )

    @property
    def claim(self) -> str:
        """The promise in a few words."""
        return f"{self.k}-commonality"

    def refute(self, release: PublishedRegions, table: Table, again: Again | None = None) -> str | None:
        """Count the people who fit each pattern, in every column that it names."""
        if missing := [n for n in release.regions.names if n not in table.frame.columns]:
            return f"the {self.of}s name {len(missing)} column(s) that the table does not have"
        counts = release.regions.count(table.frame)
        short = int((counts < self.k).sum())
        if short:
            least = int(counts.min())
            return f"{short} of {len(counts)} {self.of}s fit fewer than k={self.k} people; the least fits {least}"
        return None


@dataclass(frozen=True, slots=True)
class LDiversity(Guarantee):
    """Every released combination of quasi-identifiers leaves at least `l` values of a column well represented."""

    l: float  # noqa: E741 -- the name the literature uses
    kind: str = "distinct"
    sensitive: str = ""
    c: float | None = None
    against: Against = "register"

    def __post_init__(self) -> None:
        _check_against("LDiversity", self.against)
        if self.kind not in DIVERSITIES:
            raise bad_parameter("LDiversity", "kind", f"one of {DIVERSITIES}", self.kind)

    @property
    def claim(self) -> str:
        """The promise in a few words."""
        size = f"({self.c:g}, {self.l:g})" if self.c is not None else f"{self.l:g}"
        return f"{self.kind} {size}-diversity of '{self.sensitive}'"

    def reached(self, release: PublishedTable) -> Floats:
        """The l (for "recursive", the c) of each published class."""
        return Tally.of(release.classes(), release.column(self.sensitive), _lines(release)).reached(self.kind, self.l)

    def failing(self, release: PublishedTable) -> Flags:
        """Which published classes fall short of l."""
        reached = self.reached(release)
        if self.kind == "recursive":
            return ~(reached < (np.inf if self.c is None else self.c))
        return reached < self.l * (1 - SLACK)

    def refute(self, release: PublishedRegions, table: Table, again: Again | None = None) -> str | None:
        """Count the published rows; of answers, the different values of the people in each region."""
        if isinstance(release, PublishedTable) or self.kind != "distinct" or self.sensitive not in table.frame.columns:
            return self.recount(release)
        if (strange := _strange(release, table)) is not None:
            return strange
        secret = table.frame[self.sensitive]
        kinds = [secret[inside].nunique(dropna=False) for inside in _people(release, table)]
        if short := sum(n < self.l * (1 - SLACK) for n in kinds):
            return f"{short} of {len(kinds)} regions break {self.claim}; the least holds {min(kinds)} value(s)"
        return None


@dataclass(frozen=True, slots=True)
class TCloseness(Guarantee):
    """In every released combination the values of a column are distributed within `t` of the whole release.

    `tree` holds the hierarchy behind the "hierarchical" ground distance: one line per value, up to the root. `within`:
    it holds in the groups of at least so many people that answers are made from, and of everybody in these. Who is in
    a group is not shown, and people of others may fit what is shown: how their values are distributed is not promised.
    """

    t: float
    ground: str = "equal"
    sensitive: str = ""
    against: Against = "register"
    tree: tuple[tuple[str, ...], ...] | None = None
    within: int | None = None

    def __post_init__(self) -> None:
        _check_against("TCloseness", self.against)
        if self.ground not in GROUNDS:
            raise bad_parameter("TCloseness", "ground", f"one of {GROUNDS}", self.ground)
        if self.tree is not None:
            object.__setattr__(self, "tree", tuple(tuple(row) for row in self.tree))

    @property
    def claim(self) -> str:
        """The promise in a few words."""
        close = f"{self.t:g}-closeness ({self.ground} distance) of '{self.sensitive}'"
        if self.within is None:
            return close
        return f"{close} within the groups of at least {self.within} people that answers are made from"

    def to_dict(self) -> dict[str, Any]:
        """The promise as plain JSON data; of groups only where it is about groups."""
        data = {"promise": "TCloseness", **plain_json(self)}
        return data if self.within is not None else {n: v for n, v in data.items() if n != "within"}

    def reached(self, release: PublishedTable) -> Floats:
        """The distance of each published class from all of them together."""
        tally = Tally.of(release.classes(), release.column(self.sensitive), _lines(release))
        return tally.distances(self.ground, release.schema[self.sensitive], self.tree)

    def failing(self, release: PublishedTable) -> Flags:
        """Which published classes are farther away than t."""
        return self.reached(release) > self.t + SLACK

    def refute(self, release: PublishedRegions, table: Table, again: Again | None = None) -> str | None:
        """Count the published rows; of answers, the people in each region. Groups are not shown, and not counted."""
        counted = isinstance(release, PublishedTable) or self.within is not None
        if counted or self.sensitive not in table.frame.columns:
            return self.recount(release)
        if (strange := _strange(release, table)) is not None:
            return strange
        secret, column = table.frame[self.sensitive], table.schema[self.sensitive]
        inside = (inside for inside in _people(release, table) if inside.any())
        tallies = (Tally.of((~who).astype(np.int64), secret) for who in inside)
        apart = [float(tally.distances(self.ground, column, self.tree)[0]) for tally in tallies]
        if short := sum(d > self.t + SLACK for d in apart):
            return f"{short} of {len(apart)} regions break {self.claim}; the farthest is {max(apart):.3g} away"
        return None


@dataclass(frozen=True, slots=True)
class AllOf(Guarantee):
    """Several promises at once; each keeps its own adversary."""

    parts: tuple[Guarantee, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise bad_parameter("AllOf", "parts", "at least one promise", "none")

    def __str__(self) -> str:
        if self.adversary is None:
            return " ".join(str(part) for part in self.parts)
        return f"{self.claim} against {self.adversary}."

    @property
    def claim(self) -> str:
        """The promises in a few words."""
        words = [part.claim for part in self.parts]
        return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]

    @property
    def adversary(self) -> str | None:
        """Whom all of them withstand, where that is one and the same."""
        named = {part.adversary for part in self.parts}
        return named.pop() if len(named) == 1 else None

    def failing(self, release: PublishedTable) -> Flags:
        """Which published classes break any of the promises."""
        failing: Flags = np.logical_or.reduce([part.failing(release) for part in self.parts])
        return failing

    def recount(self, release: PublishedRegions | PublishedTable) -> str | None:
        """The first promise that the published rows break."""
        return next((b for b in (part.recount(release) for part in self.parts) if b is not None), None)

    def refute(self, release: PublishedRegions, table: Table, again: Again | None = None) -> str | None:
        """The first promise that is refuted."""
        return next((b for b in (part.refute(release, table, again) for part in self.parts) if b is not None), None)

    def to_dict(self) -> dict[str, Any]:
        """The promises as plain JSON data."""
        return {"promise": "AllOf", "parts": [part.to_dict() for part in self.parts]}


_LEDGER_PAGE = "docs/decisions/ledger.md"
_HOPELESS = 100.0  # an epsilon beyond it rules nothing out, and e**epsilon need not fit a float
Adjacency = Literal["replace-one", "add-remove", "both"]
ADJACENCIES: dict[str, str] = {
    "replace-one": "one record is another (the number of records is public)",
    "add-remove": "one record is there or not",
    "both": "one record is there, is not, or is another",
}

Given = Literal["public model", "private model", "no model"]
GIVEN: tuple[Given, ...] = ("public model", "private model", "no model")


@dataclass(frozen=True, slots=True)
class DifferentialPrivacy(Guarantee):
    """Whatever is seen is at most e**epsilon times as likely whether one record is the one it is or not.

    `epsilon` holds for one answer; `answers` of them add up to `total`. `answers=None`: any number of answers, because
    all come from one noisy draw, and only another draw costs again. `budget` is the most that all answers about the
    same people may ever cost, where a ledger sees to it. `delta` may come on top of e**epsilon times a likelihood;
    `rho` is what was promised in zero-concentrated terms, from which epsilon and delta follow. `given`: a public model
    is taken as known, and what it has memorised itself is not covered; a private one was trained under a promise of
    its own, `model_epsilon` and `model_delta`, which is part of the total.
    """

    epsilon: float
    answers: int | None = 1
    adjacency: Adjacency = "both"
    page: str = ""
    budget: Budget | None = None
    delta: float = 0.0
    rho: float | None = None
    given: Given = "public model"
    model_epsilon: float = 0.0
    model_delta: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.budget, Mapping):
            object.__setattr__(self, "budget", Budget.from_dict(self.budget))
        if not 0 < self.epsilon <= sys.float_info.max:
            raise bad_parameter("DifferentialPrivacy", "epsilon", "a number above 0", self.epsilon)
        if self.adjacency not in ADJACENCIES:
            raise bad_parameter("DifferentialPrivacy", "adjacency", f"one of {list(ADJACENCIES)}", self.adjacency)
        if not 0 <= self.delta < 1:
            raise bad_parameter("DifferentialPrivacy", "delta", "at least 0 and below 1", self.delta)
        if self.rho is not None and not 0 < self.rho <= sys.float_info.max:
            raise bad_parameter("DifferentialPrivacy", "rho", "None or a number above 0", self.rho)
        if self.given not in GIVEN:
            raise bad_parameter("DifferentialPrivacy", "given", f"one of {list(GIVEN)}", self.given)
        private = self.given == "private model"
        if not (0 < self.model_epsilon <= sys.float_info.max if private else self.model_epsilon == 0):
            must = "above 0 with given='private model', and 0 otherwise"
            raise bad_parameter("DifferentialPrivacy", "model_epsilon", must, self.model_epsilon)
        if not (0 <= self.model_delta < 1 if private else self.model_delta == 0):
            must = "at least 0 and below 1 with given='private model', and 0 otherwise"
            raise bad_parameter("DifferentialPrivacy", "model_delta", must, self.model_delta)

    def __str__(self) -> str:
        page = f" Proof: {self.page}." if self.page else ""
        return f"{self.claim} against {self.adversary}.{page} {self._others}"

    def membership_bound(self, false_alarms: float = 0.01) -> float:
        """The largest share of members that anybody can tell from others at this share of false alarms.

        Examples
        --------
        >>> round(DifferentialPrivacy(1.0, None).membership_bound(), 4)
        0.0272
        """
        if self.total > _HOPELESS:
            return 1.0
        up = math.exp(self.total) * false_alarms + self._failing
        down = 1 - math.exp(-self.total) * (1 - self._failing - false_alarms)
        return min(up, down, 1.0)

    @property
    def odds_bound(self) -> tuple[float, float]:
        """How many times anybody's odds about one record change at most, and the chance with which they may more.

        A delta is no chance of exceeding e**epsilon, which can be larger. Since E[max(0, 1 - e**(epsilon - loss))] is
        at most delta, a loss above epsilon + ln 2 has a chance of 2 delta at most, one below its negative of delta.
        """
        most = math.exp(min(self.total, 700.0))
        return (2 * most, 3 * self._failing) if self._failing else (most, 0.0)

    @property
    def meaning(self) -> str:
        """What it means for one person, in words; of a public model that was trained on people it says nothing."""
        caught = math.ceil(1000 * self.membership_bound()) / 10
        if caught >= 100:
            return "For one person it rules nothing out: the numbers are too large."
        odds, chance = math.ceil(100 * self.odds_bound[0]) / 100, self.odds_bound[1]
        but = f" (but for a chance of {chance:g})" if chance else ""
        aside = ", what the model itself tells left aside" if self.given == "public model" else ""
        return (
            f"For one person with one record{aside}: whoever accuses 1 of 100 others wrongly of being in the table "
            f"finds at most {caught:g} of 100 who are, and his odds about her change at most {odds:g} times{but}."
        )

    @property
    def _failing(self) -> float:
        return self.delta * (1 if self.answers is None else self.answers) + self.model_delta

    @property
    def _others(self) -> str:
        """What is promised about all the other answers."""
        if self.budget is None:
            return "No ledger counts other answers about the same people: they add to this."
        apart = " The model is within that only if the same ledger counted its training."
        return (
            f"A ledger keeps all answers about '{self.budget.dataset}' ever given within {self.budget.claim} "
            f"({ADJACENCIES[self.budget.adjacency]}).{apart if self.given == 'private model' else ''} "
            f"Proof: {_LEDGER_PAGE}."
        )

    @property
    def proof(self) -> str | None:  # type: ignore[override]
        """The page that proves the promise."""
        return self.page or None

    @property
    def total(self) -> float:
        """What all these answers cost together, a private model included."""
        return self.epsilon * (1 if self.answers is None else self.answers) + self.model_epsilon

    @property
    def claim(self) -> str:
        """The promise in a few words."""
        each = _spent(self.epsilon, self.delta)
        spent = f"{each} for any number of answers from one draw"
        if self.answers is not None:
            many = f", {self.answers:,} answers, {self.total - self.model_epsilon:g} in total"
            spent = f"{each} for each answer{many if self.answers != 1 else ''}"
        if self.given == "private model":
            own = _spent(self.model_epsilon, self.model_delta)
            spent += f"; {own} for the model; {_spent(self.total, self._failing)} in all"
        given = "" if self.given == "no model" else f", given a {self.given},"
        return f"Differential privacy ({spent}; {ADJACENCIES[self.adjacency]}){given}"

    @property
    def adversary(self) -> str:
        """Whom the promise withstands, in words."""
        return "someone who knows every other record, the model, our code and its settings, and sees all of it"

    def with_model(self, model: DifferentialPrivacy) -> DifferentialPrivacy:
        """The promise together with that of the model: both add up, where they are about the same change of a table.

        What is promised under adding a record alone says nothing about replacing one: there the model stays public.
        """
        pair = {self.adjacency, model.adjacency} - {"both"}
        if len(pair) > 1 or self.given == "no model":
            return self
        narrow: Adjacency = next(iter(pair), "both")
        added = replace(self, adjacency=narrow, given="private model", model_epsilon=model.total)
        return replace(added, model_delta=model._failing)

    def over(self, answers: int) -> Guarantee:
        """The promise for this many answers together: each costs, unless all come from one draw."""
        return self if self.answers is None else replace(self, answers=answers)

    def refute(self, release: PublishedRegions, table: Table, again: Again | None = None) -> str | None:
        """Run it again on the table and on a neighbour, and compare how often the first answer comes."""
        if again is None:
            return None
        found = rerun_evidence(release, table, again, self.epsilon, delta=self.delta)
        return None if found is None else f"reruns on a neighbouring table prove more than was promised: {found}"


# What a field of a stored promise holds, by its name.
_STORED: dict[str, Callable[[Any], bool]] = {
    "k": lambda v: is_count(v, 1),
    **dict.fromkeys(("answers", "within"), lambda v: v is None or is_count(v)),
    **dict.fromkeys(("l", "t", "epsilon", "delta", "model_epsilon", "model_delta"), is_number),
    **dict.fromkeys(("c", "rho"), lambda v: v is None or is_number(v)),
    **dict.fromkeys(("why", "against", "of", "kind", "sensitive", "ground", "adjacency", "page", "given"), is_text),
    "tree": lambda v: v is None or (isinstance(v, list) and all(isinstance(row, list) for row in v)),
    "budget": lambda v: v is None or isinstance(v, Mapping),
    "parts": lambda v: isinstance(v, list),
    "centres": lambda v: isinstance(v, bool),
}


def guarantee_from_dict(data: Mapping[str, Any]) -> Guarantee:
    """The inverse of :meth:`Guarantee.to_dict`."""
    kinds = {c.__name__: c for c in Guarantee.__subclasses__()}
    with whole_json("data", "guarantee_from_dict", "Guarantee.to_dict()"):
        name = data.get("promise")
        if not isinstance(name, str) or name not in kinds:
            raise bad_parameter("guarantee_from_dict", "promise", f"one of {sorted(kinds)}", name)
        given = {k: v for k, v in data.items() if k != "promise"}
        need(all(_STORED.get(k, is_scalar)(v) for k, v in given.items()))
        if name == "AllOf":
            return AllOf(tuple(guarantee_from_dict(part) for part in given.pop("parts")))
        if given.get("tree") is not None:
            given["tree"] = [texts(row) for row in given["tree"]]
        return kinds[name](**given)


def _spent(epsilon: float, delta: float) -> str:
    return f"epsilon = {epsilon:g}" + (f", delta = {delta:g}" if delta else "")


def _check_against(owner: str, against: str) -> None:
    if against not in ADVERSARIES:
        raise bad_parameter(owner, "against", f"one of {list(ADVERSARIES)}", against)
