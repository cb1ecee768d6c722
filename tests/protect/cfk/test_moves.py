"""Answers that move few features: the invariance behind the promise, a slow twin, unsound variants, the asker's own."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from moves_twin import REWARDS, WEIGHTS, Twin, labels, people, permuted, scores

import countervail as cv
from countervail.attack.result import UNSAID, right_rows
from countervail.protect.cfk.groups import group_search
from countervail.protect.cfk.groups.candidates import Candidates, Members
from countervail.protect.cfk.moves import askers, kernels
from countervail.protect.cfk.moves import search as moves_search
from countervail.testing import small_model, small_table

MODELS = {"labels": labels, "scores": scores}


def differing(seeds, **settings):
    """On how many tables some answer changes when private vectors are permuted; and how many answers there were."""
    changed, answered = 0, 0
    for seed in seeds:
        table, queries = people(seed, 24 + seed % 20), people(seed + 10_000, 12).features
        model, made = MODELS["labels" if seed % 2 else "scores"](seed), cv.CFK(k=2 + seed % 4, **settings)
        a = made.fit(table, model).explain(queries)
        other = permuted(table, made.search_.row_group_, seed)
        b = cv.CFK(k=2 + seed % 4, **settings).fit(other, model).explain(queries)
        changed += a.to_json() != b.to_json()
        answered += int(a.found.sum())
    return changed, answered


# ---------------------------------------------------------------- unsound variants, which comparing must catch


class Peeked:
    """Everybody's rows and groups, which only an unsound variant looks at."""

    def __init__(self, monkeypatch):
        real = Members.of

        def looked(made, rows, group):
            private = np.delete(np.arange(rows.shape[1]), made.quasi)
            self.rows, self.group, self.private = rows, group, private
            return real(made, rows, group)

        monkeypatch.setattr(Members, "of", looked)


def near_to_rows(monkeypatch):
    """Nearness to people's own rows instead of the anonymised pairs."""
    real, seen = group_search.GroupSearch.fit, Peeked(monkeypatch)

    def fit(self, *given):
        real(self, *given)
        heom, rows = self.candidates_.heom, seen.rows
        self.nearness_ = lambda moves, trials, points: np.array(
            [heom.between(np.repeat(p[None], len(rows), axis=0), rows).min() for p in points]
        )
        return self

    monkeypatch.setattr(group_search.GroupSearch, "fit", fit)


def judged_by_the_owner(monkeypatch):
    """Eligible where the owner's own quasi-identifiers lead to the decision, whatever the other members' do."""
    seen = Peeked(monkeypatch)

    def judge(self, decide, wanted, members, cell_budget, min_pureness, *, whole=True):
        owners = [(seen.rows[:, seen.private] == v).all(axis=1) for v in self.private[:, seen.private]]
        kept = np.flatnonzero([bool(wanted[decide(seen.rows[owner])].any()) for owner in owners])
        self.keep(kept, np.ones(len(kept)), np.zeros(len(kept), dtype=bool), np.ones(len(kept), dtype=np.int64))

    monkeypatch.setattr(Candidates, "judge", judge)


def ranked_by_the_owner(monkeypatch):
    """The nearest candidates by the distance to their owner's row, not to the region."""
    monkeypatch.setattr(askers, "CANDIDATES", 3)
    real, seen = group_search.offered, Peeked(monkeypatch)

    def offers(sealed, judged, steps):
        made, rows, private = real(sealed, judged, steps=steps), seen.rows, seen.private
        same = [
            (rows[:, private] == v).all(axis=1) & (seen.group == g)
            for g, v in zip(made.group, made.private[:, private])
        ]
        owners = rows[[int(np.flatnonzero(s)[0]) for s in same]]

        def nearest(of, at, n):
            away = [judged.heom.between(np.repeat(x[None], len(owners), axis=0), owners) for x in of.x[at]]
            order = np.argsort(np.stack(away), axis=1, kind="stable")[:, :n]
            return np.pad(order, ((0, 0), (0, n - order.shape[1])), constant_values=-1)

        monkeypatch.setattr(askers.Askers, "nearest", nearest)
        return made

    monkeypatch.setattr(group_search, "offered", offers)


