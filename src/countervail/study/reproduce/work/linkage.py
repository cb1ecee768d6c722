"""k-anonymous explanations on the data sets of Goethals et al.: one setting for every table that speaks of them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from countervail import measure
from countervail.core.arrays import Floats
from countervail.core.explanation import Explanations
from countervail.core.guarantee import NoGuarantee
from countervail.core.schema import Schema
from countervail.core.stats import clopper_pearson, mean_interval
from countervail.core.table import Table
from countervail.data.load import load
from countervail.explain import NICE
from countervail.model.train import train_forest, training_labels
from countervail.protect import CFK, GraspSearch, GroupSearch, Mondrian
from countervail.protect.published import GraspCFK
from countervail.study.reproduce.together import figure

_CURVE = tuple(range(0, 101, 10))  # percent of the people, sorted by a figure
_HOSPITAL = (
    *("Hospital County", "Operating Certificate Number", "Facility Id", "Facility Name", "Discharge Year"),
    *("CCS Diagnosis Code", "CCS Procedure Code", "APR DRG Code", "APR MDC Code", "APR Severity of Illness Code"),
    *("Total Charges", "Total Costs", "Payment Typology 2", "Payment Typology 3"),
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Quasi-identifiers (numeric ones marked), columns left out, the forest, and whom the paper compares."""

    quasi: tuple[str, ...]
    numeric: tuple[str, ...]
    trees: int
    leaves: int | None = None
    dropped: tuple[str, ...] = ()
    group: str = "sex"
    rows: int | None = None


RECIPES = {
    "heart_c": Recipe(("age", "sex"), ("age",), 500),
    "cmc": Recipe(("WifeAge", "ChildrenBorn"), ("WifeAge", "ChildrenBorn"), 100, 100, group="WifeReligion"),
    "german_credit": Recipe(
        (
            "age",
            "personal_status",
            "foreign_worker",
            "residence_since",
            "employment",
            "property_magnitude",
            "housing",
            "job",
        ),
        ("age", "residence_since"),
        500,
        group="personal_status",
    ),
    "informs_5000": Recipe(
        ("DOBMM", "DOBYY", "SEX", "RACEX", "EDUCYEAR", "marry"),
        ("DOBMM", "DOBYY", "EDUCYEAR"),
        100,
        100,
        ("income", "Year"),
        "RACEX",
    ),
    "hospital": Recipe(
        ("Age Group", "Race", "Gender", "Ethnicity", "Zip Code - 3 digits"), (), 100, 100, _HOSPITAL, "Gender", 8160
    ),
    "adult": Recipe(
        ("age", "sex", "race", "relationship", "marital-status"), ("age",), 100, 100, ("fnlwgt", "education-num")
    ),
}


@dataclass(frozen=True, slots=True)
class Refused:
    """A training table, the model, and people whom it refuses."""

    train: Table
    test: Table
    model: Any
    people: Table


def linkage_table(name: str) -> Table:
    """The table with the types and roles of the figures: every column numeric or categorical, two decisions."""
    recipe, loaded = RECIPES[name], load(name)
    frame, schema = loaded.frame.drop(columns=list(recipe.dropped)), loaded.schema
    if recipe.rows is not None:
        # As many whole rows as the paper has.
        frame = frame.dropna().sample(recipe.rows, random_state=0).sort_index().reset_index(drop=True)
    schema = Schema(tuple(c for c in schema if c.name not in recipe.dropped), schema.favourable)
    for column in schema:
        if column.name in recipe.numeric and column.type != "numeric":
            schema = schema.with_column(column.name, type="numeric")
            frame[column.name] = frame[column.name].astype(str).astype(int)
        elif column.type == "ordinal":
            schema = schema.with_column(column.name, type="categorical")
    decided, wanted = frame[schema.target].astype(str), str(schema.favourable[0])
    if decided.nunique() > 2:
        frame[schema.target] = decided.where(decided == wanted, "other").astype("category")
    return Table.from_frame(frame, schema=schema.with_roles(quasi=recipe.quasi))


