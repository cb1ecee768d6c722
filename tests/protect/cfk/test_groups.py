"""Reciprocal groups: the invariance that the promise rests on, groups that never change, and the attacks on them."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.loss import ncp
from countervail.protect import GraspSearch
from countervail.protect.cfk.groups import grouping
from countervail.protect.cfk.groups.grouping import boxes_of, form_groups
from countervail.testing import small_model, small_table

CITIES, LEVELS = ("a", "b", "c"), ("low", "mid", "high")


def people(seed, n):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 30, n),
            "city": rng.choice(CITIES, n),
            "level": pd.Categorical(rng.choice(LEVELS, n), LEVELS, ordered=True),
            "pay": rng.integers(0, 8, n),
            "debt": rng.random(n).round(2),
            "ill": rng.choice(["no", "yes", "maybe"], n),
        }
    )
    frame["ok"] = rng.choice(["no", "yes"], n)
    frame.loc[:1, "ok"] = ["no", "yes"]
    return cv.Table.from_frame(
        frame, target="ok", favourable="yes", quasi_identifiers=["age", "city", "level"], sensitive=["ill"]
    )


def model(frame):
    merit = 3 * frame["pay"].to_numpy(float) - frame["age"].to_numpy(float) / 3 + 5 * (frame["city"] == "a").to_numpy()
    return np.where(merit + 4 * frame["debt"].to_numpy(float) > 6, "yes", "no")


def permuted(table, group, seed):
    """The same people with their private vectors (labels included) permuted within groups."""
    rng = np.random.default_rng(seed)
    frame = table.frame.copy()
    private = [n for n in frame.columns if n not in table.schema.names("quasi")]
    for g in np.unique(group):
        rows = np.flatnonzero(group == g)
        frame.loc[rows, private] = frame.loc[rng.permutation(rows), private].to_numpy()
    return cv.Table(frame.astype(table.frame.dtypes.to_dict()), table.schema)


def test_answers_do_not_change_when_private_vectors_are_permuted_within_groups(quick_groups, seeds):
    """Random tables, each with 30 queries: the invariance behind KAnonymity(k, against="algorithm")."""
    answered, tables = 0, seeds(30, 2_000)
    for seed in tables:
        k = 2 + seed % 5
        table, queries = people(seed, 24 + seed % 20), people(seed + 10_000, 30).features
        first = cv.CFK(k=k).fit(table, model)
        swapped = permuted(table, first.search_.row_group_, seed)
        again = cv.CFK(k=k).fit(swapped, model)
        assert (first.search_.row_group_ == again.search_.row_group_).all()
        assert first.search_.sealed_.digest == again.search_.sealed_.digest
        a, b = first.explain(queries), again.explain(queries)
        assert a.to_json() == b.to_json()
        answered += int(a.found.sum())
    assert answered > 6 * len(tables)


def test_merging_for_diversity_keeps_the_invariance_within_the_groups_it_merges(quick_groups, seeds):
    """Sensitive values decide what is merged, but only as the values of a whole group of k, whoever holds them."""
    for seed in seeds(15, 300):
        table, queries = people(seed, 40), people(seed + 10_000, 30).features
        whole = cv.CFK(k=4).fit(table, model).search_.row_group_
        first = cv.CFK(k=4, l=3, sensitive="ill").fit(table, model)
        again = cv.CFK(k=4, l=3, sensitive="ill").fit(permuted(table, whole, seed), model)
        assert first.explain(queries).to_json() == again.explain(queries).to_json()


def test_inversion_never_leaves_fewer_than_k(seeds):
    for seed in seeds(10, 100):
        k = 3 + seed % 4
        table = people(seed, 60)
        protector = cv.CFK(k=k).fit(table, model)
        result = cv.attack.Inversion().run(protector, table, people(seed + 500, 300))
        assert result.set_sizes.min(initial=k) >= k
        assert all(v.value == 0 for name, v in result.detail.items() if name.startswith("below"))


def test_explanations_drawn_from_a_mondrian_table_withstand_inversion(seeds):
    for seed in seeds(6, 60):
        table, queries = people(seed, 60), people(seed + 500, 200)
        search = cv.protect.GroupSearch(grouping="mondrian")
        protector = cv.CFK(k=5, search=search).fit(table, model)
        assert np.bincount(protector.search_.row_group_).min() >= 5
        assert cv.attack.Inversion().run(protector, table, queries).set_sizes.min(initial=5) >= 5
        again = cv.CFK(k=5, search=search).fit(permuted(table, protector.search_.row_group_, seed), model)
        assert protector.explain(queries).to_json() == again.explain(queries).to_json()


def test_inversion_bites_where_regions_are_minimal():
    table = people(0, 80)
    protector = cv.CFK(k=6, search="exact").fit(table, model)
    result = cv.attack.Inversion().run(protector, table, people(1, 300))
    assert result.detail["below k after nominal"].value == 0
    assert result.detail["below k after rerun"].value > 0.3
    assert result.detail["below k after bisectors"].value >= result.detail["below k after rerun"].value


def test_inversion_gives_a_posterior_for_searches_that_draw_lots():
    table = people(0, 60)
    protector = cv.CFK(k=5, search=GraspSearch(iterations=1)).fit(table, model)
    left = cv.attack.Inversion(runs=6).left(protector, people(1, 20).features, table)
    assert ((left["largest"] > 0) & (left["largest"] <= 1)).all()
    assert (left["perplexity"] <= left["nominal"] + 1e-9).all()


def test_inversion_needs_a_search_to_rerun():
    table = people(0, 60)
    with pytest.raises(ValueError, match="'oracle' parameter of Inversion"):
        cv.attack.Inversion().run(cv.NICE().fit(table, model), table, table)


def test_every_group_has_k_people_and_its_region_holds_them(quick_groups, seeds):
    for seed in seeds(12, 200):
        table = people(seed, 90)
        for k in (2, 5, 20, 90):
            protector = cv.CFK(k=k).fit(table, model)
            group = protector.search_.row_group_
            assert np.bincount(group).min() >= k
            inside = protector.search_.sealed_.sealed.regions.covers(table)
            assert inside[group, np.arange(len(table))].all()


def test_groups_do_not_depend_on_private_values_or_model():
    table = people(3, 80)
    other = permuted(table, np.zeros(80, dtype=int), 1)
    a, b = cv.CFK(k=5).fit(table, model), cv.CFK(k=5).fit(other, lambda f: np.where(f["pay"] > 4, "yes", "no"))
    assert (a.search_.row_group_ == b.search_.row_group_).all()
    assert a.search_.sealed_.sealed.regions.text() == b.search_.sealed_.sealed.regions.text()


def test_rebuilding_makes_groups_cheaper_than_greedy_ones(monkeypatch):
    table = people(5, 300)
    space = cv.CFK(k=10, search="exact").fit(table, model).search_.space_

    def cost():
        group = form_groups(space, 10)
        return (ncp(space.regions(boxes_of(space, group)), table) * np.bincount(group)).sum()

    better = cost()
    monkeypatch.setattr(grouping.kernels, "improve", lambda *a: None)
    assert better < cost()


class Tuned:
    """Scores and decisions disagree for one combination only: whoever owns it must not show."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, frame):
        yes = (model(frame) == "yes").astype(float)
        odd = ((frame["age"] == 21) & (frame["pay"] == 7)).to_numpy()
        return np.column_stack([1 - yes, yes])[:, ::1] if not odd.any() else np.column_stack([1 - yes, yes * ~odd])

    def predict(self, frame):
        return model(frame)


