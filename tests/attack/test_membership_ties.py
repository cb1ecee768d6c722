"""Where many strangers have the highest score, a threshold alone would take nobody for a member."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.attack.shared.roc import tell_members


def test_as_many_as_the_rate_allows_are_taken_by_lot():
    strangers = np.array([0.0] * 150 + list(-np.arange(1.0, 851.0)))
    told = tell_members(np.zeros(1000), strangers, 0.1, 0)
    assert told.members.value == pytest.approx(0.1 / 0.15, abs=0.08)
    assert told.controls.value == pytest.approx(0.1, abs=0.04)
    assert "TPR at FPR 10.0%" not in told.detail and any("the highest score" in r for r in told.remarks)


def test_a_threshold_that_tells_people_apart_stays_as_it_is():
    rng = np.random.default_rng(0)
    members, strangers = rng.normal(1, 1, 500).round(1), rng.normal(0, 1, 400).round(1)
    told = tell_members(members, strangers, 0.1, 3)
    tried = np.sort(strangers[np.random.default_rng(3).permutation(400)[:200]])[::-1]
    assert told.members.value == (members > tried[20]).mean()


def test_a_leak_is_found_where_many_people_have_equal_records():
    rng = np.random.default_rng(1)
    n = 800
    frame = pd.DataFrame({"age": rng.random(n), "pay": rng.random(n), "ok": rng.choice(["no", "yes"], n)})
    frame.loc[rng.random(n) < 0.15, ["age", "pay"]] = -9.0  # not on file
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age"])
    train, test = table.split(test_size=0.5, random_state=0)
    attack = cv.attack.Membership()
    found = attack.run(attack.planted(train, test), train, test)
    assert found.members.low > 0.5 > found.controls.high
