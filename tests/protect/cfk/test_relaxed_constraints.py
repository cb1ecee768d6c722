"""Who gets no answer is told the fewest constraints to give up; nobody waits for the model to say the same twice."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.encode import Encoder
from countervail.model.decision import Decision
from countervail.protect.cfk.moves.sets import AskedModel

pytestmark = pytest.mark.usefixtures("quick_groups")

LIMITS = {
    "immutable": ["city"],
    "monotone": {"pay": "down", "age": "up"},
    "ranges": {"debt": (0, 2)},
    "max_changes": 1,
}


def people(seed, n=30):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 30, n),
            "city": rng.choice(["a", "b"], n),
            "pay": rng.integers(0, 6, n),
            "debt": rng.integers(0, 5, n),
        }
    )
    frame["ok"] = np.where(np.arange(n) % 2, "yes", "no")
    return cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age", "city"])


def decide(seed):
    weight = np.random.default_rng(seed).normal(size=4)

    def model(frame):
        score = weight @ [frame["age"] - 25, (frame["city"] == "a") * 4 - 2, frame["pay"] - 3, frame["debt"] - 2]
        return np.where(score > 3, "yes", "no")

    return model


def without(chosen):
    """The limits but for some of them, as anybody would write it."""
    left = {k: v.copy() if isinstance(v, (dict, list)) else v for k, v in LIMITS.items()}
    for kind, name in chosen:
        if kind == "max_changes":
            left.pop("max_changes")
        elif kind == "immutable":
            left["immutable"].remove(name)
        else:
            left[kind].pop(name)
    return left


PARTS = [
    ("immutable", "city"),
    ("ranges", "debt"),
    ("monotone", "age"),
    ("monotone", "pay"),
    ("max_changes", None),
]


def test_no_fewer_constraints_would_do(seeds):
    told = 0
    for seed in seeds(4, 100):
        table, model, asked = people(seed), decide(seed), people(seed + 500, 12).features
        e = cv.CFK(k=3, **LIMITS).fit(table, model).explain(asked)
        served = {
            chosen: cv.CFK(k=3, **without(chosen)).fit(table, model).explain(asked).found
            for size in (1, 2)
            for chosen in combinations(PARTS, size)
        }
        for i in np.flatnonzero(e.status == "no_counterfactual"):
            least = min((len(c) for c, found in served.items() if found[i]), default=3)
            note = e.notes[i] if e.notes else "Without candidates nothing helps."
            names = sum(note.count(w) for w in ("'city'", "'debt'", "'age'", "'pay'", "the limit on"))
            told += least < 3
            assert names == least if least < 3 else "without" in note.lower()
    assert told


def test_a_row_is_told_the_same_alone_and_among_others():
    table, model, asked = people(2), decide(2), people(502, 12).features
    protector = cv.CFK(k=3, **LIMITS).fit(table, model)
    together = protector.explain(asked)
    assert (together.status == "no_counterfactual").any()
    for i in range(len(asked)):
        alone = protector.explain(asked.iloc[[i]])
        assert (alone.notes or [""])[0] == together.notes[i]


def test_the_model_is_not_asked_twice_about_a_point():
    table, seen = people(1), []

    def model(frame):
        seen.append(len(frame))
        return decide(1)(frame)

    encoder = Encoder.fit(table)
    decision = Decision(model, table, "test")
    asked = AskedModel(decision, np.array([c == "yes" for c in decision.classes]), encoder)
    rows = encoder.encode(table.features)
    first = asked.accepts_points(rows[:20])
    asked.again = True
    seen.clear()
    both = asked.accepts_points(rows)
    assert (both[:20] == first).all() and (both == asked.accepts(rows)).all()
    assert seen[0] <= 10