class Picky:
    """Fails on one combination."""

    classes_ = np.array(["no", "yes"])

    def predict(self, frame):
        if ((frame["age"] == 21) & (frame["pay"] == 7)).any():
            raise RuntimeError("age=21 pay=7")
        return model(frame)


def outcome(table, estimator, queries):
    """The answers, or that there is an error (whose text must not quote the model)."""
    try:
        return cv.CFK(k=4).fit(table, estimator).explain(queries).to_json()
    except cv.SchemaError as error:
        assert "age=21" not in str(error)
        assert error.__context__ is None
        return "refused"


@pytest.mark.parametrize("estimator", [Tuned(), Picky()])
def test_the_model_is_not_asked_about_anybodys_row(quick_groups, estimator, seeds):
    for seed in seeds(12, 300):
        table, queries = people(seed, 40), people(seed + 10_000, 20).features
        table.frame["debt"] = table.frame["debt"] * np.where(np.arange(40) % 2, 1.0, -0.0)
        group = cv.CFK(k=4).fit(table, model).search_.row_group_
        swapped = permuted(table, group, seed)
        assert outcome(table, estimator, queries) == outcome(swapped, estimator, queries)


def test_groups_do_not_depend_on_row_order():
    table = people(4, 90)
    order = np.random.default_rng(0).permutation(90)
    turned = table.take(order)
    a, b = cv.CFK(k=5).fit(table, model), cv.CFK(k=5).fit(turned, model)
    assert (a.search_.row_group_[order] == b.search_.row_group_).all()
    queries = people(5, 30).features
    assert a.explain(queries).to_json() == b.explain(queries).to_json()


