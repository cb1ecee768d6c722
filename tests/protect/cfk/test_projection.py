"""Regions around single rows, projected: the owner's region stays as it is, and only what must move is shown."""

import pickle

import numpy as np
import pytest
from moves_twin import LIMITS, breaches, labels, people, scores

import countervail as cv
from countervail.core.loss import cell_widths
from countervail.model import train_forest
from countervail.protect import GraspSearch
from countervail.protect.cfk.moves.project import KnownRegions, OwnedRegion
from countervail.protect.cfk.space import Boxes
from countervail.testing import small_model, small_table

REWARDS = ("sparsity", "proximity", "plausibility")
SEARCHES = ("exact", "grasp")


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("reward", REWARDS)
def test_only_cells_of_the_owners_region_are_shown(search, reward, seeds):
    moved = 0
    for seed in seeds(5, 200):
        table, queries = people(seed, 50), people(seed + 500, 12)
        model = (labels if seed % 2 else scores)(seed)
        protector = cv.CFK(k=4, search=search, reward=reward, amounts="exact").fit(table, model)
        e, whole = protector.explain(queries), protector.disclosed(queries)
        assert whole.own is None and (whole.found == e.found).all()
        assert (cv.measure.degree_of_privacy(whole)[e.found] >= 4).all()
        assert e.guarantee.refute(e, table) is None and e.guarantee == cv.KAnonymity(4, against="register")
        for i in np.flatnonzero(e.found):
            assert all(whole[int(i)].cells[n] == cell for n, cell in e[int(i)].changes.items())
            moved += len(e[int(i)].changes)
    assert moved > 20


@pytest.mark.parametrize("reward", REWARDS)
def test_what_is_shown_of_an_exact_region_is_pure(reward, seeds):
    for seed in seeds(5, 200):
        table, queries, model = people(seed, 50), people(seed + 500, 12), (labels if seed % 2 else scores)(seed)
        e = cv.CFK(k=4, search="exact", reward=reward).fit(table, model).explain(queries)
        assert (cv.measure.pureness(e, model)[e.found] == 1).all()


def test_what_is_shown_of_an_impure_region_holds_at_least_as_far(seeds):
    for seed in seeds(5, 200):
        table, queries, model = people(seed, 50), people(seed + 500, 12), labels(seed)
        protector = cv.CFK(k=4, search=GraspSearch(iterations=1)).fit(table, model)
        e, whole = protector.explain(queries), protector.disclosed(queries)
        assert (e.pureness[e.found] >= whole.pureness[e.found]).all()
        np.testing.assert_allclose(e.pureness[e.found], cv.measure.pureness(e, model)[e.found])


def test_a_projected_answer_changes_fewer_features_than_the_whole_neighbour():
    table, queries = small_table(200), small_table(60, seed=7)
    for search in SEARCHES:
        few, whole = (
            cv.CFK(k=5, search=search, reward=r).fit(table, small_model).explain(queries) for r in ("sparsity", "none")
        )
        assert np.nanmean(cv.measure.sparsity(few)) < np.nanmean(cv.measure.sparsity(whole))
        assert np.nanmean(cv.measure.ncp(few)) < np.nanmean(cv.measure.ncp(whole))


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)
def test_constraints_hold_for_every_value_of_a_projected_cell(search, limits, seeds):
    for seed in seeds(3, 200):
        table, queries = people(seed, 40), people(seed + 500, 10)
        e = cv.CFK(k=3, search=search, n_counterfactuals=2, **limits).fit(table, scores(seed)).explain(queries)
        assert breaches(e, table, **limits) == []
        assert e.guarantee.refute(e, table) is None


@pytest.mark.parametrize("search", SEARCHES)
def test_a_batch_gives_what_single_questions_give(search):
    table, queries = people(3, 40), people(900, 15).features
    protector = cv.CFK(k=3, search=search, n_counterfactuals=2).fit(table, scores(3))
    whole = protector.explain(queries)
    singly = [e for i in range(len(queries)) for e in protector.explain(queries.iloc[[i]])]
    assert [e.to_text() for e in singly] == [e.to_text() for e in whole]


def test_repeated_and_several_answers_leave_k_people(seeds):
    for seed in seeds(3, 60):
        table, control = people(seed, 60), people(seed + 500, 80)
        protector = cv.CFK(k=4, search="exact", n_counterfactuals=3).fit(table, labels(seed))
        result = cv.attack.Intersection(n_targets=None, repeats=2).run(protector, table, control)
        assert result.set_sizes.min(initial=4) >= 4
        linked = cv.attack.Linkage().run(protector.explain(control), table, control)
        assert linked.members.value == 0 and linked.set_sizes.min(initial=4) >= 4


def test_what_is_declared_of_people_bounds_moves_and_not_whole_neighbours():
    table = cv.load("german_credit", actionable=True)
    train, test = table.split(test_size=0.4, random_state=0)
    model = train_forest(train)
    asked = test.features[model.predict(test.features) == "bad"].head(12)
    e = cv.CFK(k=10, search="exact").fit(train, model).explain(asked)
    assert e.found.all()


@pytest.mark.parametrize("level", [True, False])
def test_boxes_reach_as_far_as_their_regions(level, seeds):
    for seed in seeds(5, 200):
        table = people(seed, 30)
        if not level:
            table = table.take(np.arange(12))  # values that nobody has
        search = cv.CFK(k=3, search="exact").fit(table, scores(seed)).search_
        rows = np.arange(len(table))
        solved = search.solve_rows(search.rows_[rows])
        boxes = solved.boxes.take(np.flatnonzero(solved.found))
        ours, plain = search.space_.widths(boxes), cell_widths(search.space_.regions(boxes), table)
        np.testing.assert_allclose(ours, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("search", SEARCHES)
def test_a_region_is_solved_once_for_all_who_ask_later(search, seeds):
    """Whoever asks after others gets what she would have got alone; of regions that are known nobody is asked."""
    for seed in seeds(3, 100):
        table, queries, model = people(seed, 50), people(seed + 500, 12), (labels if seed % 2 else scores)(seed)
        rows, singles = [], [queries.frame.iloc[i : i + 1] for i in range(12)]

        def asked(frame, model=model, rows=rows):
            rows.append(len(frame))
            return model(frame)

        made = cv.CFK(k=4, search=search, reward="proximity")
        fitted = made.fit(table, asked)
        whole, alone = fitted.explain(queries).to_json(), [made.fit(table, model).explain(q).to_json() for q in singles]
        assert [fitted.explain(q).to_json() for q in singles] == alone
        rows.clear()
        assert fitted.explain(queries).to_json() == whole
        known = sum(rows)
        fresh = made.fit(table, asked)
        rows.clear()
        assert fresh.explain(queries).to_json() == whole
        assert known < sum(rows)


def test_what_is_known_of_regions_is_bounded_and_stays_here():
    known = KnownRegions(3)
    for row in range(10):
        known.put(row, OwnedRegion(Boxes(*(np.zeros((1, 1), dtype=int) for _ in range(3))), 1.0))
        assert known.get(row) is not None and len(known._held) <= 3
    again = pickle.loads(pickle.dumps(known))
    assert not again._held and again._room == 3
