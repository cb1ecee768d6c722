"""At most so many changes, and what is hard for people: both are public, and answers from groups obey them."""

import numpy as np
import pytest
from moves_twin import labels, people, permuted, scores

import countervail as cv

pytestmark = pytest.mark.usefixtures("quick_groups")


@pytest.mark.parametrize("model", [labels, scores])
def test_nobody_is_asked_for_more_changes_than_allowed(model, seeds):
    """And whoever got an answer within the limit without it gets one with it."""
    served = 0
    for seed in seeds(6, 200):
        table, queries = people(seed, 50), people(seed + 500, 20)
        free = cv.CFK(k=3).fit(table, model(seed)).explain(queries)
        changed = {x: len(e.changes) for x, e in enumerate(free) if e.found}
        for most in (1, 2):
            bound = cv.CFK(k=3, max_changes=most).fit(table, model(seed)).explain(queries)
            for i, e in enumerate(bound):
                assert len(e.changes) <= most
                assert not 0 < changed.get(i, 0) <= most or e.found
            served += int(bound.found.sum())
    assert served


def test_what_is_hard_moves_less_often():
    dear, cheap = 0, 0
    for seed in range(12):
        table, queries = people(seed, 60), people(seed + 500, 30)
        for cost in (1.0, 50.0):
            e = cv.CFK(k=3, costs={"pay": cost}).fit(table, scores(seed)).explain(queries)
            moved = sum("pay" in x.changes for x in e)
            dear, cheap = dear + (cost > 1) * moved, cheap + (cost == 1) * moved
    assert 0 < dear < cheap


@pytest.mark.parametrize("limits", [{"max_changes": 1}, {"costs": {"pay": 9.0, "age": 0.1}}], ids=str)
def test_limits_keep_the_invariance(limits, seeds):
    for seed in seeds(5, 200):
        table, queries = people(seed, 40), people(seed + 500, 15).features
        one = cv.CFK(k=3, **limits).fit(table, scores(seed))
        swapped = permuted(table, one.search_.row_group_, seed)
        other = cv.CFK(k=3, **limits).fit(swapped, scores(seed))
        assert one.explain(queries).to_json() == other.explain(queries).to_json()


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_changes": 0}, "'max_changes' parameter of CFK"),
        ({"costs": {"pay": 0.0}}, "'costs' parameter of CFK"),
        ({"costs": {"pay": np.nan}}, "'costs' parameter of CFK"),
        ({"costs": {"height": 1.0}}, "'costs' parameter of CFK"),
        ({"max_changes": 2, "reward": "none"}, "'max_changes' parameter of CFK must be left out with reward='none'"),
    ],
)
def test_limits_that_make_no_sense_are_named(limits, message):
    with pytest.raises(ValueError, match=message):
        cv.CFK(k=3, **limits).fit(people(0, 40), labels(0))


@pytest.mark.parametrize("search", ["groups", "exact"])
def test_each_person_may_bring_constraints_of_her_own(search):
    """Asked together or one by one, beside the protector's own."""
    table, queries = people(3, 60), people(503, 12)
    made = cv.CFK(k=3, search=search, immutable=["city"]).fit(table, scores(3))
    mine = [{"immutable": ["pay"]}, None, {"max_changes": 1, "monotone": {"pay": "up"}}] * 4
    together = made.explain(queries, constraints=mine)
    assert together.found.any()
    for i, wish in enumerate(mine):
        alone = made.explain(queries.take([i]), constraints=wish)
        assert alone.to_text() == together[i].to_text() or (alone[0].changes == together[i].changes)
        changes = together[i].changes
        assert "city" not in changes and ("pay" not in changes or i % 3)
        assert i % 3 != 2 or len(changes) <= 1


def test_whole_neighbours_take_no_constraints():
    table = people(3, 60)
    made = cv.CFK(k=3, reward="none").fit(table, scores(3))
    with pytest.raises(ValueError, match="'constraints' parameter of CFK must be None where whole neighbours"):
        made.explain(table, constraints={"immutable": ["pay"]})