@pytest.mark.parametrize(("name", "value"), [("l", 2), ("l", 3), ("t", 0.3), ("t", 0.15)])
def test_diversity_is_met_by_merging(name, value):
    for seed in range(10):
        table = people(seed, 80)
        protector = cv.CFK(k=4, sensitive="ill", **{name: value}).fit(table, model)
        share = table.frame["ill"].value_counts(normalize=True)
        for g in range(protector.search_.row_group_.max() + 1):
            inside = table.frame["ill"][protector.search_.row_group_ == g]
            assert len(inside) >= 4
            if name == "l":
                assert inside.nunique() >= value
            else:
                gap = (inside.value_counts(normalize=True).reindex(share.index, fill_value=0) - share).abs().sum() / 2
                assert gap <= value + 1e-9
        e = protector.explain(people(seed + 50, 20))
        assert "10-anonymity" not in str(e.guarantee)
        assert e.guarantee.parts[0] == cv.KAnonymity(4, against="algorithm")
        assert e.guarantee.parts[1].against == "register"


def test_homogeneity_falls_when_values_differ():
    table, queries = people(2, 200), people(3, 400)
    table = cv.Table(table.frame.assign(ill=np.where(table.frame["city"] == "a", "yes", "no")), table.schema)
    plain = cv.CFK(k=5, reward="none").fit(table, model).explain(queries)
    diverse = cv.CFK(k=5, reward="none", l=2, sensitive="ill").fit(table, model).explain(queries)
    attack = cv.attack.Homogeneity()
    assert (
        attack.run(plain, table, people(4, 100)).members.value
        > attack.run(diverse, table, people(4, 100)).members.value
    )


def test_nothing_is_said_about_the_owner():
    e = cv.CFK(k=5).fit(small_table(120), small_model).explain(small_table(30, seed=2))
    assert e.scores is None
    assert set(e.notes) == {""}
    assert e.guarantee == cv.KAnonymity(5, against="algorithm")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"l": 2}, "'sensitive' parameter of CFK"),
        ({"search": cv.protect.GroupSearch(grouping="lots")}, "'grouping' parameter of GroupSearch"),
        ({"l": 0, "sensitive": "ill"}, "'l' parameter of CFK"),
        ({"t": 2, "sensitive": "ill"}, "'t' parameter of CFK"),
        ({"l": 9, "sensitive": "ill"}, "'l' parameter of CFK must be at most the number of values"),
        ({"l": 2, "sensitive": "height"}, "'sensitive' parameter of CFK"),
        ({"l": 2, "sensitive": "ill", "search": "grasp"}, "None unless search='groups' or 'exact'"),
        ({"explainer": cv.NICE(justified=True)}, "'explainer' parameter of CFK"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        cv.CFK(**{"k": 3, **parameters}).fit(people(0, 40), model)
