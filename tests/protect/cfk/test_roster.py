"""Tables that grow: what is promised when people join, leave and change, and what never reaches an answer."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.protect.cfk.groups.roster import Roster
from countervail.testing import small_model, small_table

pytestmark = pytest.mark.usefixtures("quick_groups")

ROWS = small_table(8, seed=5).features
LEVELS = ["low", "mid", "high"]


def people(seed, n=40, start=0):
    """People in columns whose domains nobody has declared."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"id": [f"p{start + i}" for i in range(n)], "age": rng.integers(20, 30, n)})
    frame["city"], frame["pay"] = rng.choice(["a", "b"], n), rng.integers(0, 9, n)
    frame["level"] = pd.Categorical(rng.choice(LEVELS, n), LEVELS, ordered=True)
    frame["ill"], frame["ok"] = rng.choice(["x", "y", "z"], n), rng.choice(["no", "yes"], n)
    frame.loc[:1, "ok"] = ["no", "yes"]
    return frame


PRIVATE = ["pay", "level", "ill", "ok"]


def table(frame):
    roles = {"identifiers": ["id"], "quasi_identifiers": ["age", "city"], "sensitive": ["ill"]}
    return cv.Table.from_frame(frame.reset_index(drop=True), target="ok", favourable="yes", **roles)


def model(frame):
    good = frame["pay"].to_numpy(float) + 3 * (frame["level"].astype(object) == "high").to_numpy() > 4
    return np.where(good, "yes", "no")


def joined(*frames):
    both = pd.concat(frames, ignore_index=True)
    levels = [v for v in [*LEVELS, "top"] if v in set(both["level"])]
    return both.assign(level=pd.Categorical(both["level"].astype(object), levels, ordered=True))


def fit(frame, previous=None, k=4, **settings):
    """A fitted protector and its table, which must be kept as long as its rows are asked about."""
    kept = table(frame)
    return cv.CFK(k=k, previous=previous, **settings).fit(kept, model), kept


def told(protector, asked):
    return protector.explain(asked.drop(columns=["id", "ok"])).to_json()


def region_of_people(protector):
    texts = protector.search_.sealed_.sealed.regions.text()
    return [texts[g] if g >= 0 else None for g in protector.search_.row_group_]


# ---------------------------------------------------------------- who stays, who waits


def test_nothing_changed_nothing_changes():
    frame, asked = people(7, 60), people(11)
    one, kept = fit(frame)
    two, again = fit(frame, one.roster_)
    assert told(one, asked) == told(two, asked).replace('"previous": "Roster"', '"previous": null')
    assert one.search_.sealed_.digest == two.search_.sealed_.digest
    assert region_of_people(one) == region_of_people(two)
    assert len(kept) == len(again)


def test_a_group_answers_on_only_if_all_of_its_people_are_there():
    frame = people(7, 60)
    one, kept = fit(frame)
    before, group = region_of_people(one), one.search_.row_group_
    for gone in range(0, 60, 9):
        two, rest = fit(frame.drop(index=gone), one.roster_)
        hers = np.delete(group == group[gone], gone)
        after = region_of_people(two)
        assert [r is None for r in after] == hers.tolist()
        assert [r for r in after if r is not None] == [r for r, h in zip(np.delete(before, gone), hers) if not h]
        assert len(kept) > len(rest)


@pytest.mark.parametrize("change", [{"pay": 8}, {"ill": "x"}, {"level": "high"}, {"age": 77}, {"city": "b"}], ids=str)
def test_a_group_in_which_somebody_changed_answers_no_more_and_she_is_not_grouped_again(change):
    frame = people(3, 60).assign(pay=lambda f: f["pay"] % 8)
    frame["ill"], frame["level"], frame["city"] = "y", pd.Categorical(["low"] * 60, LEVELS, ordered=True), "a"
    one, kept = fit(frame)
    group = one.search_.row_group_
    changed = frame.copy()
    for name, value in change.items():
        changed.loc[5, name] = value
    two, later = fit(changed, one.roster_)
    assert (two.search_.row_group_ == -1).tolist() == (group == group[5]).tolist()
    three, last = fit(frame, two.roster_)  # she is as she was: her group stays closed, nobody of it is new
    assert (three.search_.row_group_ == -1).tolist() == (group == group[5]).tolist()
    assert len(kept) == len(later) == len(last)


