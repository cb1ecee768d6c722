"""CF-K against the papers' worked example, an independent brute force, and its own promises."""

import json
import subprocess
import sys
from functools import partial
from itertools import chain, combinations, product

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.region import Regions
from countervail.data import REGISTERED
from countervail.model import train_forest
from countervail.protect import ExactSearch, GraspSearch
from countervail.protect.cfk.exact import ncp_band
from countervail.testing import small_model, small_table

exact = partial(cv.CFK, search="exact", reward="none")
CITIES, LEVELS = ("a", "b", "c"), ("low", "mid", "high")


@pytest.fixture(scope="module")
def lisa():
    # Specification: toy table of Goethals et al., k=3, GRASP with alpha=1 and one iteration.
    protector = cv.CFK(k=3, search=GraspSearch(alpha=1, iterations=1), reward="none")
    return protector.fit(cv.load("toy_credit"), cv.data.toy_credit_model).explain(cv.data.toy_credit_query())


def test_the_worked_example_comes_out_exactly(lisa):
    assert lisa.counterfactuals.iloc[0].to_dict() == {
        "age": pd.Interval(24, 27, closed="both"),
        "gender": "F",
        "city": "Antwerp",
        "salary": 60,
        "relationship": "Single",
    }
    assert cv.measure.degree_of_privacy(lisa).tolist() == [3]
    assert cv.measure.ncp(lisa)[0] == pytest.approx(3 / 47 / 3)
    assert round(float(cv.measure.ncp(lisa)[0]), 3) == 0.021
    assert cv.measure.pureness(lisa, cv.data.toy_credit_model).tolist() == [0.5]
    assert cv.measure.discernibility(lisa) == 3
    assert lisa[0].sentence == (
        "If you were 3 to 6 years older (between 24 and 27 instead of 21), lived in Antwerp (instead of Brussels) and "
        "earned $10K more (from $50K to $60K), the decision would be Accept."
    )
    assert "It holds for 50% of the combinations" in lisa.to_text()


def test_the_people_of_the_worked_example_are_fiona_gina_and_ingrid(lisa):
    table = cv.load("toy_credit")
    assert table.frame["name"][lisa.regions.covers(table)[0]].tolist() == ["Fiona", "Gina", "Ingrid"]


def test_the_classification_metric_of_the_worked_example_is_zero(lisa):
    # Two of Fiona, Gina and Ingrid are accepted, so the majority agrees with the promised decision.
    assert cv.measure.classification_metric(lisa, cv.data.toy_credit_model) == 0


def people(rng, n):
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 25, n),
            "city": rng.choice(CITIES[: rng.integers(1, 4)], n),
            "level": pd.Categorical(rng.choice(LEVELS, n), LEVELS, ordered=True),
            "income": rng.integers(0, 4, n),
        }
    )
    frame["ok"] = np.where(np.arange(n) % 2 == 0, "yes", "no")
    return cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age", "city", "level"])


def wobbly_model(seed):
    """Decides by a hash of the row: impure cells everywhere."""
    w = np.random.default_rng(seed).integers(1, 1000, 4)
    bar = 30 + seed % 60

    def decide(frame):
        cities = frame["city"].map({c: i for i, c in enumerate(CITIES)}).to_numpy(np.int64)
        levels = frame["level"].cat.codes.to_numpy(np.int64)
        mixed = w[0] * frame["age"].to_numpy() + w[1] * cities + w[2] * levels + w[3] * frame["income"].to_numpy()
        return np.where(mixed % 97 < bar, "yes", "no")

    return decide


def brute_force(table, model, row, k):
    """Least NCP of a pure region with k rows around a training row, from the definitions; infinite if there is none."""
    frame = table.frame
    ages, cities = sorted(frame["age"].unique()), sorted(frame["city"].unique())
    levels = [lv for lv in LEVELS if (frame["level"] == lv).any()]
    grid = pd.DataFrame(list(product(ages, cities, levels)), columns=["age", "city", "level"])
    grid["level"] = pd.Categorical(grid["level"], LEVELS, ordered=True)
    shape = (len(ages), len(cities), len(levels))
    pure = (model(grid.assign(income=row["income"])) == "yes").reshape(shape)
    count = np.zeros(shape, dtype=int)
    for a, c, lv in zip(frame["age"], frame["city"], frame["level"]):
        count[ages.index(a), cities.index(c), levels.index(lv)] += 1
    x, y, z = ages.index(row["age"]), cities.index(row["city"]), levels.index(row["level"])
    others = [j for j in range(len(cities)) if j != y]
    sets = [sorted({y, *s}) for s in chain(*(combinations(others, r) for r in range(len(others) + 1)))]
    best = np.inf
    for a, b, s, u, v in product(range(x + 1), range(x, shape[0]), sets, range(z + 1), range(z, shape[2])):
        box = np.ix_(range(a, b + 1), s, range(u, v + 1))
        if count[box].sum() >= k and pure[box].all():
            steps = LEVELS.index(levels[v]) - LEVELS.index(levels[u])
            width = (ages[b] - ages[a]) / max(ages[-1] - ages[0], 1)
            best = min(best, (width + (len(s) / len(cities) if len(s) > 1 else 0) + steps / 2) / 3)
    return best