@pytest.mark.parametrize("unsound", [near_to_rows, judged_by_the_owner, ranked_by_the_owner])
def test_an_unsound_variant_is_caught(quick_groups, monkeypatch, unsound):
    unsound(monkeypatch)
    changed, answered = differing(range(32), reward="sparsity")
    assert answered > 60
    assert changed >= 2


# ---------------------------------------------------------------- the slow twin


@pytest.mark.parametrize("reward", REWARDS)
def test_no_smaller_pure_set_exists_and_the_best_one_is_chosen(quick_groups, reward, seeds):
    """Labels only: sets of up to three features are tried exhaustively."""
    compared = 0
    for seed in seeds(6, 500):
        table, queries = people(seed, 20), people(seed + 500, 6).features
        model = labels(seed)
        protector = cv.CFK(k=3, reward=reward, amounts="exact").fit(table, model)
        twin = Twin(table, protector.search_.row_group_, protector.search_.sealed_.sealed.regions, model)
        e = protector.explain(queries)
        way, near, spare = WEIGHTS[reward]
        for i in np.flatnonzero(e.status != "already_favourable"):
            row = queries.iloc[int(i)].to_dict()
            best = twin.best(row, reward)
            if best is None:
                continue
            compared += 1
            answer = e[int(i)]
            further = 5 if reward == "plausibility" else 0
            assert best[0] <= len(answer.changes) <= best[0] + spare + further
            keys = [
                way * cost + near * twin.nearness(point)
                for names, cost, point, pair in twin.pure_sets(row, len(answer.changes))
                if set(names) == set(answer.changes) and _same(answer, names, point, twin, pair)
            ]
            assert keys, "the answer is no pure set of a near candidate"
            assert any(min(keys) == pytest.approx(key, abs=1e-7) for key in best[1])
    assert compared > 5


def _same(answer, names, point, twin, pair):
    """Whether the released cells are those of this candidate."""
    g, v = pair
    shown = {n: twin.cells[g][n] if n in twin.cells[g] else dict(zip(twin.private, v))[n] for n in names}
    return all(shown[n] == answer.cells[n] for n in names)


def test_rewards_do_what_they_are_for():
    table, queries = small_table(300), small_table(80, seed=7)
    made = {r: cv.CFK(k=5, reward=r).fit(table, small_model).explain(queries) for r in ("none", *REWARDS)}
    changed = {r: np.nanmean(cv.measure.sparsity(e)) for r, e in made.items()}
    cost = {r: np.nanmean(cv.measure.recourse_cost(e)) for r, e in made.items()}
    away = {r: np.nanmean(cv.measure.plausibility(e)) for r, e in made.items()}
    assert changed["sparsity"] <= min(changed.values()) < changed["none"]
    assert cost["proximity"] <= min(cost.values()) < cost["none"]
    assert away["typical"] <= away["plausibility"] <= away["sparsity"]


def test_without_a_reward_the_whole_neighbour_is_given():
    table, queries = small_table(200), small_table(40, seed=7)
    plain = cv.CFK(k=5, reward="none").fit(table, small_model)
    e = plain.explain(queries)
    assert e.own is None and not e.caveats
    near = plain.search_.candidates_.nearest(plain.search_.encoder_.encode(queries.features[e.found]))
    private = plain.search_.encoder_.decode(plain.search_.candidates_.private[near])
    for name in ("ill", "income"):
        assert e.counterfactuals[name][e.found].tolist() == private[name].tolist()


# ---------------------------------------------------------------- the asker's own values


@pytest.fixture(scope="module")
def answers():
    return cv.CFK(k=5).fit(small_table(200), small_model).explain(small_table(40, seed=7))


def test_what_did_not_move_is_the_askers_own(answers):
    assert answers.own[answers.found].any() and not answers.own[~answers.found].any()
    for i in np.flatnonzero(answers.found):
        e = answers[int(i)]
        assert e.own == set(e.cells) - set(e.changes)
        assert all(e.cells[n] == e.factual[n] for n in e.own)
    assert any("her alone" in caveat for caveat in answers.caveats)


def test_own_values_survive_json_and_pickle_and_older_json_has_none(answers):
    again = cv.Explanations.from_json(answers.to_json())
    assert (again.own == answers.own).all() and again.to_json() == answers.to_json()
    assert (pickle.loads(pickle.dumps(answers)).own == answers.own).all()
    older = json.loads(answers.to_json())
    del older["own"]
    assert cv.Explanations.from_json(json.dumps(older)).own is None