@lru_cache(maxsize=2)
def refused(name: str, seed: int) -> Refused:
    """60% for training, and of the first 1,000 test rows those that the forest refuses."""
    recipe = RECIPES[name]
    train, test = linkage_table(name).split(test_size=0.4, random_state=seed)
    model = train_forest(train, trees=recipe.trees, leaves=recipe.leaves)
    first = test.take(range(min(1000, len(test))))
    told = model.predict(first.features) != train.schema.favourable[0]
    return Refused(train, test, model, first.take(told.nonzero()[0]))


def risk(seed: int, set: str) -> dict[str, Any]:
    """Rows, attributes, and who stands alone by the quasi-identifiers."""
    table = linkage_table(set)
    found = measure.risk(table, depth=1, person=None) if not table.schema.names("identifier") else None
    sizes = measure.class_sizes(table)
    unique, few = (sizes == 1).mean(), (sizes < 10).mean()
    if found is not None:
        unique, few = found.unique, found.below_k
    features = len(table.schema.features)
    out = {"rows": len(table), "attributes": features, "unique %": 100 * unique, "in classes below 10 %": 100 * few}
    return {"figures": {n: figure(v) for n, v in out.items()}}


def explained(
    seed: int,
    set: str,
    k: int,
    method: str,
    people: int,
    alpha: int = 20,
    iterations: int = 3,
) -> dict[str, Any]:
    """Explanations of one method at one k: what they lose, how far they hold, how long they take, for whom."""
    s = refused(set, seed)
    asking = s.people.take(range(min(people, len(s.people))))
    made = _protector(k, method, alpha, iterations).fit(s.train, s.model)
    made.explain(asking.take(range(1)))  # what is compiled at its first use is no part of the time
    start = time.process_time()
    e = made.explain(asking)
    spent = (time.process_time() - start) / len(asking)
    return {"figures": _figures(e, s, spent) | _by_group(e, s, set)}


def _protector(k: int, method: str, alpha: int, iterations: int) -> Any:
    if method == "published":
        return GraspCFK(k=k, alpha=alpha, iterations=iterations)
    if method == "grasp":
        return CFK(k=k, search=GraspSearch(alpha=alpha, iterations=iterations), reward="none")
    if method == "exact":
        return CFK(k=k, search="exact", reward="none", min_pureness=0.0)
    search = GroupSearch(grouping="mondrian" if method == "mondrian" else "clusters")
    return CFK(k=k, reward="none", search=search)


def _figures(e: Explanations, s: Refused, seconds: float) -> dict[str, Any]:
    """The six figures of the tables, and the sorted curves of the preprint."""
    lost, pure = 100 * measure.ncp(e), 100 * measure.pureness(e, s.model)
    size = measure.degree_of_privacy(e)
    found = int(e.found.sum())
    n = len(e)
    out = {
        "NCP %": _within(mean_interval(lost)),
        "pureness %": _within(mean_interval(pure)),
        "seconds": seconds,
        "C_DM": float(np.nansum(size)),
        "C_DM per explanation": mean_interval(size),
        "fewest people": float(np.nanmin(size)) if found else float("nan"),
        "answered %": _percent(clopper_pearson(found, n)),
    }
    if found:
        penalties = round(measure.classification_metric(e, s.model) * found)
        out["CM"] = clopper_pearson(penalties, found)
    return {m: figure(v) for m, v in out.items()} | _curve("NCP", lost) | _curve("pureness", pure)


def _within(e: Any) -> Any:
    """A share's interval ends where shares end."""
    return replace(e, low=max(e.low, 0.0), high=min(e.high, 100.0))


def _percent(e: Any) -> Any:
    return replace(e, value=100 * e.value, low=100 * e.low, high=100 * e.high)


def _curve(name: str, values: Floats) -> dict[str, Any]:
    known = values[np.isfinite(values)]
    marks = np.percentile(known, _CURVE) if len(known) else np.full(len(_CURVE), np.nan)
    return {f"{name} at {p}%": figure(float(v)) for p, v in zip(_CURVE, marks)}