def test_the_exact_search_equals_brute_force(seeds):
    """Small random tables with ties, equal rows, mixed types and impure cells."""
    seen, tables = {"found": 0, "none": 0}, seeds(150, 4_000)
    for seed in tables:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 15))
        table, model, k = people(rng, n), wobbly_model(seed), int(rng.integers(2, min(n, 6)))
        protector = exact(k=k, neighbours=1).fit(table, model)
        row = table.features.iloc[[int(rng.integers(n))]]
        if model(row)[0] == "yes":
            continue
        e = protector.explain(row)
        nearest = protector.search_.explainer_.nearest(row)[0, 0]
        if nearest < 0:
            assert e.status[0] == "no_counterfactual"
            continue
        owner = table.features.iloc[nearest]
        best = brute_force(table, model, owner, k)
        if np.isinf(best):
            assert e.status[0] == "no_counterfactual"
            seen["none"] += 1
            continue
        assert e.found[0]
        assert cv.measure.ncp(e)[0] == pytest.approx(best, abs=1e-9)
        assert cv.measure.degree_of_privacy(e)[0] >= k
        assert e.regions.covers(table)[0, nearest]
        assert (e.counterfactuals["income"][0], e.pureness[0]) == (owner["income"], 1.0)
        assert cv.measure.pureness(e, model)[0] == 1.0
        seen["found"] += 1
    assert min(seen.values()) > len(tables) / 20


@pytest.mark.parametrize("reward", ["none", "sparsity"])
@pytest.mark.parametrize("search", ["exact", "grasp"])
def test_never_fewer_than_k_and_the_owner_inside(search, reward, seeds):
    for seed in seeds(30, 500):
        rng = np.random.default_rng(seed)
        table, model = people(rng, 30), wobbly_model(seed)
        k = int(rng.integers(2, 31))
        protector = cv.CFK(k=k, search=search, reward=reward).fit(table, model)
        e = protector.explain(table)
        assert (cv.measure.degree_of_privacy(e)[e.found] >= k).all()
        assert e.guarantee.refute(e, table) is None
        if search == "grasp" and reward == "none":
            owners = protector.search_.explainer_.nearest(table)[e.found, 0]
            assert e.regions.covers(table)[np.arange(len(owners)), owners].all()


def test_grasp_ends_for_every_k():
    table = small_table(40)
    for k in range(2, 41):
        e = cv.CFK(k=k, search=GraspSearch(iterations=1)).fit(table, small_model).explain(table.features.iloc[:5])
        assert (cv.measure.degree_of_privacy(e)[e.found] >= k).all()


def test_exact_never_costs_more_than_grasp_at_equal_pureness():
    table = small_table(150)
    exact, grasp = (
        cv.CFK(k=5, search=s, reward="none", neighbours=1).fit(table, small_model).explain(table)
        for s in ("exact", "grasp")
    )
    both = exact.found & grasp.found & (grasp.pureness == 1)
    assert both.sum() > 20
    assert (cv.measure.ncp(exact)[both] <= cv.measure.ncp(grasp)[both] + 1e-9).all()


@pytest.mark.parametrize("reward", ["none", "sparsity"])
@pytest.mark.parametrize("search", ["exact", "grasp"])
def test_asking_a_hundred_times_gives_one_region(search, reward):
    table, row = small_table(80), small_table(40, seed=2).features.iloc[[3]]
    protector = cv.CFK(k=4, search=search, reward=reward).fit(table, small_model)
    assert len({protector.explain(row).to_json() for _ in range(100)}) == 1


@pytest.mark.parametrize("reward", ["none", "sparsity"])
@pytest.mark.parametrize("search", ["exact", "grasp"])
def test_regions_do_not_depend_on_row_order(search, reward):
    """Content decides, not position: shuffled tables differ at most where two nearest neighbours tie."""
    table, rows = small_table(80), small_table(30, seed=2).features
    shuffled = table.take(np.random.default_rng(0).permutation(len(table)))
    a, b = (cv.CFK(k=4, search=search, reward=reward).fit(t, small_model).explain(rows) for t in (table, shuffled))
    assert a.to_text() == b.to_text()