@pytest.mark.parametrize("own", [3, [[True]], [["yes"] * 5] * 40, [[1] * 5] * 40, {"age": [True]}])
def test_damaged_marks_are_refused(answers, own):
    damaged = json.dumps({**json.loads(answers.to_json()), "own": own})
    with pytest.raises(cv.SchemaError, match=r"Explanations\.from_json"):
        cv.Explanations.from_json(damaged)


def test_own_values_match_anybody_where_people_are_counted(answers):
    table = small_table(200)
    regions, names = answers.regions, answers.schema.names("quasi")
    moved = ~answers.unmoved(names)[answers.found]
    for region, row, count in zip(regions, moved, regions.count(table.frame)):
        assert list(region.cells) == [n for n, m in zip(names, row) if m]
        assert count == region.count(table.frame) if region.cells else count == len(table)
    assert (
        cv.measure.degree_of_privacy(answers, table=table)[answers.found].tolist()
        == regions.count(table.frame).tolist()
    )


def test_own_values_cost_no_certainty(answers):
    loss = cv.measure.ncp(answers, table=small_table(200))
    moved = ~answers.unmoved(answers.schema.names("quasi")).all(axis=1)
    assert (loss[answers.found & ~moved] == 0).all()
    assert loss[answers.found].max() < 1


def test_a_value_that_the_table_never_had_is_asked_about_as_it_is():
    """Coded as unseen it would be taken for the last category."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 60, 80), "city": rng.choice(["a", "z"], 80), "pay": range(80)})
    frame["ok"] = np.where(frame["pay"] > 40, "yes", "no")
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age"])

    def model(rows):
        return np.where((rows["pay"] > 40) & (rows["city"] != "z"), "yes", "no")

    e = cv.CFK(k=4).fit(table, model).explain(pd.DataFrame({"age": [30], "city": ["m"], "pay": [3]}))
    assert e.found.all() and e.counterfactuals["city"].tolist() == ["m"]
    assert cv.measure.pureness(e, model).tolist() == [1.0]
    assert np.isfinite(cv.measure.plausibility(e)).all() and np.isfinite(cv.measure.recourse_cost(e)).all()


def test_linkage_neither_matches_nor_guesses_what_is_the_askers_own():
    """One person of the register fits the moved age; the asker's own illness is not taken for hers."""
    table = small_table(60)
    e = cv.NICE(target="favourable", justified=False).fit(table, small_model).explain(small_table(30, seed=2))
    guessed = cv.attack.Linkage().run(e, table, small_table(30, seed=3))
    assert guessed.members.value > 0
    hers = e.factuals.where(pd.Series(e.found), None)
    own = {"counterfactuals": hers, "own": np.ones(hers.shape, dtype=bool)}  # a value is called her own only if it is
    everything_own = cv.Explanations(**{**e.__dict__, **own})
    silent = cv.attack.Linkage().run(everything_own, table, small_table(30, seed=3))
    assert (silent.members.value, silent.set_sizes.min()) == (0, 60)
    assert cv.attack.Homogeneity().run(everything_own, table, small_table(30, seed=3)).members.value == 0
    assert cv.attack.Shallow(known=1).run(everything_own, table, small_table(30, seed=3)).members.value == 0


def test_a_guess_is_judged_by_what_it_says():
    truth = pd.DataFrame({"a": [1, 1, 1, None], "b": ["x", "x", "x", "x"]}, dtype=object)
    said = pd.DataFrame({"a": [1, UNSAID, 2, UNSAID], "b": [UNSAID, UNSAID, UNSAID, None]}, dtype=object)
    assert right_rows(said, truth).tolist() == [True, False, False, False]


def test_attacks_leave_k_people_of_sparse_answers(seeds):
    for seed in seeds(4, 60):
        k, table, control = 3 + seed % 3, people(seed, 60), people(seed + 500, 120)
        protector = cv.CFK(k=k).fit(table, labels(seed))
        e = protector.explain(control)
        for attack in (cv.attack.Inversion(), cv.attack.Intersection(n_targets=None, repeats=2)):
            assert attack.run(protector, table, control).set_sizes.min(initial=k) >= k
        linked = cv.attack.Linkage().run(e, table, control)
        assert linked.members.value == 0 and linked.set_sizes.min(initial=k) >= k


