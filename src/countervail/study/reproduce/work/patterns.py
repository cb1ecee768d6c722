"""Rules and pattern tables on the data sets of Inuiguchi et al.: accuracy, and what two attacks reveal."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from countervail.attack import Deep, Shallow
from countervail.core.errors import CountervailError
from countervail.core.release import Release
from countervail.core.rng import generator
from countervail.core.stats import Estimate, clopper_pearson, mean_interval
from countervail.core.table import Table
from countervail.data.load import load
from countervail.protect import KCommonPatterns
from countervail.protect.published import EqualHalvesMondrian
from countervail.rules import LERS, MLEM2
from countervail.study.reproduce.together import figure

PATTERNS: dict[str, dict[str, Any]] = {
    "cT1": {"objects": "max", "spread": False},
    "cT2": {"objects": "max", "spread": True},
    "cT3": {"objects": "min", "spread": False},
    "cT4": {"objects": "min", "spread": True},
}
SEMANTICS = ("paper", "overlap", "strict")
_OBJECTS = {"max": "Maximize", "min": "Minimize"}


@lru_cache(maxsize=4)
def pattern_source(name: str) -> Table:
    """A data set with the types of the paper; all features are anonymised."""
    t = load(name)
    if name == "zoo":
        t = t.with_types(legs="categorical")
    return t.with_roles(quasi=t.schema.features)


def anonymised(name: str, k: int, train: Table) -> Release | None:
    """cT1 to cT4; Mondrian on all rows (M1), or per class, without classes below k (M2). None: nothing can leave."""
    try:
        if name in PATTERNS:
            return KCommonPatterns(k, **PATTERNS[name], random_state=0).fit(train).protect(train)
        if name == "M2":
            sizes = train.target.map(train.target.astype(object).value_counts())
            train = train.take((sizes.astype(int) >= k).to_numpy())
        return EqualHalvesMondrian(k, by_class=name == "M2", random_state=0).fit(train).protect(train)
    except CountervailError:
        return None


def described(seed: int, set: str) -> dict[str, Any]:
    """Rows, attributes and classes; and which method takes which steps (Table 3)."""
    table = pattern_source(set)
    out: dict[str, Any] = {
        "rows": len(table),
        "attributes": len(table.schema.features),
        "classes": int(table.target.nunique()),
    }
    for name, given in PATTERNS.items():
        out[f"{_OBJECTS[given['objects']]}|{'With' if given['spread'] else 'Without'} (s6)"] = name
    return {"figures": {n: figure(v) for n, v in out.items()}}


def accuracy(seed: int, set: str, k: int, method: str, repetition: int, folds: int) -> dict[str, Any]:
    """How often rules learnt from a table are right about rows that are not in it; by what makes a rule valid."""
    t = pattern_source(set)
    y = np.array(t.target.astype(object))
    fold = np.empty(len(t), dtype=int)
    fold[generator(seed + repetition).permutation(len(t))] = np.arange(len(t)) % 10
    right = dict.fromkeys(SEMANTICS, 0)
    seen = 0
    for i in range(folds):
        train, test = t.take(fold != i), t.take(fold == i)
        seen += len(test)
        if method in ("Ori", "k-Ori"):
            learner: Any = MLEM2() if method == "Ori" else LERS(k=k)
            hits = int((learner.fit(train).predict(test.features) == y[fold == i]).sum())
            right = {s: n + hits for s, n in right.items()}
            continue
        release = anonymised(method, k, train)
        for s in SEMANTICS if release is not None else ():
            found = LERS(semantics=s).fit(release).predict(test.features)  # type: ignore[arg-type]
            right[s] += int((found == y[fold == i]).sum())
    return {"figures": {s: figure(clopper_pearson(n, seen)) for s, n in right.items()}}


def shallow(seed: int, set: str, k: int, method: str, parts: int) -> dict[str, Any]:
    """The shallow attack with two known attributes: on the whole table, or on the training parts of ten folds."""
    t = pattern_source(set)
    tables = [t]
    if parts:
        fold = np.empty(len(t), dtype=int)
        tables = []
        for r in range(-(-parts // 10)):
            fold[generator(seed + r).permutation(len(t))] = np.arange(len(t)) % 10
            tables += [t.take(fold != i) for i in range(10)]
        tables = tables[:parts]
    out: dict[str, Any] = {}
    for attacked in ("conditions", "decision"):
        rates: dict[str, list[Estimate]] = {"value combinations": [], "per person": []}
        for table in tables:
            release = anonymised(method, k, table)
            result = None if release is None else Shallow(attacked).run(release, table, table)
            nothing = Estimate(0.0, 0.0, 0.0, 1)
            rates["value combinations"].append(nothing if result is None else result.detail["value combinations"])
            rates["per person"].append(nothing if result is None else result.members)
        for way, found in rates.items():
            out[f"{attacked}, {way}"] = mean_interval([e.value for e in found]) if len(found) > 1 else found[0]
    return {"figures": {n: figure(v) for n, v in out.items()}}


def deep(seed: int, set: str, k: int, method: str, samples: int) -> dict[str, Any]:
    """Shallow and deep attacks on tables of 15 rows: means over samples, whose spread gives the interval."""
    t = pattern_source(set)
    out: dict[str, Any] = {}
    for attacked in ("conditions", "decision"):
        rates: dict[str, list[float]] = {"shallow": [], "deep": [], "shallow or deep": []}
        for s in range(samples):
            part = t.take(np.sort(generator(seed + s).permutation(len(t))[:15]))
            release = anonymised(method, k, part)
            found = (0.0, 0.0, 0.0)
            if release is not None:
                try:
                    detail = Deep(attacked).run(release, part, part).detail
                except CountervailError:
                    detail = None
                if detail is not None:
                    one, both = (detail[n].value for n in ("value combinations, shallow", "value combinations"))
                    found = (one, max(both - one, 0.0), both)
            for name, value in zip(rates, found):
                rates[name].append(value)
        out |= {f"{attacked}, {name}": mean_interval(v) for name, v in rates.items()}
    return {"figures": {n: figure(v) for n, v in out.items()}}