WAYS = [(search, reward) for search in ("exact", "grasp") for reward in ("none", "sparsity")]


@pytest.fixture(scope="module")
def elsewhere():
    """What another process finds, search by search."""
    program = (
        "import json; import countervail as cv; from countervail.testing import small_model, small_table;"
        f"ways = {WAYS};"
        "made = [cv.CFK(k=4, search=s, reward=r).fit(small_table(80), small_model) for s, r in ways];"
        "rows = small_table(12, seed=2).features;"
        "print(json.dumps([p.explain(rows).to_text() for p in made]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return dict(zip(WAYS, json.loads(done.stdout)))


@pytest.mark.parametrize(("search", "reward"), WAYS)
def test_another_process_gives_the_same_regions(search, reward, elsewhere):
    made = cv.CFK(k=4, search=search, reward=reward).fit(small_table(80), small_model)
    assert elsewhere[search, reward] == made.explain(small_table(12, seed=2).features).to_text()


@pytest.mark.parametrize("reward", ["none", "sparsity"])
def test_repeated_questions_never_leave_fewer_than_k(reward):
    table, control = small_table(120), small_table(60, seed=4)
    for k in (2, 5, 10):
        protector = cv.CFK(k=k, search="exact", reward=reward).fit(table, small_model)
        assert cv.attack.Intersection(repeats=20).run(protector, table, control).set_sizes.min() >= k


def test_the_next_neighbour_serves_where_no_pure_region_exists_and_says_so(seeds):
    moved, tables = 0, seeds(16, 200)
    for seed in tables:
        rng = np.random.default_rng(seed)
        table, model = people(rng, 25), wobbly_model(seed)
        first = exact(k=4, neighbours=1).fit(table, model).explain(table)
        more = exact(k=4, neighbours=25).fit(table, model).explain(table)
        gained = more.found & ~first.found
        moved += int(gained.sum())
        assert all("Nearer counterfactuals" in more[int(i)].note for i in np.flatnonzero(gained))
        assert (more.pureness[more.found] == 1).all()
    assert moved > len(tables) / 2


def test_less_pureness_is_taken_only_within_the_band(seeds):
    taken, tables = 0, seeds(16, 200)
    for seed in tables:
        rng = np.random.default_rng(seed)
        table, model = people(rng, 25), wobbly_model(seed)
        strict = exact(k=4, neighbours=1).fit(table, model).explain(table)
        loose = exact(k=4, neighbours=1, min_pureness=0.5).fit(table, model).explain(table)
        extra = loose.found & ~strict.found
        taken += int(extra.sum())
        assert (loose.pureness[loose.found] >= 0.5).all()
        assert (loose.pureness[strict.found] == 1).all()
        np.testing.assert_allclose(loose.pureness[loose.found], cv.measure.pureness(loose, model)[loose.found])
    assert taken > len(tables) / 8
    assert ncp_band(0.5) == 0.625
    assert ncp_band(0.01) == pytest.approx(0.04)


def test_a_spent_node_budget_is_said_with_the_gap():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 1000, (3_000, 8)), columns=list("abcdefgh"))
    frame["pay"] = rng.integers(0, 10, len(frame))
    frame["ok"] = np.where(frame["pay"] > 4, "yes", "no")
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=list("abcdefgh"))
    search = ExactSearch(node_budget=200, cell_budget=50)
    protector = cv.CFK(k=20, search=search, reward="none").fit(table, lambda f: np.where(f["pay"] > 4, "yes", "no"))
    e = protector.explain(table.features[table.target == "no"].iloc[:5])
    assert e.found.all()
    assert all("not proven minimal" in note and "sampled" in note for note in e.notes)


def test_a_categorical_with_a_thousand_values_ends():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"place": rng.integers(0, 1000, 4_000).astype(str), "age": rng.integers(20, 70, 4_000)})
    frame["pay"] = rng.integers(0, 10, len(frame))
    frame["ok"] = np.where(frame["pay"] > 4, "yes", "no")
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["place", "age"])
    protector = exact(k=30).fit(table, lambda f: np.where(f["pay"] > 4, "yes", "no"))
    e = protector.explain(table.features[table.target == "no"].iloc[:3])
    assert (cv.measure.degree_of_privacy(e) >= 30).all()