def test_members_who_only_trade_private_rows_keep_their_group():
    """Who of a group owns what is not looked at, not even to tell that it changed."""
    frame = people(3, 60)
    one, kept = fit(frame)
    rows = np.flatnonzero(one.search_.row_group_ == 0)
    source = np.arange(60)
    source[rows] = np.roll(rows, 1)
    traded = frame.assign(**{n: frame[n].array.take(source) for n in PRIVATE})
    two, later = fit(traded, one.roster_)
    assert two.search_.sealed_.digest == one.search_.sealed_.digest
    assert len(kept) == len(later)


def test_newcomers_form_groups_of_their_own():
    frame, fresh = people(7, 60), people(9, 20, start=100)
    one, kept = fit(frame)
    two, both = fit(joined(frame, fresh), one.roster_)
    assert two.roster_.version == 2
    assert region_of_people(two)[:60] == region_of_people(one)
    old, new = set(two.search_.row_group_[:60]), set(two.search_.row_group_[60:])
    assert not old & new and -1 not in new
    assert np.bincount(two.search_.row_group_)[sorted(new)].min() >= 4
    assert len(kept) < len(both)


def test_fewer_than_k_newcomers_wait_and_join_when_there_are_enough():
    frame = people(7, 60)
    one, kept = fit(frame)
    two, three_more = fit(joined(frame, people(9, 3, start=100)), one.roster_)
    assert (two.search_.row_group_[60:] == -1).all()
    three, six_more = fit(joined(frame, people(9, 3, start=100), people(10, 3, start=200)), two.roster_)
    assert (three.search_.row_group_[60:] >= 0).all()
    assert len(kept) < len(three_more) < len(six_more)


def test_a_new_level_shifts_nobodys_rank():
    frame = people(7, 60)
    one, kept = fit(frame)
    fresh = people(9, 8, start=100).astype({"level": object})
    fresh["level"] = ["lowest"] * 4 + ["top"] * 4
    both = pd.concat([frame.astype({"level": object}), fresh], ignore_index=True)
    both["level"] = pd.Categorical(both["level"], ["lowest", *LEVELS, "top"], ordered=True)
    two, later = fit(both, one.roster_)
    assert (two.search_.row_group_[60:] >= 0).all()
    assert two.search_.sealed_.schema["level"].levels == (*LEVELS, "lowest", "top")
    assert two.explain(frame.drop(columns=["id", "ok"])).found.any()
    assert len(kept) < len(later)


def test_somebody_with_the_values_of_one_who_left_is_somebody_else():
    frame = people(7, 60)
    one, kept = fit(frame)
    replaced = frame.copy()
    replaced.loc[5, "id"] = "somebody else"
    two, later = fit(replaced, one.roster_)
    group = one.search_.row_group_
    assert (two.search_.row_group_ == -1).tolist() == (group == group[5]).tolist()
    assert len(kept) == len(later)


# ---------------------------------------------------------------- two worlds


NEWS = [{"age": 99}, {"city": "new"}, {"ill": "rare"}, {"pay": 10**6}, {"ok": "a third label"}, {"level": "top"}]


@pytest.mark.parametrize("settings", [{}, {"t": 0.9, "sensitive": "ill"}, {"l": 2, "sensitive": "ill"}], ids=str)
@pytest.mark.parametrize("news", NEWS, ids=str)
def test_join_somebody_who_waits_reaches_no_answer(settings, news):
    """One newcomer is too few for a group: whatever she is like, the sealed table is that of before."""
    frame = people(0, 80)
    one, kept = fit(frame, **settings)
    newcomer = frame.iloc[[0]].assign(id="newcomer").astype({"level": object}).assign(**news)
    two, later = fit(joined(frame, newcomer), one.roster_, **settings)
    assert two.search_.row_group_[-1] == -1
    assert two.search_.sealed_.digest == one.search_.sealed_.digest
    assert told(one, people(1, 25)) == told(two, people(1, 25)).replace('"previous": "Roster"', '"previous": null')
    assert len(kept) < len(later)