def _by_group(e: Explanations, s: Refused, name: str) -> dict[str, Any]:
    """NCP of the majority and of the minority among those who ask."""
    found = measure.fairness(e, RECIPES[name].group, table=s.train)
    out = {f"NCP %, {g.standing}": _percent(g.ncp) for g in found.groups if g.standing != "other"}
    gap = found.ncp_gap
    out["minority less majority"] = _percent(gap)
    word = "no one of it asks" if math.isnan(gap.value) else "higher" if gap.value > 0 else "lower"
    return {m: figure(v) for m, v in out.items()} | {"minority": figure(word)}


def mondrian(seed: int, set: str, k: int, people: int) -> dict[str, Any]:
    """The nearest row with the wanted decision, shown by its class in a table that Mondrian made k-anonymous."""
    s = refused(set, seed)
    asking = s.people.take(range(min(people, len(s.people))))
    start = time.process_time()
    table = Mondrian(k).fit(s.train)
    spent = time.process_time() - start
    base = CFK(k=k, search="exact", reward="none", min_pureness=0.0).fit(s.train, s.model)
    e = base.explain(asking)
    search: Any = base.search_
    owners = search.explainer_.nearest(asking.features, 1)[:, 0]
    regions = table.regions_[table.cell_of_[owners]]
    cells = {axis.name: [axis.cell(i) for i in range(len(regions))] for axis in regions.axes}
    shown = e.counterfactuals.assign(**{n: pd.Series(c, dtype=object) for n, c in cells.items()})
    why = "the row was found by its exact values before it was generalised"
    e = replace(e, counterfactuals=shown, guarantee=NoGuarantee(why), pureness=None)
    return {"figures": _figures(e, s, spent) | _by_group(e, s, set)}


def plausible(seed: int, set: str, people: int, reward: str = "none", k: int = 0, method: str = "") -> dict[str, Any]:
    """How far answers lie from the nearest and the five nearest training rows."""
    s = refused(set, seed)
    asking = s.people.take(range(min(people, len(s.people))))
    made: Any = NICE(reward=reward) if not k else _protector(k, method, 20, 3)  # type: ignore[arg-type]
    e = made.fit(s.train, s.model).explain(asking)
    out = {f"{n}NN": mean_interval(measure.plausibility(e, neighbours=n, table=s.train)) for n in (1, 5)}
    return {"figures": {m: figure(v) for m, v in out.items()}}


def forest_grid(seed: int, set: str, trees: Sequence[int], leaves: Sequence[int | None]) -> dict[str, Any]:
    """Which forest five-fold cross-validation on the training rows chooses, and how often it is right."""
    from sklearn.model_selection import StratifiedKFold

    s = refused(set, seed)
    labels = np.array(training_labels(s.train, "forest_grid"), dtype=object)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    scores: dict[tuple[int, int | None], list[float]] = {}
    for train, test in folds.split(labels, labels):
        part, rest = s.train.take(train), s.train.take(test)
        for few in leaves:
            for number in trees:
                model = train_forest(part, trees=number, leaves=few)
                right = float((model.predict(rest.features) == labels[test]).mean())
                scores.setdefault((number, few), []).append(right)
    best = max(scores, key=lambda c: float(np.mean(scores[c])))
    recipe = (RECIPES[set].trees, RECIPES[set].leaves)
    model = train_forest(s.train, trees=best[0], leaves=best[1])
    test_labels = np.array(training_labels(s.test, "forest_grid"), dtype=object)
    right = int((model.predict(s.test.features) == test_labels).sum())
    out = {
        "trees": best[0],
        "leaves": "no limit" if best[1] is None else str(best[1]),
        "right in cross-validation %": mean_interval(100 * np.array(scores[best])),
        "right on the test set %": _percent(clopper_pearson(right, len(test_labels))),
    }
    if recipe in scores:
        out["our choice in cross-validation %"] = mean_interval(100 * np.array(scores[recipe]))
    return {"figures": {m: figure(v) for m, v in out.items()}}