def test_the_whole_neighbour_behind_an_answer_holds_its_moves():
    table, queries = people(5, 60), people(900, 30).features
    protector = cv.CFK(k=4, amounts="exact").fit(table, labels(5))
    e, whole = protector.explain(queries), protector.disclosed(queries)
    assert whole.own is None and (whole.found == e.found).all()
    for i in np.flatnonzero(e.found):
        assert all(whole[int(i)].cells[n] == cell for n, cell in e[int(i)].changes.items())


# ---------------------------------------------------------------- kernels and their twins


def heom(x, v, scale):
    both = np.isnan(x) & np.isnan(v)
    either = np.isnan(x) ^ np.isnan(v)
    step = np.where(scale > 0, np.abs(x - v) / np.where(scale > 0, scale, 1), x != v)
    return np.where(both, 0.0, np.where(either, 1.0, step))


def drawn(rng):
    q, g, c, d, limits = 4, 5, 40, 4, int(rng.integers(0, 3))
    scale = np.array([2.0, 0.0, 4.0, 0.0])
    private, x = rng.integers(0, 4, (c, d)).astype(float), rng.integers(0, 4, (q, d)).astype(float)
    private[rng.random((c, d)) < 0.1 * (scale > 0)] = np.nan
    x[rng.random((q, d)) < 0.1 * (scale > 0)] = np.nan
    return {
        "gap": rng.integers(0, 3, (q, g)) / 4,
        "apart": rng.random((q, g)) < 0.3,
        "x": x,
        "free": rng.random((q, d)) < 0.5,
        "group": rng.integers(0, g, c),
        "private": private,
        "scale": scale,
        "offered": rng.random((q, 6)) < 0.5,
        "slot": rng.integers(0, 6, (c, limits)),
        "must": rng.random((q, limits)) < 0.3,
    }


def test_the_nearest_candidates_equal_a_plain_sort(seeds):
    for seed in seeds(60, 2_000):
        given = drawn(np.random.default_rng(seed))
        for n in (1, 7, 60):
            found = kernels.nearest_offers(*given.values(), n)
            for i, row in enumerate(found):
                able = []
                for c, g in enumerate(given["group"]):
                    terms = heom(given["x"][i], given["private"][c], given["scale"])
                    offered = given["offered"][i, given["slot"][c]]
                    moves = given["apart"][i, g] | offered.any() | (given["free"][i] & (terms > 0)).any()
                    if moves and offered[given["must"][i]].all():
                        able.append((round(given["gap"][i, g] + terms.sum(), 9), c))
                expected = [c for _, c in sorted(able)[:n]]
                assert row.tolist() == expected + [-1] * (n - len(expected))


def test_distances_to_the_anonymised_table_equal_a_plain_minimum(seeds):
    for seed in seeds(60, 2_000):
        rng = np.random.default_rng(seed)
        scale, pairs, regions = np.array([-1.0, 2.0, 0.0, 1.5, -1.0]), 30, 6
        quasi = scale < 0
        gaps, reach = rng.random((8, regions)).round(2), rng.random(regions).round(2)
        group, private = rng.integers(0, regions, pairs), rng.integers(0, 4, (pairs, 5)).astype(float)
        private[rng.random((pairs, 5)) < 0.1 * (scale > 0)] = np.nan
        x, many = rng.integers(0, 4, (3, 5)).astype(float), rng.integers(0, 6, 3)
        starts = np.concatenate([[0], np.cumsum(many)])
        owner, moved = np.repeat(np.arange(3), many), rng.random((many.sum(), 5)) < 0.4
        points = np.where(moved, rng.integers(0, 8, moved.shape) * 1.0, x[owner])
        found = kernels.pool_distances(starts, x, points, moved, gaps, reach, group, private, scale)
        for p, away in zip(points, found):
            plain = heom(p[None], private, scale)[:, ~quasi].sum(axis=1)
            cells = sum(gaps[int(p[j])][group] for j in np.flatnonzero(quasi))
            assert away == pytest.approx((plain + cells + reach[group]).min())