def permuted(frame, group, seed, ids):
    """Private rows permuted within groups, the same way for the same people in every table."""
    rng = np.random.default_rng(seed)
    owner = dict(zip(ids, ids))
    for g in np.unique(group):
        rows = [i for i, own in zip(ids, group) if own == g]
        owner |= dict(zip(rows, [rows[j] for j in rng.permutation(len(rows))]))
    at = {i: place for place, i in enumerate(frame["id"])}
    source = [at.get(owner.get(i, i), at[i]) for i in frame["id"]]
    return frame.assign(**{n: frame[n].array.take(source) for n in PRIVATE})


@pytest.mark.parametrize(
    "settings", [{}, {"search": cv.protect.GroupSearch(grouping="mondrian")}, {"l": 2, "sensitive": "ill"}], ids=str
)
def test_swap_private_rows_permuted_for_good_change_no_answer_of_any_fit(settings, seeds):
    """Three fits: some leave, some change, some join. Who of a group owns what shows in none of them."""
    for seed in seeds(6, 300):
        rng = np.random.default_rng(seed)
        first, asked = people(seed, 40), people(seed + 5000, 8)
        # Merging for l reads groups as wholes: the promise is about the groups before it.
        one, kept = fit(first, **{n: v for n, v in settings.items() if n == "search"})
        group, ids = one.search_.row_group_, first["id"].tolist()
        stayed = first.drop(index=rng.permutation(40)[:3])
        # A whole group changes its private rows: in both worlds the same people do.
        hers = [i for i, g in zip(ids, group) if g == group[7]]
        later = stayed.assign(pay=np.where(stayed["id"].isin(hers), 8, stayed["pay"]))
        second = joined(later, people(seed + 1000, 12, start=100))
        third = joined(second.iloc[2:], people(seed + 2000, 6, start=200))
        worlds = []
        for swap in (False, True):
            out, previous, alive = [], None, []
            for frame in (first, second, third):
                world = permuted(frame, group, seed, ids) if swap else frame
                made, held = fit(world, previous, **settings)
                alive.append(held)
                previous = made.roster_
                out.append((made.search_.sealed_.digest, told(made, asked)))
            worlds.append(out)
        assert worlds[0] == worlds[1]
        assert len(kept) == 40


def test_leave_who_left_and_who_waits_reach_no_scale_level_or_label(seeds):
    """Whatever those without a group were like, the sealed table is the same."""
    for seed in seeds(6, 200):
        frame = people(seed, 40)
        one, kept = fit(frame)
        group = one.search_.row_group_
        gone = np.flatnonzero(group == group[0])[:1]
        left = frame.drop(index=gone)
        others = np.flatnonzero((group == group[0]) & (np.arange(40) != gone[0]))
        odd = left.copy()
        odd.loc[others, "pay"], odd.loc[others, "ill"], odd.loc[others, "ok"] = 10**6, "rare", "no"
        two, a = fit(left, one.roster_)
        three, b = fit(odd, one.roster_)
        assert two.search_.sealed_.digest == three.search_.sealed_.digest
        assert told(two, people(seed + 1)) == told(three, people(seed + 1))
        assert len(a) == len(b) < len(kept)


def test_newcomers_are_not_compared_with_people_who_left():
    """One who left learns nothing from who waits: only identifiers are looked at."""
    frame = people(7, 60)
    one, kept = fit(frame)
    fresh = people(9, 8, start=100)
    alike = fresh.copy()
    for name in ("age", "city", *PRIVATE):
        alike[name] = frame[name].iloc[:8].array
    for newcomers in (fresh, alike):
        two, later = fit(joined(frame.iloc[8:], newcomers), one.roster_)
        assert (two.search_.row_group_[-8:] >= 0).all()
        assert len(later) == len(kept)


# ---------------------------------------------------------------- what is refused


