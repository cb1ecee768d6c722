"""l and t with the exact search: every released region keeps them, by counting people; limits are said."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv


def people(seed, n=60):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.integers(20, 40, n), "city": rng.choice(list("abc"), n)})
    frame["height"] = rng.integers(0, 10, n)
    frame["ill"] = np.where(frame["age"] < 30, "flu", rng.choice(["flu", "cold", "none"], n))
    frame["ok"] = np.where(frame["height"] > 4, "yes", "no")
    return cv.Table.from_frame(
        frame, target="ok", favourable="yes", quasi_identifiers=["age", "city"], sensitive=["ill"]
    )


def model(rows):
    return np.where(rows["height"] + (rows["age"] > 33) > 5, "yes", "no")


def inside(region, frame):
    """Who has these quasi-identifiers, cell by cell."""
    met = np.ones(len(frame), dtype=bool)
    for name in ("age", "city"):
        cell = region.cells[name]
        if isinstance(cell, pd.Interval):
            met &= frame[name].between(cell.left, cell.right)
        else:
            met &= frame[name].isin(cell if isinstance(cell, frozenset) else [cell])
    return frame[met]


def gap(some, everybody):
    share = everybody.value_counts(normalize=True)
    return (some.value_counts(normalize=True).reindex(share.index, fill_value=0) - share).abs().sum() / 2


@pytest.mark.parametrize("asked", [{"l": 2}, {"l": 3}, {"t": 0.2}, {"l": 2, "t": 0.1}], ids=str)
def test_every_region_keeps_what_was_asked_for(asked, seeds):
    plainly_broken = answered = 0
    for seed in seeds(6, 200):
        table, queries = people(seed), people(seed + 1000, 12)
        common = {"k": 4, "search": "exact", "reward": "none"}
        plain = cv.CFK(**common).fit(table, model).explain(queries)
        diverse = cv.CFK(**common, **asked, sensitive="ill").fit(table, model).explain(queries)
        assert diverse.guarantee.refute(diverse, table) is None
        for e, must in ((plain, False), (diverse, True)):
            for region in e.regions:
                who = inside(region, table.frame)
                kept = who["ill"].nunique() >= asked.get("l", 0)
                kept &= gap(who["ill"], table.frame["ill"]) <= asked.get("t", 1) + 1e-9
                assert len(who) >= 4 and (kept or not must)
                plainly_broken += not kept
                answered += must
    assert plainly_broken > 0 and answered > 0


def test_every_combination_of_a_wider_region_keeps_the_decision():
    table, queries = people(3), people(4, 20)
    found = cv.CFK(k=4, search="exact", reward="none", l=3, sensitive="ill").fit(table, model).explain(queries)
    assert found.found.any() and (found.pureness[found.found] == 1).all()


def test_a_region_depends_on_its_owner_and_not_on_who_else_asks():
    table, queries = people(5), people(6, 15)
    made = cv.CFK(k=4, search="exact", reward="none", l=3, sensitive="ill").fit(table, model)
    together = made.explain(queries)
    alone = [made.explain(queries.frame.iloc[[i]]) for i in range(len(queries))]
    assert [r for e in alone for r in e.regions.text()] == together.regions.text()


def test_a_region_that_is_diverse_already_stays_as_it_is():
    table, queries = people(7), people(8, 15)
    common = {"k": 4, "search": "exact", "reward": "none"}
    plain = cv.CFK(**common).fit(table, model).explain(queries)
    same = cv.CFK(**common, l=1, sensitive="ill").fit(table, model).explain(queries)
    assert plain.regions.text() == same.regions.text() and plain.notes == same.notes


def test_a_wider_region_is_not_called_minimal():
    table, queries = people(3), people(4, 20)
    common = {"k": 4, "search": "exact", "reward": "none"}
    plain = cv.CFK(**common).fit(table, model).explain(queries)
    wide = cv.CFK(**common, l=3, sensitive="ill").fit(table, model).explain(queries)
    said = ["not proven minimal" in note for note in wide.notes]
    assert any(said) and not any("not proven minimal" in note for note in plain.notes)


def test_moves_towards_a_diverse_region_fit_as_many_values():
    """Showing part of a region only adds people, so l holds of what is shown; t need not, and is refused."""
    table, queries = people(9), people(10, 20)
    shown = cv.CFK(k=4, search="exact", l=3, sensitive="ill").fit(table, model).explain(queries)
    assert shown.found.any() and shown.guarantee.refute(shown, table) is None
    assert shown.guarantee.parts[1] == cv.LDiversity(3, "distinct", "ill")
    with pytest.raises(cv.ParameterError, match=r"'t' parameter of CFK must be None unless reward='none'"):
        cv.CFK(k=4, search="exact", t=0.2, sensitive="ill").fit(table, model)


def test_a_region_without_the_values_is_refuted():
    table, queries = people(3), people(4, 20)
    plain = cv.CFK(k=4, search="exact", reward="none").fit(table, model).explain(queries)
    assert "regions break distinct 3-diversity of 'ill'" in cv.LDiversity(3, "distinct", "ill").refute(plain, table)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"l": 4, "sensitive": "ill"}, "'l' parameter of CFK must be at most the number of values of 'ill'"),
        ({"l": 2, "sensitive": "weight"}, "'sensitive' parameter of CFK must be one of the columns"),
        ({"l": 2}, "'sensitive' parameter of CFK must be the column that l and t speak of"),
        ({"t": 0.1, "sensitive": "ill", "search": "grasp"}, "None unless search='groups' or 'exact'"),
    ],
)
def test_what_cannot_be_kept_is_refused(asked, words):
    with pytest.raises(cv.ParameterError, match=words):
        cv.CFK(**{"k": 4, "search": "exact", "reward": "none", **asked}).fit(people(0), model)
