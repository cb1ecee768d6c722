"""Reciprocal groups: the invariance that the promise rests on, groups that never change, and the attacks on them."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.loss import ncp
from countervail.protect import GraspSearch
from countervail.protect.cfk import grouping
from countervail.protect.cfk.grouping import boxes_of, form_groups
from countervail.protect.cfk.stored_groups import Groups
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


@pytest.fixture
def quick_groups(monkeypatch):
    """Little rebuilding: what holds of the groups holds however well they are formed."""
    monkeypatch.setattr(grouping, "_WORK", 1)


def test_answers_do_not_change_when_private_vectors_are_permuted_within_groups(quick_groups, seeds):
    """Random tables, each with 30 queries: the invariance behind KAnonymity(k, against="algorithm")."""
    answered, tables = 0, seeds(30, 2_000)
    for seed in tables:
        k = 2 + seed % 5
        table, queries = people(seed, 24 + seed % 20), people(seed + 10_000, 30).features
        first = cv.CFK(k=k).fit(table, model)
        again = cv.CFK(k=k).fit(permuted(table, first.search_.row_group_, seed), model)
        assert (first.search_.row_group_ == again.search_.row_group_).all()
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
        protector = cv.CFK(k=5, grouping="mondrian").fit(table, model)
        assert np.bincount(protector.search_.row_group_).min() >= 5
        assert cv.attack.Inversion().run(protector, table, queries).set_sizes.min(initial=5) >= 5
        again = cv.CFK(k=5, grouping="mondrian").fit(permuted(table, protector.search_.row_group_, seed), model)
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
            inside = protector.groups_.regions.covers(table)
            assert inside[group, np.arange(len(table))].all()


def test_groups_do_not_depend_on_private_values_or_model():
    table = people(3, 80)
    other = permuted(table, np.zeros(80, dtype=int), 1)
    a, b = cv.CFK(k=5).fit(table, model), cv.CFK(k=5).fit(other, lambda f: np.where(f["pay"] > 4, "yes", "no"))
    assert (a.search_.row_group_ == b.search_.row_group_).all()
    assert a.groups_.regions.text() == b.groups_.regions.text()


def test_rebuilding_makes_groups_cheaper_than_greedy_ones(monkeypatch):
    table = people(5, 300)
    space = cv.CFK(k=10, search="exact").fit(table, model).search_.space_

    def cost():
        group = form_groups(space, 10)
        return (ncp(space.regions(boxes_of(space, group)), table) * np.bincount(group)).sum()

    better = cost()
    monkeypatch.setattr(grouping.kernels, "improve", lambda *a: None)
    assert better < cost()


def region_of_people(protector):
    texts = protector.groups_.regions.text()
    return [texts[g] if g >= 0 else None for g in protector.search_.row_group_]


def test_one_row_more_or_less_never_changes_an_existing_group():
    table = people(7, 100)
    first = cv.CFK(k=6).fit(table, model)
    before = region_of_people(first)
    for gone in range(0, 100, 7):
        fewer = table.take(np.delete(np.arange(100), gone))
        after = region_of_people(cv.CFK(k=6, groups=first.groups_).fit(fewer, model))
        assert after == before[:gone] + before[gone + 1 :]
    stranger = people(8, 2).frame.iloc[:1]
    more = cv.Table(pd.concat([table.frame, stranger], ignore_index=True), table.schema)
    refit = cv.CFK(k=6, groups=first.groups_).fit(more, model)
    assert region_of_people(refit) == [*before, None]
    assert refit.groups_.version == 1


def test_a_group_that_lost_a_person_answers_no_more():
    """The vector that vanished would be that person's."""
    table = people(7, 60)
    first = cv.CFK(k=6).fit(table, model)
    for gone in range(0, 60, 9):
        refit = cv.CFK(k=6, groups=first.groups_).fit(table.take(np.delete(np.arange(60), gone)), model)
        assert int(first.search_.row_group_[gone]) not in set(refit.search_.candidates_.group)


def test_somebody_who_waits_for_a_group_leaves_no_trace():
    """Not in a range of the distance, not in a category, not in a dtype's spelling."""
    table, queries = people(7, 60), people(11, 40).features
    first = cv.CFK(k=6).fit(table, model)
    newcomer = people(8, 2).frame.iloc[:1].assign(pay=5_000, ill="rare", debt=-40.0)
    more = cv.Table(pd.concat([table.frame, newcomer], ignore_index=True), table.schema)
    refit = cv.CFK(k=6, groups=first.groups_).fit(more, model)
    assert refit.search_.row_group_[-1] == -1
    assert refit.explain(queries).counterfactuals.equals(first.explain(queries).counterfactuals)


def test_another_dtype_does_not_make_people_strangers():
    table = people(7, 60)
    first = cv.CFK(k=6).fit(table, model)
    same = cv.Table(table.frame.astype({"pay": float}), table.schema)
    assert (cv.CFK(k=6, groups=first.groups_).fit(same, model).search_.row_group_ == first.search_.row_group_).all()