def test_without_identifiers_there_is_no_second_fit():
    frame = people(0)
    bare = cv.Table.from_frame(
        frame.drop(columns="id"), target="ok", favourable="yes", quasi_identifiers=["age", "city"]
    )
    first = cv.CFK(k=4).fit(bare, model)
    with pytest.raises(cv.SchemaError, match="identifiers in a later fit, and the table declares none"):
        _ = first.roster_
    one, kept = fit(frame)
    with pytest.raises(cv.SchemaError, match="recognises people by the identifiers"):
        cv.CFK(k=4, previous=one.roster_).fit(bare, model)
    assert len(kept) == len(bare)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([None] + [f"p{i}" for i in range(1, 40)], "complete"),
        (["p0", *(f"p{i}" for i in range(39))], "tell all rows apart"),
    ],
)
def test_identifiers_must_be_complete_and_tell_rows_apart(ids, message):
    made, kept = fit(people(0).assign(id=ids))
    with pytest.raises(cv.SchemaError, match=message):
        _ = made.roster_
    assert len(kept) == 40


def test_recoded_identifiers_are_refused():
    one, kept = fit(people(0))
    with pytest.raises(cv.SchemaError, match="Fewer than half of the people"):
        fit(people(0).assign(id=[f"q{i}" for i in range(40)]), one.roster_)
    assert len(kept) == 40


def test_other_columns_types_and_k_are_refused():
    frame = people(0)
    one, kept = fit(frame)
    roster = one.roster_
    with pytest.raises(cv.SchemaError, match="would intersect"):
        cv.CFK(k=4, previous=roster).fit(table(frame).with_roles(quasi=["age"]), model)
    with pytest.raises(cv.SchemaError, match="columns of a table that is fitted again must stay"):
        cv.CFK(k=4, previous=roster).fit(table(frame.assign(more=1)), model)
    with pytest.raises(cv.SchemaError, match="'pay' was numeric"):
        cv.CFK(k=4, previous=roster).fit(table(frame.assign(pay=frame["pay"].astype(str))), model)
    with pytest.raises(ValueError, match="'previous' parameter of CFK must be formed with a k of at least 5"):
        fit(frame, roster, k=5)
    with pytest.raises(ValueError, match="'previous' parameter of CFK must be the `roster_` of an earlier fit"):
        fit(frame, kept)
    with pytest.raises(ValueError, match="'previous' parameter of CFK must be None unless search='groups'"):
        fit(frame, roster, search="exact")


def test_another_dtype_of_numbers_does_not_make_people_strangers():
    frame = people(7, 60)
    one, kept = fit(frame)
    two, same = fit(frame.astype({"pay": float, "age": "Int64"}), one.roster_)
    assert two.search_.sealed_.digest == one.search_.sealed_.digest
    assert len(kept) == len(same)


# ---------------------------------------------------------------- the file


@pytest.fixture(scope="module")
def stored():
    kept = table(people(0))
    return json.loads(cv.CFK(k=4).fit(kept, model).roster_.to_json())


def test_a_roster_survives_its_file_which_is_for_its_owner_only(tmp_path):
    frame = people(7, 60)
    one, kept = fit(frame)
    one.roster_.write(tmp_path / "people.roster.json")
    assert (tmp_path / "people.roster.json").stat().st_mode & 0o077 == 0
    again = Roster.read(tmp_path / "people.roster.json")
    two, same = fit(frame, again)
    assert region_of_people(two) == region_of_people(one) and len(kept) == len(same)
    assert again.table.digest == one.search_.sealed_.digest


def test_a_roster_keeps_no_identifier_and_does_not_print_its_key(stored):
    text = json.dumps(stored)
    assert not any(f'"p{i}"' in text for i in range(40))
    roster = Roster.from_json(text)
    assert roster.key not in repr(roster) + repr(cv.CFK(k=4, previous=roster))


def test_a_roster_is_read_back(stored):
    assert json.loads(Roster.from_json(json.dumps(stored)).to_json()) == stored


@pytest.mark.parametrize("text", ["not json", "", "[]", "3", "null", None])
def test_a_roster_is_read_from_a_json_object_only(text):
    with pytest.raises(cv.SchemaError, match=r"'text' given to Roster.from_json is no JSON object.*Roster.to_json"):
        Roster.from_json(text)