def test_weights_move_the_generalisation():
    table = small_table(120)
    rows = small_table(40, seed=2).features
    heavy_age = {"age": 0.98, "city": 0.01, "level": 0.01}
    a = exact(k=6, weights=heavy_age).fit(table, small_model).explain(rows)
    b = exact(k=6).fit(table, small_model).explain(rows)
    width = [
        np.mean([r.cells["age"].length if isinstance(r.cells["age"], pd.Interval) else 0 for r in e.regions])
        for e in (a, b)
    ]
    assert width[0] < width[1]
    assert cv.measure.ncp(a, weights=heavy_age)[a.found].mean() <= cv.measure.ncp(b, weights=heavy_age)[b.found].mean()


def test_missing_values_are_values_of_their_own():
    frame = small_table(120).frame
    frame.loc[::5, "city"] = None
    frame.loc[::7, "level"] = None
    table = cv.Table.from_frame(
        frame, target="ok", favourable="yes", identifiers=["id"], quasi_identifiers=["age", "city", "level"]
    )
    e = exact(k=6).fit(table, small_model).explain(table)
    assert (cv.measure.degree_of_privacy(e)[e.found] >= 6).all()
    assert cv.Explanations.from_json(e.to_json()).to_json() == e.to_json()


def test_nothing_else_about_the_owner_leaves():
    table = small_table(120)
    e = exact(k=6).fit(table, small_model).explain(small_table(40, seed=2))
    assert e.scores is None
    assert not {"distance", "row", "index", "rank"} & set(e.to_frame().columns)
    shown = Regions.from_cells([r.cells for r in e.regions], e.schema)
    assert (shown.count(table.select("quasi")) >= 6).all()
    for frame in (e.factuals, e.counterfactuals):
        for name in frame.columns:
            if isinstance(frame[name].dtype, pd.CategoricalDtype):
                assert set(frame[name].cat.categories) == set(frame[name].dropna().unique())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k": 61}, "'k' parameter of CFK must be at most the number of rows"),
        ({"k": 1}, "'k' parameter of CFK must be a whole number of at least 2"),
        ({"k": 2.5}, "'k' parameter of CFK"),
        ({"search": "fast"}, "'search' parameter of CFK must be one of"),
        ({"weights": {"age": 1.0}}, "'weights' parameter of CFK must be a mapping with exactly"),
        ({"weights": {"age": 0.5, "city": 0.5, "height": 0.0}}, "'weights' parameter of CFK"),
        ({"weights": {"age": 0.5, "city": 0.5, "level": 0.5}}, "sum to one"),
        ({"explainer": cv.NICE("sparsity")}, "'explainer' parameter of CFK must be a native explainer"),
        ({"explainer": "nice"}, "'explainer' parameter of CFK must be a native explainer"),
        ({"min_pureness": 1.5}, "'min_pureness' parameter of CFK"),
        ({"search": GraspSearch(alpha=0)}, "'alpha' parameter of GraspSearch"),
        ({"search": ExactSearch(cell_budget=0)}, "'cell_budget' parameter of ExactSearch"),
        ({"target": "maybe"}, "'target' parameter"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        cv.CFK(**{"search": "exact", "k": 3, **parameters}).fit(small_table(), small_model)


def test_a_table_without_quasi_identifiers_is_refused():
    with pytest.raises(cv.SchemaError, match="the table declares none"):
        exact(k=3).fit(small_table().with_roles(quasi=[]), small_model)


def test_a_quasi_identifier_must_be_in_the_schema():
    with pytest.raises(cv.SchemaError, match="No column named 'height'"):
        small_table().with_roles(quasi=["height"])


@pytest.mark.parametrize("name", ["german_credit", "iris", "heart_c", "cmc", "compas", "informs_5000"])
def test_linkage_succeeds_on_plain_explanations_and_never_against_cfk(name):
    if name in REGISTERED:
        try:
            table = cv.load(name)
        except FileNotFoundError:
            pytest.skip(f"the registered data set {name} is not on this machine")
    else:
        table = cv.load(name)
    if name == "iris":
        table = table.with_roles(quasi=["sepal_length", "sepal_width"])
    train, test = table.split(test_size=0.4, random_state=0)
    model = train_forest(train, trees=10)
    rows = test.take(range(min(60, len(test))))
    plain = cv.NICE(target="favourable", justified=False).fit(train, model).explain(rows)
    attack = cv.attack.Linkage()
    if name in ("german_credit", "iris"):
        assert attack.run(plain, train, test).members.value > 0
    for k in (2, 5):
        private = exact(k=k).fit(train, model).explain(rows)
        result = attack.run(private, train, test)
        assert (result.members.value, result.exposed.value) == (0, 0)
        assert result.set_sizes.min(initial=k) >= k
