"""A model is not asked twice about points; waves and constraints that share model calls change no answer."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.protect.cfk.moves import recall, search
from countervail.protect.cfk.moves.recall import KnownPoints

pytestmark = pytest.mark.usefixtures("quick_groups")


def test_known_points_are_those_of_a_plain_dictionary(seeds, monkeypatch):
    monkeypatch.setattr(recall, "_FIRST", 4)
    for seed in seeds(40, 1_000):
        rng = np.random.default_rng(seed)
        points, plain = KnownPoints(3), {}
        for _ in range(6):
            rows = rng.choice([0.0, -0.0, 1.0, 2.5, np.nan, 1e300], (int(rng.integers(0, 12)), 3))
            contents = [row.tobytes() for row in rows]
            new, asked = list(dict.fromkeys(c for c in contents if c not in plain)), []
            told = dict(zip(new, rng.random(len(new))))
            before = new[: int(rng.integers(0, len(new) + 1))]  # told by others, and not asked about
            points.tell(rows[[contents.index(c) for c in before]], np.reshape([told[c] for c in before], (-1, 1)))

            def ask(fresh, asked=asked, told=told):
                asked += [row.tobytes() for row in fresh]
                return np.reshape([told[row.tobytes()] for row in fresh], (-1, 1))

            known = points.recall(rows, ask)
            assert asked == new[len(before) :]
            plain |= told
            assert np.array_equal(known, np.reshape([plain[c] for c in contents], (-1, 1)))
        assert len(points) == len(plain)


class Asked:
    """A model that keeps count of its calls and of the points that it was asked about."""

    def __init__(self):
        self.calls, self.points, self.classes_ = 0, [], np.array(["no", "yes"])

    def predict(self, frame):
        """The likelier label."""
        return self.classes_[self.predict_proba(frame).argmax(axis=1)]

    def predict_proba(self, frame):
        self.calls += 1
        self.points += list(map(tuple, frame[["pay", "debt", "age"]].to_numpy(float)))
        lean = 3 * frame["pay"].to_numpy(float) - 4 * frame["debt"].to_numpy(float) + frame["age"].to_numpy(float) / 3
        score = 1 / (1 + np.exp(26 - lean))
        return np.column_stack([1 - score, score])


def people(seed, n):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(20, 30, n), "pay": rng.integers(0, 8, n), "debt": rng.random(n).round(2)})
    frame["city"], frame["ok"] = rng.choice(list("abc"), n), rng.choice(["no", "yes"], n)
    return cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age", "city"])


LIMITS = {"monotone": {"pay": "up", "age": "up"}, "ranges": {"debt": (0.0, 1.0), "pay": (0, 6)}, "immutable": ["city"]}


def answers(table, queries, **given):
    model = Asked()
    made = cv.CFK(k=3, **given).fit(table, model)
    before = model.calls
    e = made.explain(queries)
    return (e.to_json(), e.to_text(), e.notes), model.calls - before


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"n_counterfactuals": 2},
        {"max_changes": 1},
        {"reward": "plausibility"},
        {"search": "exact", "max_changes": 1},
    ],
    ids=str,
)
def test_one_by_one_gives_the_same_answers_and_advice_with_more_calls(given, seeds, monkeypatch):
    fewer = more = unanswered = 0
    for seed in seeds(6, 300):
        table, queries = people(seed, 60), people(seed + 500, 12).features
        monkeypatch.setattr("countervail.protect.cfk.moves.askers.Askers.__init__.__defaults__", (4,))
        together, calls = answers(table, queries, **LIMITS, **given)
        with monkeypatch.context() as apart:
            apart.setattr("countervail.protect.cfk.moves.relax.advised.__defaults__", (1,))
            apart.setattr(search.MoveSearch, "_search", one_wave_at_a_time)
            alone, many = answers(table, queries, **LIMITS, **given)
        assert together == alone
        fewer, more = fewer + calls, more + many
        unanswered += "rests on" in together[1]
    assert fewer < more and unanswered


def one_wave_at_a_time(self, source, found, earlier, among, waves):
    for wave in range(waves):
        open_ = np.flatnonzero(among & (found.behind < 0))
        self.model.again |= wave > 0
        if len(open_):
            at, which, moves = source.near(open_, range(wave, wave + 1))
            if moves is not None and len(at):
                mine = search.Earlier(earlier.names[:, at], earlier.features)
                found.put(at, self._best(moves, mine), which)