def test_groups_of_earlier_formats_are_refused():
    with pytest.raises(cv.SchemaError, match="formats 1 or 2"):
        Roster.from_json(json.dumps({"kind": "groups", "format": 2}))
    with pytest.raises(cv.SchemaError, match="another format"):
        Roster.from_json(json.dumps({"kind": "roster", "format": 9}))
    with pytest.raises(cv.SchemaError, match="does not hold a roster"):
        Roster.from_json(json.dumps({"kind": "release"}))


@pytest.mark.parametrize(
    "name", ["k", "version", "table", "identifiers", "key", "people", "group", "there", "merged", "members"]
)
def test_a_roster_that_lacks_a_part_is_refused(stored, name):
    with pytest.raises(cv.SchemaError, match=r"given to Roster\.from_json is damaged"):
        Roster.from_json(json.dumps({k: v for k, v in stored.items() if k != name}))


@pytest.mark.parametrize(
    "change",
    [
        lambda s: {"group": [len(s["members"]), *s["group"][1:]]},
        lambda s: {"group": [-2, *s["group"][1:]]},
        lambda s: {"group": [[g] for g in s["group"]]},
        lambda s: {"people": s["people"][:-1]},
        lambda s: {"people": ["-1", *s["people"][1:]]},
        lambda s: {"people": ["Xanthippe", *s["people"][1:]]},
        lambda s: {"members": s["members"][1:]},
        lambda s: {"there": [1] * len(s["group"])},
        lambda s: {"merged": ["many", None, None]},
        lambda s: {"merged": [None]},
        lambda s: {"k": "many"},
        lambda s: {"key": "short"},
        lambda s: {"table": 3},
        lambda s: {"table": {**s["table"], "scale": {"age": "Xanthippe"}}},
        lambda s: {"table": {**s["table"], "reach": []}},
        lambda s: {"table": {**s["table"], "register": {"age": [3, 1]}}},
        lambda s: {"table": {**s["table"], "sealed": {**s["table"]["sealed"], "groups": [0]}}},
        lambda s: {"table": {**s["table"], "sealed": {**s["table"]["sealed"], "others": {}}}},
    ],
)
def test_a_roster_that_does_not_fit_together_is_refused_without_its_values(stored, change):
    changed = {**stored, **change(stored)}
    with pytest.raises(cv.SchemaError, match=r"is damaged.*Roster.to_json\(\) wrote, unchanged") as caught:
        Roster.from_json(json.dumps(changed))
    assert "Xanthippe" not in str(caught.value)


def test_rosters_that_read_alike_are_two_parameters():
    kept = small_table(60)
    first = cv.CFK(4).fit(kept, small_model).roster_
    refit = cv.CFK(4, previous=first).fit(kept, small_model)
    refit.set_params(previous=Roster.from_json(first.to_json()))
    with pytest.raises(cv.SchemaError, match="have changed since fit"):
        refit.explain(ROWS)


def test_two_groupings_of_the_same_people_intersect_unless_the_roster_is_kept():
    """What the roster is for: without it, ten rows less leave fewer than k people."""
    quasi = ["age", "city", "level"]
    debts = np.random.default_rng(0).permutation(300) / 100
    kept = table(people(7, 100).assign(debt=debts[:100])).with_roles(quasi=quasi)
    queries = table(people(11, 200).assign(debt=debts[100:])).with_roles(quasi=quasi)
    first = cv.CFK(k=8).fit(kept, model)
    fewer = kept.take(range(90))
    careless = cv.CFK(k=8).fit(fewer, model)
    careful = cv.CFK(k=8, previous=first.roster_).fit(fewer, model)
    attack = cv.attack.Intersection(n_targets=None)
    assert attack.between(first, careful, kept, queries).set_sizes.min() >= 8
    assert attack.between(first, careless, kept, queries).set_sizes.min() < 8


# ---------------------------------------------------------------- what a reviewer broke


def declared(frame, cities):
    roles = {"identifiers": ["id"], "quasi_identifiers": ["age", "city"], "sensitive": ["ill"]}
    return cv.Table.from_frame(frame, target="ok", favourable="yes", domains={"city": cities}, **roles)