def test_groups_of_a_table_that_was_recoded_are_refused():
    table = people(7, 60)
    first = cv.CFK(k=6).fit(table, model)
    with pytest.raises(cv.SchemaError, match="Fewer than half"):
        cv.CFK(k=6, groups=first.groups_).fit(
            cv.Table(table.frame.assign(pay=table.frame["pay"] + 1), table.schema), model
        )


def test_stored_groups_that_are_not_diverse_are_not_answered_from():
    table = people(7, 60)
    first = cv.CFK(k=4).fit(table, model)
    refit = cv.CFK(k=4, l=3, sensitive="ill", groups=first.groups_).fit(table, model)
    diverse = table.frame["ill"].groupby(first.search_.row_group_).nunique() >= 3
    assert set(refit.search_.candidates_.group) <= set(diverse.index[diverse])


def test_a_refit_says_that_the_promise_is_about_one_fit():
    table = people(7, 60)
    first = cv.CFK(k=6).fit(table, model)
    again = cv.CFK(k=6, groups=first.groups_).fit(table, model)
    assert not first.explain(table).caveats
    assert "one fit" in again.explain(table).caveats[0]


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
    a, b = cv.CFK(k=5).fit(table, model), cv.CFK(k=5).fit(table.take(order), model)
    assert (a.search_.row_group_[order] == b.search_.row_group_).all()
    queries = people(5, 30).features
    assert a.explain(queries).to_json() == b.explain(queries).to_json()


def test_stored_groups_do_not_print_their_key():
    stored = cv.CFK(k=4).fit(people(4, 40), model).groups_
    assert stored.key not in repr(stored) + repr(cv.CFK(k=4, groups=stored))


def test_new_rows_join_as_groups_of_their_own():
    table, fresh = people(7, 60), people(9, 20)
    first = cv.CFK(k=6).fit(table, model)
    both = cv.Table(pd.concat([table.frame, fresh.frame], ignore_index=True), table.schema)
    refit = cv.CFK(k=6, groups=first.groups_).fit(both, model)
    assert refit.groups_.version == 2
    assert region_of_people(refit)[:60] == region_of_people(first)
    old, new = set(refit.search_.row_group_[:60]), set(refit.search_.row_group_[60:])
    assert not old & new
    assert np.bincount(refit.search_.row_group_)[sorted(new)].min() >= 6


def test_groups_survive_their_file(tmp_path):
    table = people(7, 60)
    first = cv.CFK(k=6).fit(table, model)
    first.groups_.write(tmp_path / "people.groups.json")
    assert (tmp_path / "people.groups.json").stat().st_mode & 0o077 == 0
    stored = Groups.read(tmp_path / "people.groups.json")
    refit = cv.CFK(k=6, groups=stored).fit(table, model)
    assert region_of_people(refit) == region_of_people(first)
    queries = people(11, 20).features
    assert refit.explain(queries).to_text() == first.explain(queries).to_text()


def test_two_groupings_of_the_same_people_intersect_unless_groups_are_kept():
    """What the frozen groups are for: without them, one row less leaves fewer than k people."""
    table, queries = people(7, 100), people(11, 200)
    first = cv.CFK(k=8).fit(table, model)
    fewer = table.take(range(99))
    careless = cv.CFK(k=8).fit(fewer, model)
    careful = cv.CFK(k=8, groups=first.groups_).fit(fewer, model)
    attack = cv.attack.Intersection(n_targets=None)
    assert attack.between(first, careful, fewer, queries).set_sizes.min() >= 8 - 1  # the person who left is one of them
    assert attack.between(first, careless, fewer, queries).set_sizes.min() < 8


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
    plain = cv.CFK(k=5).fit(table, model).explain(queries)
    diverse = cv.CFK(k=5, l=2, sensitive="ill").fit(table, model).explain(queries)
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
        ({"grouping": "lots"}, "'grouping' parameter of CFK"),
        ({"l": 0, "sensitive": "ill"}, "'l' parameter of CFK"),
        ({"t": 2, "sensitive": "ill"}, "'t' parameter of CFK"),
        ({"l": 9, "sensitive": "ill"}, "'l' parameter of CFK must be at most the number of values"),
        ({"l": 2, "sensitive": "height"}, "'sensitive' parameter of CFK"),
        ({"l": 2, "sensitive": "ill", "search": "exact"}, "None unless search='groups'"),
        ({"explainer": cv.NICE(justified=True)}, "'explainer' parameter of CFK"),
        ({"explainer": cv.NICE(justified=False, immutable=["age"])}, "'explainer' parameter of CFK"),
        ({"explainer": cv.NICE(justified=False, scale="std")}, "'explainer' parameter of CFK"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        cv.CFK(**{"k": 3, **parameters}).fit(people(0, 40), model)


def test_groups_of_other_quasi_identifiers_are_refused():
    table = people(0, 40)
    stored = cv.CFK(k=3).fit(table, model).groups_
    with pytest.raises(cv.SchemaError, match="would intersect"):
        cv.CFK(k=3, groups=stored).fit(table.with_roles(quasi=["age"]), model)
    with pytest.raises(ValueError, match="'groups' parameter of CFK"):
        cv.CFK(k=5, groups=stored).fit(table, model)
