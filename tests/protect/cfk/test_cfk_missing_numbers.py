"""Numbers that are missing: a value of its own in distances, in regions and in words, where the model takes it."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import countervail as cv
from countervail.core.encode import Encoder
from countervail.core.errors import SchemaError
from countervail.core.sealed import canonical_table
from countervail.protect.cfk.groups.grouping import boxes_of
from countervail.protect.cfk.space import Space

pytestmark = pytest.mark.usefixtures("quick_groups")

QUASI = ["age", "city"]
REWARDS = ["sparsity", "proximity", "plausibility", "typical", "none"]


def people(seed, n=30):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 30, n).astype(float),
            "city": rng.choice(["a", "b"], n),
            "pay": rng.integers(0, 6, n).astype(float),
            "debt": rng.integers(0, 4, n) / 2,
        }
    )
    for name in ("age", "pay"):
        frame.loc[rng.random(n) < 0.25, name] = np.nan
    frame["ok"] = rng.choice(["no", "yes"], n)
    frame.loc[:1, "ok"] = ["no", "yes"]
    return frame


def table(frame):
    return cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=QUASI)


def model(frame):
    """Who does not say what she earns is thought to earn 3.5; of an unknown age she is taken to be old."""
    good = frame["pay"].fillna(3.5) + ((frame["age"] > 26) | frame["age"].isna()) > 3
    return np.where(good, "yes", "no")


def asked(seed):
    return people(seed + 9_000, 8).drop(columns="ok")


def values_of(cell, known):
    """All that a cell stands for, in plain Python."""
    parts = cell if isinstance(cell, frozenset) else [cell]
    inside = []
    for part in parts:
        if isinstance(part, pd.Interval):
            inside += [v for v in known if part.left <= v <= part.right]
        else:
            inside.append(np.nan if pd.isna(part) else part)
    return inside


@pytest.mark.parametrize("reward", REWARDS)
def test_every_value_of_every_cell_keeps_the_decision(reward, seeds):
    said = 0
    for seed in seeds(6, 150):
        frame = people(seed)
        e = cv.CFK(k=3, reward=reward).fit(table(frame), model).explain(asked(seed))
        known = {n: sorted(frame[n].dropna().unique()) for n in ("age", "pay", "debt")}
        for i in np.flatnonzero(e.found):
            cells = e.counterfactuals.iloc[i]
            options = [values_of(cells[n], known.get(n, ())) for n in cells.index]
            rows = pd.DataFrame(list(itertools.product(*options)), columns=list(cells.index))
            assert (model(rows) == "yes").all()
            said += any(pd.isna(c) or (isinstance(c, frozenset) and None in c) for c in cells)
        assert e.guarantee.refute(e, table(frame)) is None
    assert said


@pytest.mark.parametrize("reward", REWARDS)
def test_who_of_a_group_owns_what_changes_nothing(reward, seeds):
    for seed in seeds(4, 250):
        frame, rng = people(seed), np.random.default_rng(seed)
        mine = table(frame)
        protector = cv.CFK(k=3, reward=reward).fit(mine, model)
        group, source = protector.search_.row_group_, np.arange(len(frame))
        for g in np.unique(group):
            rows = np.flatnonzero(group == g)
            source[rows] = rng.permutation(rows)
        other = frame.assign(**{n: frame[n].array.take(source) for n in ("pay", "debt", "ok")})
        twin = cv.CFK(k=3, reward=reward).fit(table(other.iloc[rng.permutation(len(other))]), model)
        assert twin.explain(asked(seed)).to_json() == protector.explain(asked(seed)).to_json()


def test_a_saved_protector_answers_alike(tmp_path):
    mine = table(people(1))
    protector = cv.CFK(k=3).fit(mine, model)
    protector.save(tmp_path / "saved.json")
    loaded = cv.load_protector(tmp_path / "saved.json", model)
    assert loaded.explain(asked(1)).to_json() == protector.explain(asked(1)).to_json()


def test_groups_of_numbers_have_ends_and_missing_ones_are_told():
    frame = pd.DataFrame({"age": [20.0, 22.0, np.nan, np.nan], "ok": ["no", "yes", "no", "yes"]})
    clean = canonical_table(cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age"]))
    encoder = Encoder.fit(clean)
    space = Space.fit(clean, encoder, encoder.encode(clean.features), None, "test")
    together, apart = (space.regions(boxes_of(space, np.array(g))) for g in ([0, 0, 0, 0], [0, 0, 1, 1]))
    assert together.text() == ["age {20-22, missing}"]
    assert apart.text() == ["age 20-22", "age missing"]


def test_whoever_says_nothing_hides_with_others_who_do_not():
    frame = people(3, 40)
    regions = cv.CFK(k=3).fit(mine := table(frame), model).search_.sealed_.sealed.regions
    holes = np.asarray(regions.axes[0].holes)
    assert holes.any() and not holes.all() and np.isnan(regions.axes[0].low[holes]).any()
    assert len(mine) == 40


def test_a_cell_of_numbers_or_none_costs_a_whole_column():
    mine = table(people(0))
    mixed = cv.core.region.Regions.from_cells(
        [{"age": frozenset([pd.Interval(20, 21, closed="both"), None])}], mine.schema
    )
    assert cv.core.loss.ncp(mixed, mine).tolist() == [1.0]


def test_missing_numbers_are_said_in_words():
    frame = people(2)
    rich = frame.assign(pay=5.0)  # nothing but a missing age can be moved to
    rich.loc[0, "pay"] = 0.0

    def silent(rows):
        return np.where(rows["age"].isna(), "yes", "no")

    e = cv.CFK(k=3).fit(table(rich), silent).explain(asked(2))
    assert e.found.any()
    assert all("age were not stated" in x.sentence for x in e if x.found)


def test_a_range_keeps_answers_from_asking_for_silence():
    def silent(rows):
        return np.where(rows["age"].isna(), "yes", "no")

    e = cv.CFK(k=3, ranges={"age": (18, 99)}).fit(table(people(2)), silent).explain(asked(2))
    assert not e.found.any()


@pytest.mark.parametrize("search", ["exact", "grasp"])
def test_regions_around_rows_take_missing_private_numbers_and_refuse_others(search):
    frame = people(4)
    whole = frame.assign(age=frame["age"].fillna(25.0))
    e = cv.CFK(k=3, search=search).fit(table(whole), model).explain(asked(4))
    assert e.found.any()
    with pytest.raises(SchemaError, match=r"\['age'\]. Impute or drop them, or use search='groups'"):
        cv.CFK(k=3, search=search).fit(table(frame), model)


def test_a_model_that_needs_numbers_is_not_given_missing_ones():
    frame = people(5)
    numbers = ["age", "pay", "debt"]
    fitted = LogisticRegression().fit(frame[numbers].fillna(0), frame["ok"])

    def needs_numbers(rows):
        return fitted.predict(rows[numbers])

    with pytest.raises(SchemaError, match=r"'table' given to CFK .* \['age', 'pay'\]"):
        cv.CFK(k=3).fit(table(frame), needs_numbers)
    whole = frame.fillna({"age": 25.0, "pay": 1.0})
    protector = cv.CFK(k=3).fit(table(whole), needs_numbers)
    with pytest.raises(SchemaError, match=r"'rows' given to CFK"):
        protector.explain(asked(5))


def test_gradient_boosting_is_explained_with_the_holes_of_its_training_data():
    t = cv.load("german_credit")
    rng = np.random.default_rng(0)
    frame = t.frame[["duration", "credit_amount", "age", "class"]].astype(
        {"duration": float, "credit_amount": float, "age": float}
    )
    for name in ("duration", "age"):
        frame.loc[rng.random(len(frame)) < 0.2, name] = np.nan
    mine = cv.Table.from_frame(frame, target="class", favourable="good", quasi_identifiers=["age"])
    train, test = mine.split(random_state=0)
    boosted = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(train.features, train.target)
    e = cv.CFK(k=10).fit(train, boosted).explain(test)
    refused = boosted.predict(test.features) != "good"
    assert refused.any() and e.found[refused].all()
    left = cv.attack.Inversion(n_targets=20).run(cv.CFK(k=10).fit(train, boosted), train, control=test)
    assert left.set_sizes.min() >= 10


@pytest.mark.parametrize("attack", [cv.attack.Linkage(), cv.attack.Intersection(), cv.attack.Inversion()])
def test_attacks_say_that_people_come_as_tables(attack):
    mine = table(people(6))
    protector = cv.CFK(k=3).fit(mine, model)
    given = protector.explain(asked(6)) if isinstance(attack, cv.attack.Linkage) else protector
    with pytest.raises(cv.ParameterError, match=r"'control'.*Table"):
        attack.run(given, mine, control=asked(6))
