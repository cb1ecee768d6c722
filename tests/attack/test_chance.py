"""Attacks that told chance from leaks too little: made-up rows fit one person by chance, and a nought can be found."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.attack.base import answers_of
from countervail.attack.shared.planted import NoisyOracle, VerbatimOracle, explained, those_alone
from countervail.core.errors import RefusedError
from countervail.testing import small_model, small_table

TABLE, CONTROL = small_table(800).split(test_size=0.5, random_state=0)


class MadeUp:
    """Answers each with a row whose values are drawn column by column, the same whenever it is asked."""

    def __init__(self, table):
        self.table = table

    def explain(self, rows):
        rows = pd.DataFrame(rows).reset_index(drop=True)
        at = pd.util.hash_pandas_object(rows[["age", "city", "level"]].astype(str), index=False).to_numpy()
        held = self.table.features
        drawn = {n: held[n].iloc[(at // 7**j % len(held)).astype(int)].array for j, n in enumerate(held)}
        return explained(rows, pd.DataFrame(drawn), self.table)


def test_rows_that_are_made_up_single_nobody_out_beyond_chance():
    attack = cv.attack.Intersection(n_targets=150)
    found = attack.run(MadeUp(CONTROL), TABLE, CONTROL)
    assert found.members.value > 0.1 and found.controls.n >= 50
    assert found.excess.low < 0.09
    assert (
        attack.run(VerbatimOracle(those_alone("x", TABLE, ["age", "city", "level"])), TABLE, CONTROL).excess.low > 0.4
    )


def test_nobody_who_asks_is_a_stranger_to_compare_with():
    few = CONTROL.take(range(90))
    attack = cv.attack.Intersection(n_targets=150)
    asked = []

    class Listening(MadeUp):
        def explain(self, rows):
            asked.append(len(rows))
            return super().explain(rows)

    found = attack.run(Listening(TABLE), TABLE, few)
    assert set(asked) == {60} and found.controls.n > 0
    assert cv.attack.Intersection(n_targets=None).run(MadeUp(TABLE), TABLE, few).controls.n == 0


@pytest.mark.parametrize("attack", [cv.attack.Intersection(), cv.attack.Reidentification()])
def test_a_leak_is_planted_among_those_who_are_alone(attack):
    dense = small_table(1600).split(test_size=0.5, random_state=0)
    found = attack.run(attack.planted(*dense), *dense)
    assert found.members.value > 0.9 and found.excess.low > 0.3
    alike = TABLE.frame.assign(age=50, city="a")
    same = replace(TABLE, frame=alike)
    with pytest.raises(RefusedError, match="can show nothing here"):
        attack.planted(same, CONTROL)


def test_noise_on_noughts_is_averaged_away():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{j}": rng.integers(0, 40, 400) * (rng.random(400) < 0.4) for j in range(8)})
    frame["ok"] = rng.choice(["no", "yes"], 400)
    members, others = cv.Table.from_frame(frame, target="ok", favourable="yes").split(test_size=0.5, random_state=0)
    found = cv.attack.Averaging(n_targets=40).run(NoisyOracle(members), members, others)
    assert found.members.value > 0.5 and found.excess.low > 0.3
    assert found.controls.value < 0.1


class Passing:
    """Somebody else's class around an explainer of ours: nothing is known of it, so everything is asked."""

    def __init__(self, oracle):
        self.oracle = oracle

    def explain(self, rows):
        return self.oracle.explain(rows)


@pytest.mark.parametrize("explainer", [cv.NICE(target="favourable"), cv.CFK(k=10, search="exact", reward="none")])
@pytest.mark.parametrize(
    "attack", [cv.attack.Averaging(30, n_targets=10), cv.attack.Intersection(n_targets=50)], ids=["averaging", "cut"]
)
def test_the_same_question_is_asked_once_where_that_makes_no_difference(explainer, attack, monkeypatch):
    fitted = explainer.fit(TABLE, small_model)
    asked = []

    def listening(oracle, rows, **more):
        asked.append(len(rows))
        return answers_of(oracle, rows, **more)

    monkeypatch.setattr(f"{type(attack).__module__}.answers_of", listening)
    found, few = attack.run(fitted, TABLE, CONTROL), sum(asked)
    assert found.to_dict() == attack.run(Passing(fitted), TABLE, CONTROL).to_dict()
    assert 2 * few < sum(asked) - few


def test_noise_is_asked_about_as_often_as_it_is_drawn():
    oracle = NoisyOracle(TABLE)
    found = cv.attack.Averaging(30, n_targets=10).run(oracle, TABLE, CONTROL)
    assert found.detail["after 1 answers"].value < found.detail["after 30 answers"].value
