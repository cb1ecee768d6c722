"""Whom no near candidate helps is sent to all of them; candidates that offer the same moves count once."""

import numpy as np
import pandas as pd
import pytest
from moves_twin import permuted

import countervail as cv
from countervail.protect.cfk.groups import group_search


def model(frame):
    """Who is well off in `past` needs little, everybody else much of `now`."""
    enough = np.where(frame["past"].to_numpy() == "good", 0.0, 50.0)
    return np.where(frame["now"].to_numpy(float) >= enough, "yes", "no")


def people(n=300, seed=0, far=12):
    """Those who are well off have little of `now`, but for the last few."""
    rng = np.random.default_rng(seed)
    now = np.r_[rng.uniform(1, 49, n - far), rng.uniform(55, 90, far)].round(2)
    frame = pd.DataFrame({"age": rng.integers(20, 60, n), "past": "good", "now": now, "ok": "yes"})
    frame.loc[:19, ["past", "ok"]] = ["bad", "no"]
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age"])
    schema = table.schema.with_column("past", actionable="no").with_column("age", actionable="no")
    return cv.Table(frame, schema.with_column("now", actionable="up"))


ASKED = pd.DataFrame({"age": [30, 41, 55], "past": "bad", "now": [0.0, 30.0, 48.0]})


def test_far_candidates_help_whom_near_ones_do_not(monkeypatch):
    fitted = cv.CFK(k=5).fit(people(), model)
    assert fitted.explain(ASKED).found.all()  # ten waves hold all of so few
    monkeypatch.setattr(group_search, "WAVES", 1)
    e = fitted.explain(ASKED)
    assert e.found.all() and (e.counterfactuals["now"].astype(float) >= 50).all()
    monkeypatch.setattr(group_search.MoveSearch, "_search_far", lambda *_: None)
    assert fitted.explain(ASKED).found.tolist() == [False, False, True]


@pytest.mark.parametrize("seed", range(6))
def test_permuting_private_vectors_within_groups_changes_no_far_answer(seed, monkeypatch):
    table = people(seed=seed)
    fitted = cv.CFK(k=5).fit(table, model)
    again = cv.CFK(k=5).fit(permuted(table, fitted.search_.row_group_, seed), model)
    monkeypatch.setattr(group_search, "WAVES", 1)
    assert fitted.explain(ASKED).to_text() == again.explain(ASKED).to_text()


def test_an_answer_may_come_from_any_candidate():
    fitted = cv.CFK(k=5).fit(people(900), model)
    assert fitted.looks_at >= len(fitted.search_.candidates_.group) > 640
    assert cv.CFK(k=5, reward="none").fit(people(900), model).looks_at == 1


def test_candidates_that_offer_the_same_count_once():
    table = people(400)
    frame = table.frame.assign(now=np.repeat(np.arange(1.0, 81.0), 5))
    reach = cv.CFK(k=5).fit(cv.Table(frame, table.schema), model).search_.reach_
    offered = reach.offers.private[:, table.schema.features.index("now")]
    assert len(reach.kept) == len(np.unique(offered)) < len(offered)
    assert all(np.flatnonzero(offered == offered[c])[0] == c for c in reach.kept)