def test_a_domain_that_was_declared_otherwise_is_refused():
    """Newcomers in a city that the first declaration did not have were sealed as people of another one."""
    kept = declared(people(0), ["a", "b"])
    roster = cv.CFK(k=4).fit(kept, model).roster_
    fresh = people(9, 8, start=100).assign(city="c")
    wider = declared(joined(people(0), fresh), ["a", "b", "c"])
    with pytest.raises(cv.SchemaError, match="declared domain of column 'city' is another one"):
        cv.CFK(k=4, previous=roster).fit(wider, model)


def test_l_and_t_are_not_promised_over_groups_that_were_not_merged_for_them():
    one, kept = fit(people(0))
    for asked in ({"l": 2}, {"t": 0.5}):
        with pytest.raises(ValueError, match="'previous' parameter of CFK must be formed with the same l, t"):
            fit(people(0), one.roster_, sensitive="ill", **asked)
    two, again = fit(people(0), l=2, sensitive="ill")
    three, last = fit(people(0), two.roster_, l=2, sensitive="ill")
    assert three.search_.sealed_.digest == two.search_.sealed_.digest
    assert len(kept) == len(again) == len(last)


def test_l_of_the_target_is_counted_anew_when_labels_have_changed():
    """Labels are not sealed, so groups went on as they were while everybody's label became the same."""
    frame = people(0)
    one, kept = fit(frame, l=2, sensitive="ok")
    same = frame.assign(ok=["yes", *["no"] * (len(frame) - 1)])
    with pytest.raises(cv.SchemaError, match="do not keep l or t together"):
        fit(same, one.roster_, l=2, sensitive="ok")
    two, again = fit(same, one.roster_)
    assert two.guarantee() == cv.KAnonymity(4, against="algorithm") and len(kept) == len(again)


def test_t_is_counted_among_everybody_not_among_newcomers():
    """Groups of newcomers who are all alike were as close as can be to each other, and far from all people."""
    one, kept = fit(people(0), t=0.5, sensitive="ill")
    alike = people(9, 12, start=100).assign(ill="new", pay=8)
    with pytest.raises(cv.SchemaError, match="do not keep l or t together"):
        fit(joined(people(0), alike), one.roster_, t=0.5, sensitive="ill")
    two, again = fit(people(0), one.roster_, t=0.5, sensitive="ill")
    assert two.search_.sealed_.digest == one.search_.sealed_.digest and len(kept) == len(again)


def test_what_may_change_is_what_the_schema_says_now():
    """The first schema stayed in force: people were asked for what the second one rules out."""
    frame = people(7, 60)
    one, kept = fit(frame)
    asked = people(11).drop(columns=["id", "ok"]).assign(pay=0, level=LEVELS[0])
    asked["level"] = pd.Categorical(asked["level"], LEVELS, ordered=True)
    now = kept.schema.with_column("level", actionable="no").with_column("pay", range=(0.0, 6.0))
    later = cv.Table(kept.frame, now)
    for fresh in (frame.iloc[:0], people(9, 8, start=100)):
        later = cv.Table(joined(frame, fresh), now)
        answers = cv.CFK(k=4, previous=one.roster_).fit(later, model).explain(asked)
        told_all = answers.counterfactuals[answers.found]
        assert answers.found.any() and (told_all["level"] == "low").all()
        assert (told_all["pay"].astype(float) <= 6).all()


def test_steps_ends_and_forbidden_changes_are_what_the_schema_says_now():
    """Those of the first schema stayed in force: none, so people were told what the second one rules out."""
    frame = people(7, 60)
    one, kept = fit(frame)
    asked = people(11).drop(columns=["id", "ok"]).assign(pay=1, level=LEVELS[0])
    asked["level"] = pd.Categorical(asked["level"], LEVELS, ordered=True)
    now = kept.schema.with_column("level", forbidden=(("low", "high"),))
    now = now.with_column("pay", step=4.0, actionable="up", until=8.0)
    for fresh in (frame.iloc[:0], people(9, 8, start=100)):
        later = cv.Table(joined(frame, fresh), now)
        told_all = cv.CFK(k=4, previous=one.roster_).fit(later, model).explain(asked)
        assert told_all.found.all()
        assert (told_all.counterfactuals["level"] != "high").all()
        assert (told_all.counterfactuals["pay"].astype(float) == 8.0).all()
    ended = cv.Table(frame, now.with_column("pay", until=4.0))
    assert not cv.CFK(k=4, previous=one.roster_).fit(ended, model).explain(asked).found.any()