def test_sets_of_moves_are_added_up():
    rng = np.random.default_rng(0)
    step, name = rng.random((3, 4, 5)), rng.integers(-(2**62), 2**62, (3, 4, 5))
    query, place, moved = rng.integers(0, 3, 50), rng.integers(0, 4, 50), rng.random((50, 5)) < 0.5
    cost, names = kernels.add_up(query, place, moved, step, name)
    np.testing.assert_allclose(cost, np.where(moved, step[query, place], 0).sum(axis=1))
    assert (names == np.where(moved, name[query, place], 0).sum(axis=1)).all()


def test_plausible_answers_take_small_steps_that_bring_them_nearer_to_the_table():
    """Many measures that hardly differ between people: the same answers, and some more features, all in small steps."""
    rng, n = np.random.default_rng(0), 300
    frame = pd.DataFrame({"age": rng.integers(20, 40, n), **{f"x{i}": rng.random(n).round(3) for i in range(4)}})
    frame["ok"] = np.where(frame["x0"] > 0.5, "yes", "no")
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age"])
    made = cv.CFK(k=5, reward="plausibility").fit(table, lambda f: np.where(f["x0"].to_numpy() > 0.5, "yes", "no"))
    queries = table.features[(frame["ok"] == "no").to_numpy()].head(60)
    e, small = made.explain(queries), 0
    for one in e:
        steps = sorted(abs(one.changes[n] - one.factual[n]) for n in one.changes if n != "age")
        beyond = steps[: max(0, len(one.changes) - 2)]
        assert all(step <= 0.06 for step in beyond)  # 0.05 of a range that is a little below one
        small += len(beyond)
    assert e.found.all() and small > 5


# ---------------------------------------------------------------- long answers


def crowd(seed):
    """Eighty people near to the asker who have a little more of five things, and a few far away with much of one."""
    rng = np.random.default_rng(seed)
    near, far, poor = np.ones((80, 5)), np.zeros((6, 5)), np.zeros((20, 5))
    rows = np.concatenate([near, far, poor])
    rows[-1, 0] = rows[-2, 1] = rows[-3, 2] = rows[-4, 3] = rows[-5, 4] = 40.0  # what makes one a small step
    frame = pd.DataFrame(rows, columns=list("abcde"))
    frame["much"] = np.repeat([0.0, 10.0, 0.0], [80, 6, 20])
    frame["noise"] = rng.permutation(len(frame)) / len(frame)
    frame.loc[len(frame) - 1, "noise"] = 100.0
    frame["age"] = rng.permutation(np.repeat([20.0, 20.5, 80.0], [50, 50, 6]))
    model = RichInOneOrAll()
    frame["credit"] = model.predict(frame)
    return cv.Table.from_frame(frame, target="credit", favourable="yes", quasi_identifiers=["age"]), model


class RichInOneOrAll:
    """Yes to whoever has much of one thing, or something of all five."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, rows):
        score = np.where(rows["much"] >= 10, 1.0, (rows[list("abcde")] >= 1).sum(axis=1) / 5 * 0.6)
        return np.stack([1 - score, score], axis=1)

    def predict(self, rows):
        return self.classes_[(self.predict_proba(rows)[:, 1] > 0.5).astype(int)]


def test_who_would_have_to_change_much_gets_a_shorter_answer_from_farther_away(monkeypatch):
    table, model = crowd(0)
    asker = table.features.tail(9).head(1)
    private = cv.CFK(k=3).fit(table, model)
    assert list(private.explain(asker)[0].changes) == ["much"]
    monkeypatch.setattr(moves_search, "LONG", 5)
    assert set(private.explain(asker)[0].changes) == set("abcde")  # the nearest candidates have nothing shorter


def test_shorter_answers_do_not_depend_on_who_of_a_group_owns_what():
    for seed in range(5):
        table, model = crowd(seed)
        askers = table.features.tail(20)
        one = cv.CFK(k=3).fit(table, model)
        other = cv.CFK(k=3).fit(permuted(table, one.search_.row_group_, seed), model)
        assert one.explain(askers).to_text() == other.explain(askers).to_text()


@pytest.mark.parametrize("reward", ["proximity", "plausibility"])
def test_rewards_that_spend_features_on_something_else_are_left_alone(reward, monkeypatch):
    table, model = crowd(1)
    private, askers = cv.CFK(k=3, reward=reward).fit(table, model), table.features.tail(20)
    before = private.explain(askers).to_text()
    monkeypatch.setattr(moves_search, "LONG", 99)
    assert private.explain(askers).to_text() == before