def test_which_decision_is_favourable_is_what_the_schema_says_now():
    frame = people(7, 60)
    one, kept = fit(frame)
    later = cv.Table(kept.frame, replace(kept.schema, favourable=("no",)))
    answers = cv.CFK(k=4, previous=one.roster_).fit(later, model).explain(people(11).drop(columns=["id", "ok"]))
    assert set(answers.after[answers.found]) == {"no"}


def test_the_model_is_not_asked_about_somebody_who_waits():
    asked = []

    def listening(frame):
        asked.append(frame.astype(str))
        return model(frame)

    frame = people(7, 60)
    kept = table(frame)
    roster = cv.CFK(k=4).fit(kept, listening).roster_
    newcomer = frame.iloc[[0]].assign(id="newcomer", ill="aaa-secret", pay=-77)
    grown = table(joined(frame, newcomer))
    asked.clear()
    cv.CFK(k=4, previous=roster).fit(grown, listening)
    assert asked and not any("aaa-secret" in f.to_numpy() or "-77.0" in f.to_numpy() for f in asked)


def test_a_roster_is_taken_with_the_parameters_of_its_fit():
    one, kept = fit(people(7, 60))
    two, later = fit(people(7, 60).iloc[3:], one.roster_)
    two.previous = None
    with pytest.raises(cv.SchemaError, match="have changed since fit"):
        _ = two.roster_
    assert len(kept) > len(later)


def test_recoded_identifiers_are_noticed_when_no_group_is_left():
    frame = people(7, 40)
    one, kept = fit(frame)
    two, later = fit(frame.assign(pay=frame["pay"] + 1).pipe(lambda f: joined(f, people(9, 8, start=100))), one.roster_)
    recoded = joined(frame, people(9, 8, start=100)).assign(id=[f"q{i}" for i in range(48)])
    with pytest.raises(cv.SchemaError, match="Fewer than half of the people of the table before"):
        fit(recoded, two.roster_)
    assert len(kept) < len(later)


def test_without_any_group_left_there_is_nothing_to_fit():
    frame = people(7, 40)
    one, kept = fit(frame)
    with pytest.raises(cv.SchemaError, match="nobody to answer from"):
        fit(frame.assign(pay=frame["pay"] + 1), one.roster_)
    assert len(kept) == 40


def test_newcomers_may_have_holes_where_nobody_had_any():
    frame = people(7, 40)
    roles = {"identifiers": ["id"], "quasi_identifiers": ["age", "level"]}

    def made(f):
        return cv.Table.from_frame(f, target="ok", favourable="yes", **roles)

    kept = made(frame)
    roster = cv.CFK(k=4).fit(kept, model).roster_
    fresh = people(9, 8, start=100)
    fresh.loc[:3, "level"] = None
    grown = made(joined(frame, fresh))
    two = cv.CFK(k=4, previous=roster).fit(grown, model)
    assert (two.search_.row_group_[40:] >= 0).all()


def test_a_pickle_holds_neither_roster_nor_explainer():
    frame = people(7, 40)
    one, kept = fit(frame)
    explainer = cv.NICE(justified=False).fit(kept, model)
    two, later = fit(frame, one.roster_, explainer=explainer)
    text = pickle.dumps(two)
    assert not any(f"p{i}".encode() in text for i in range(10, 40))
    again = pickle.loads(text)
    assert again.previous is None and again.explainer is None
    asked = people(3, 5).drop(columns=["id", "ok"])
    assert again.explain(asked).to_text() == two.explain(asked).to_text()
    two.k = 3
    with pytest.raises(cv.SchemaError, match="have changed since fit"):
        pickle.loads(pickle.dumps(two)).explain(asked)
    assert len(later) == 40
