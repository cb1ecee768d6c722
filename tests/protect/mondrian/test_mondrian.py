"""Mondrian on tables: the promise, what breaks in other implementations, labels, new rows, bad input."""

import math
from collections import Counter, defaultdict
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail import AllOf, KAnonymity, LDiversity, NoGuarantee, TCloseness
from countervail.core.cells import cell_text, fits
from countervail.core.errors import ParameterError, RefusedError, SchemaError
from countervail.core.hierarchy import Hierarchy
from countervail.protect.mondrian.cut_tree import CutTree
from countervail.testing import small_table

CITY = Hierarchy(
    (("a", "coast", "*"), ("b", "coast", "*"), ("c", "inland", "*"), ("d", "inland", "*")),
    "city",
)


def random_table(seed, n=None):
    """Numbers, levels and categories, with and without missing values, and a sensitive column."""
    rng = np.random.default_rng(seed)
    n = n if n is not None else int(rng.integers(4, 60))
    age = rng.integers(18, 18 + rng.integers(1, 50), n).astype(float)
    pay = rng.normal(30, 10, n).round(int(rng.integers(0, 2)))
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(n)],
            "age": np.where(rng.random(n) < 0.1 * (seed % 3 == 0), np.nan, age),
            "pay": pay,
            "city": rng.choice(["a", "b", "c", "d"][: int(rng.integers(1, 5))], n),
            "level": rng.choice(["low", "mid", "high"], n),
            "ill": rng.choice(["flu", "cold", "none", "hiv"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "ok": rng.choice(["no", "yes"], n),
        }
    )
    if seed % 4 == 0:
        frame.loc[rng.random(n) < 0.15, ["city"]] = None
    if seed % 5 == 0:
        frame.loc[rng.random(n) < 0.15, ["level"]] = None
    columns = [
        cv.Column("id", role="identifier"),
        cv.Column("age", "numeric", "quasi"),
        cv.Column("pay", "numeric", "quasi" if seed % 2 else "attribute"),
        cv.Column("city", "categorical", "quasi"),
        cv.Column("level", "ordinal", "quasi", levels=("low", "mid", "high")),
        cv.Column("ill", "ordinal", "sensitive", levels=("none", "cold", "flu", "hiv")),
        cv.Column("ok", role="target"),
    ]
    return cv.Table(frame, cv.Schema(tuple(columns)))


def published_classes(release):
    """Rows by the text of their published quasi-identifiers: a count that shares nothing with the library."""
    frame = release.to_frame()
    classes = defaultdict(list)
    for row in frame.to_dict("records"):
        key = tuple(cell_text(row[n]) for n in release.schema.names("quasi"))
        classes[key].append(row["ill"])
    return classes


def slow_l(values, kind, c=None, l=2):  # noqa: E741
    counts = sorted(Counter(values).values(), reverse=True)
    n = sum(counts)
    if kind == "distinct":
        return len(counts)
    if kind == "entropy":
        return math.exp(-sum(x / n * math.log(x / n) for x in counts))
    if kind == "frequency":
        return n / counts[0]
    return l if counts[0] < c * sum(counts[l - 1 :]) else 0


def slow_t(values, everyone, ground):
    levels = [v for v in ("none", "cold", "flu", "hiv") if v in set(everyone)]
    p, q = Counter(values), Counter(everyone)
    gap = [p[v] / len(values) - q[v] / len(everyone) for v in levels]
    if len(levels) < 2:
        return 0.0
    if ground == "equal":
        return sum(abs(g) for g in gap) / 2
    return sum(abs(sum(gap[: i + 1])) for i in range(len(gap))) / (len(levels) - 1)


KINDS = ["distinct", "entropy", "recursive", "frequency"]


def test_random_tables_keep_k_l_and_t_by_an_independent_count(seeds):
    released, refused, tables = 0, 0, seeds(400, 5_000)
    for seed in tables:
        table = random_table(seed)
        rng = np.random.default_rng(seed + 10_000)
        k, kind = int(rng.integers(1, 7)), KINDS[seed % 4]
        least = 2 if kind in ("distinct", "recursive") else 1.4
        l = None if seed % 3 == 0 else (3.0, 2) if kind == "recursive" else least  # noqa: E741
        t = None if seed % 7 else float(rng.uniform(0.1, 0.6))
        ground = ["equal", "ordered"][seed % 2]
        protector = cv.Mondrian(
            k,
            l=l,
            t=t,
            diversity=kind,
            closeness=ground,
            sensitive="ill",
            choose=["gain", "span"][seed // 2 % 2],
            by_class=seed % 11 == 0,
        )
        try:
            release = protector.fit(table).protect(table)
        except ParameterError:
            refused += 1
            continue
        released += 1
        assert len(release) == len(table)
        everyone = table.frame["ill"].tolist()
        for values in published_classes(release).values():
            assert len(values) >= k
            if l is not None:
                assert slow_l(values, kind, 3.0, 2) >= least - 1e-9
            if t is not None:
                assert slow_t(values, everyone, ground) <= t + 1e-9
    assert released > 0.8 * len(tables)
    assert refused > len(tables) / 60


def test_every_cell_holds_its_rows_and_is_tight():
    for seed in range(40):
        table = random_table(seed, 40)
        protector = cv.Mondrian(k=3).fit(table)
        for i, region in enumerate(protector.regions_):
            rows = table.frame[protector.cell_of_ == i]
            for name, cell in region.cells.items():
                assert all(fits(v, cell) for v in rows[name])
                if table.schema[name].type == "numeric":
                    parts = cell if isinstance(cell, frozenset) else {cell}
                    ends = [(p.left, p.right) if isinstance(p, pd.Interval) else (p, p) for p in parts if p is not None]
                    values = rows[name].dropna()
                    assert ends == ([(values.min(), values.max())] if len(values) else [])
                    assert (None in parts) == bool(rows[name].isna().any())
                elif table.schema[name].type == "categorical":
                    held = {None if pd.isna(v) else v for v in rows[name]}
                    assert (cell if isinstance(cell, frozenset) else {cell}) == held


# ---------------------------------------------------------------- what breaks elsewhere


def one_column(values, k, kind="numeric", **settings):
    frame = pd.DataFrame({"q": values, "ill": settings.pop("ill", ["x"] * len(values))})
    table = cv.Table(frame, cv.Schema((cv.Column("q", kind, "quasi"), cv.Column("ill", role="sensitive"))))
    return cv.Mondrian(k, sensitive="ill", **settings).fit(table).protect(table)


def test_the_right_half_is_checked():
    """Other code checks the left half of 1, 1, 1, 1, 2 only and publishes a class of one."""
    assert np.bincount(one_column([1, 1, 1, 1, 2], 2).groups).tolist() == [5]


def test_the_root_is_checked_for_k():
    with pytest.raises(ParameterError, match="'k' parameter of Mondrian must be at most the number of rows, 5"):
        one_column([1, 2, 3, 4, 5], 10)


def test_the_root_is_checked_for_l():
    with pytest.raises(ParameterError, match=r"'l' parameter of Mondrian.*takes 2 different values"):
        one_column([1, 2, 3, 4], 2, l=5, ill=["yes", "no", "yes", "no"])


def test_t_is_not_ignored():
    values, ill = [1, 1, 2, 2, 3, 3, 4, 4], list("aabbaabb")
    assert len(one_column(values, 2, ill=ill).regions) == 4
    assert len(one_column(values, 2, ill=ill, t=0.2).regions) == 2
    assert len(one_column([1, 1, 2, 2], 2, ill=list("aabb"), t=0.2).regions) == 1


def test_rows_with_missing_values_are_generalised_and_all_published():
    release = one_column([1, 2, 3, None, 5, 6, 7, 8, None], 3)
    assert len(release) == 9
    assert release.suppressed == 0
    assert np.bincount(release.groups).min() >= 3
    cells = [cell_text(r.cells["q"]) for r in release.regions]
    assert any("missing" in text for text in cells)


def test_missing_matches_missing_only():
    """Three people without a city and three without an age are not one class of six."""
    frame = pd.DataFrame({"age": [1.0, 1, 1, None, None, None], "city": [None, None, None, "a", "a", "a"]})
    schema = cv.Schema((cv.Column("age", "numeric", "quasi"), cv.Column("city", "categorical", "quasi")))
    table = cv.Table(frame, schema)
    release = cv.Mondrian(k=3).fit(table).protect(table)
    assert sorted(release.regions.text()) == ["age 1, city missing", "age missing, city a"]
    assert release.regions.count(table.frame).tolist() == [3, 3]


def test_no_row_number_of_the_table_is_published():
    table = small_table(200)
    frame = cv.Mondrian(k=5).fit(table).protect(table).to_frame()
    assert frame.index.equals(pd.RangeIndex(200))
    assert set(frame.columns) == set(table.frame.columns) - {"id"}
    assert frame["income"].tolist() != table.frame["income"].tolist()


@pytest.mark.parametrize("settings", [{}, {"choose": "span"}, {"l": 2, "sensitive": "ill"}, {"by_class": True}])
def test_row_order_never_changes_classes_or_ncp(settings):
    for seed in range(60):
        table = random_table(seed, 50)
        order = np.random.default_rng(seed).permutation(len(table))
        turned = table.take(order)
        one, other = (cv.Mondrian(k=3, **settings).fit(rows) for rows in (table, turned))
        np.testing.assert_array_equal(one.cell_of_[order], other.cell_of_)
        assert one.regions_.text() == other.regions_.text()
        assert one.tree_.to_json() == other.tree_.to_json()


def test_category_order_never_changes_the_classes():
    table = random_table(7, 60)
    frame = table.frame.assign(city=pd.Categorical(table.frame["city"], ["d", "b", "c", "a"]))
    turned = cv.Table(frame, table.schema)
    assert cv.Mondrian(k=3).fit(table).regions_.text() == cv.Mondrian(k=3).fit(turned).regions_.text()


def test_published_ranges_are_tight():
    release = one_column([1, 2, 3, 10, 11, 12], 3)
    assert sorted(cell_text(r.cells["q"]) for r in release.regions) == ["1-3", "10-12"]


def test_every_attribute_is_tried_before_giving_up():
    """The widest column cannot be cut (all but one value equal), the other can."""
    frame = pd.DataFrame({"wide": [0, 0, 0, 0, 0, 100], "narrow": [1, 1, 1, 2, 2, 2]})
    schema = cv.Schema(tuple(cv.Column(n, "numeric", "quasi") for n in frame.columns))
    table = cv.Table(frame, schema)
    for choose in ("gain", "span"):
        assert len(cv.Mondrian(k=3, choose=choose).fit(table).regions_) == 2


def test_unseen_values_are_sent_to_the_nearest_cell_or_suppressed():
    table = random_table(3, 60)
    protector = cv.Mondrian(k=3).fit(table)
    new = table.frame.drop(columns="id").head(40).copy()
    new.loc[new.index[:3], "city"] = "atlantis"
    new.loc[new.index[3:6], "age"] = 250.0
    release = protector.protect(new)
    assert len(release) + release.suppressed == 40
    assert any("never saw" in text for text in release.caveats)
    assert "atlantis" not in release.to_json()
    assert release.guarantee.recount(release) is None


# ---------------------------------------------------------------- guarantees


@pytest.mark.parametrize(
    ("protector", "promise"),
    [
        (cv.Mondrian(10), KAnonymity(10, against="algorithm")),
        (cv.Mondrian(10, by_class=True), KAnonymity(10, against="algorithm")),
        (
            cv.Mondrian(10, l=3, sensitive="ill"),
            AllOf((KAnonymity(10, against="register"), LDiversity(3, "distinct", "ill"))),
        ),
        (cv.Mondrian(1, t=0.2, sensitive="ill"), TCloseness(0.2, "equal", "ill")),
    ],
)
def test_a_promise_names_its_adversary(protector, promise):
    assert protector.guarantee() == promise
    assert "register of everybody's quasi-identifiers" in str(protector.guarantee())


def test_what_is_not_kept_is_not_promised():
    assert isinstance(cv.Mondrian(k=1).guarantee(), NoGuarantee)


def test_both_numbers_of_recursive_diversity_are_promised():
    promised = cv.Mondrian(1, l=(2.5, 3), diversity="recursive", sensitive="ill").guarantee()
    assert promised == LDiversity(3, "recursive", "ill", 2.5)


@pytest.mark.parametrize("asked", [{"l": 2}, {"t": 0.4}])
@pytest.mark.parametrize("made", [cv.Mondrian, cv.published.BasicMondrian])
def test_l_and_t_name_their_column_or_nothing_is_fitted(made, asked):
    """The schema's only sensitive column must not become part of a promise that was made without it."""
    protector = made(k=4, **asked)
    before = protector.guarantee()
    with pytest.raises(ParameterError, match=r"'sensitive' parameter of \w+ must be the column that l and t speak of"):
        protector.fit(small_table())
    assert protector.guarantee() == before
    named = made(k=4, **asked, sensitive="ill")
    before = named.guarantee()
    table = small_table()
    assert named.fit(table).protect(table).guarantee == before == named.guarantee()


def test_minimality_example_of_the_spec_reveals_values():
    """Why l is against a register only: ages 20, 20, 40, 40, 40 with H, H, f, c, a at k=2, l=2 stay unsplit."""
    ages, ill = [20, 20, 40, 40, 40], list("HHfca")
    assert len(one_column(ages, 2, ill=ill).regions) == 2
    assert len(one_column(ages, 2, l=2, ill=ill).regions) == 1


def test_with_l_even_k_fails_against_the_algorithm():
    """docs/decisions/mondrian-guarantee.md: of all ways to hand out H, H, G, G, a, the cuts leave p with a alone."""
    frame = pd.DataFrame({"x": [0, 0, 1, 1, 1], "y": [0, 0, 1, 1, 0]})
    schema = cv.Schema(
        (cv.Column("x", "numeric", "quasi"), cv.Column("y", "numeric", "quasi"), cv.Column("s", role="sensitive"))
    )

    def classes(secrets):
        table = cv.Table(frame.assign(s=list(secrets)), schema)
        return cv.Mondrian(k=2, l=2, sensitive="s").fit(table).regions_.text()

    published = classes("HHGGa")
    assert len(published) == 1
    consistent = {w for w in set(permutations("HHGGa")) if classes(w) == published}
    assert {w[4] for w in consistent} == {"a"}
    assert len(set(permutations("HHGGa"))) > len(consistent)


def test_cuts_without_l_or_t_ignore_everything_but_the_quasi_identifiers():
    """The proof of k against the algorithm rests on this."""
    for seed in range(30):
        table = random_table(seed, 50)
        shuffled = table.frame.assign(
            ill=table.frame["ill"].sample(frac=1, random_state=seed).to_numpy(),
            ok=table.frame["ok"].sample(frac=1, random_state=seed + 1).to_numpy(),
        )
        others = cv.Table(shuffled, table.schema)
        one, other = cv.Mondrian(k=3).fit(table), cv.Mondrian(k=3).fit(others)
        np.testing.assert_array_equal(one.cell_of_, other.cell_of_)
        assert one.tree_.to_json() == other.tree_.to_json()


# ---------------------------------------------------------------- per class, hierarchies


def test_by_class_cuts_every_class_on_its_own():
    table = random_table(5, 60)
    release = cv.Mondrian(k=4, by_class=True).fit(table).protect(table)
    frame = release.others.assign(group=release.groups)
    assert (frame.groupby("group")["ok"].nunique() == 1).all()
    assert np.bincount(release.groups).min() >= 4


def test_hierarchy_cuts_follow_the_groups():
    frame = pd.DataFrame({"city": list("aaabbbcccddd")})
    table = cv.Table(frame, cv.Schema((cv.Column("city", "categorical", "quasi"),)))
    flat = cv.Mondrian(k=6).fit(table)
    grouped = cv.Mondrian(k=6, hierarchies={"city": CITY}).fit(table)
    assert sorted(grouped.regions_.text()) == ["city {a, b}", "city {c, d}"]
    assert len(flat.regions_) == 2


def test_hierarchy_labels_are_whole_groups():
    frame = pd.DataFrame({"city": list("aaaabccc")})
    table = cv.Table(frame, cv.Schema((cv.Column("city", "categorical", "quasi"),)))
    release = cv.Mondrian(k=3, hierarchies={"city": CITY}, labels="hierarchy").fit(table).protect(table)
    assert sorted(release.regions.text()) == ["city c", "city {a, b}"]
    assert set(release.to_text_frame()["city"]) == {"c", "coast"}
    assert set(release.to_frame()["city"]) == {"c", frozenset("ab")}
    one = cv.Mondrian(k=6, hierarchies={"city": CITY}, labels="hierarchy").fit(table).protect(table)
    assert one.regions.text() == ["city {a, b, c, d}"]
    assert set(one.to_text_frame()["city"]) == {"*"}


def test_missing_is_a_child_of_the_root():
    frame = pd.DataFrame({"city": ["a", "b", "a", None, None, None, "c", "c", "d"]})
    table = cv.Table(frame, cv.Schema((cv.Column("city", "categorical", "quasi"),)))
    release = cv.Mondrian(k=3, hierarchies={"city": CITY}, labels="hierarchy").fit(table).protect(table)
    assert sorted(release.regions.text()) == ["city missing", "city {a, b}", "city {c, d}"]


def test_a_numeric_column_may_have_a_hierarchy():
    rows = [(str(v), f"{v // 5 * 5}-{v // 5 * 5 + 4}", "*") for v in range(20, 30)]
    frame = pd.DataFrame({"age": [20, 21, 22, 25, 26, 29]})
    table = cv.Table(frame, cv.Schema((cv.Column("age", "numeric", "quasi"),)))
    protector = cv.Mondrian(k=3, hierarchies={"age": Hierarchy(tuple(rows), "age")}, labels="hierarchy").fit(table)
    release = protector.protect(table)
    assert sorted(release.regions.text()) == ["age {20, 21, 22, 23, 24}", "age {25, 26, 27, 28, 29}"]
    assert set(release.to_text_frame()["age"]) == {"20-24", "25-29"}
    assert cv.measure.ncp(release).max() <= 1
    assert len(protector.protect(pd.DataFrame({"age": [23, 24, 23, 27, 27, 28]}))) == 6


# ---------------------------------------------------------------- the tree and new rows


@pytest.mark.parametrize("settings", [{}, {"by_class": True}, {"hierarchies": {"city": CITY}}, {"choose": "span"}])
def test_the_fitted_rows_find_their_own_cells_in_the_tree(settings):
    for seed in range(60):
        table = random_table(seed, 60)
        protector = cv.Mondrian(k=3, **settings).fit(table)
        tree = protector.tree_
        np.testing.assert_array_equal(tree.cells(table.frame), protector.cell_of_)
        again = CutTree.from_json(tree.to_json())
        np.testing.assert_array_equal(again.cells(table.frame), protector.cell_of_)
        assert again.to_json() == tree.to_json()
        assert again.regions.text() == tree.regions.text()


def test_an_equal_copy_of_the_table_gets_the_same_release():
    table = random_table(2, 60)
    protector = cv.Mondrian(k=3, random_state=1).fit(table)
    one, other = protector.protect(table), protector.protect(table.frame)
    pd.testing.assert_frame_equal(one.to_frame(), other.to_frame())
    assert other.suppressed == 0


def test_new_rows_in_classes_below_k_are_suppressed_and_counted():
    table = random_table(2, 60)
    protector = cv.Mondrian(k=5).fit(table)
    release = protector.protect(table.take(range(40)))
    assert len(release) + release.suppressed == 40
    assert np.bincount(release.groups).min() >= 5
    assert any("too few of the new rows" in text for text in release.caveats)
    with pytest.raises(RefusedError, match="Nothing has left"):
        protector.protect(table.take([0, 1]))


def test_new_rows_keep_l_and_t_among_themselves():
    kept = 0
    for seed in range(40):
        table = random_table(seed, 60)
        try:
            protector = cv.Mondrian(k=3, l=2, t=0.5, sensitive="ill").fit(table)
            release = protector.protect(random_table(seed + 1000, 60).frame)
        except (ParameterError, RefusedError):
            continue
        kept += 1
        everyone = release.others["ill"].tolist()
        for values in published_classes(release).values():
            assert len(values) >= 3
            assert len(set(values)) >= 2
            assert slow_t(values, everyone, "equal") <= 0.5 + 1e-9
    assert kept > 10


def test_new_rows_lack_no_column_and_bring_none():
    table = random_table(2, 60)
    protector = cv.Mondrian(k=5).fit(table)
    with pytest.raises(SchemaError, match="lack these columns of the table: \\['age'\\]"):
        protector.protect(table.frame.drop(columns="age"))
    with pytest.raises(SchemaError, match="does not declare: \\['x'\\]"):
        protector.protect(table.frame.assign(x=1))
    with pytest.raises(ParameterError, match="at least one row"):
        protector.protect(table.frame.iloc[:0])


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "'k' parameter of Mondrian must be a whole number of at least 1"),
        ({"k": 2.5}, "'k' parameter"),
        ({"k": True}, "'k' parameter"),
        ({"mode": "loose"}, "'mode' parameter of Mondrian must be one of"),
        ({"l": 0}, "'l' parameter"),
        ({"l": 2.5}, "'l' parameter of Mondrian must be a whole number"),
        ({"l": 99}, "'l' parameter of Mondrian must be a distinct diversity that the whole table has"),
        ({"l": float("nan")}, "'l' parameter"),
        ({"l": 2, "diversity": "shannon"}, "'diversity' parameter"),
        ({"l": (0, 2), "diversity": "recursive"}, r"'l' parameter of Mondrian must be \(c, l\) with a c above 0"),
        ({"l": (3.0, 2.5), "diversity": "recursive"}, "'l' parameter of Mondrian must be a whole number"),
        ({"l": 2, "diversity": "recursive"}, r"'l' parameter of Mondrian must be the pair \(c, l\)"),
        ({"l": (3.0, 2)}, "'l' parameter of Mondrian must be a whole number"),
        ({"t": -0.1}, "'t' parameter of Mondrian must be between 0 and 1"),
        ({"t": 1.1}, "'t' parameter"),
        ({"t": float("nan")}, "'t' parameter"),
        ({"t": 0.5, "closeness": "far"}, "'closeness' parameter"),
        (
            {"t": 0.5, "closeness": "hierarchical"},
            "'hierarchies' parameter of Mondrian must be given for the sensitive",
        ),
        ({"choose": "luck"}, "'choose' parameter"),
        ({"labels": "loose"}, "'labels' parameter"),
        ({"l": 2, "sensitive": "age"}, "'sensitive' parameter of Mondrian must be a column that is neither"),
        ({"k": 61}, "'k' parameter of Mondrian must be at most the number of rows, 60"),
        ({"k": 40, "by_class": True}, "every class of 'ok'"),
    ],
)
def test_bad_parameters_say_what_must_be(settings, message):
    with pytest.raises(ParameterError, match=message):
        cv.Mondrian(**{"k": 3, "sensitive": "ill", **settings}).fit(random_table(2, 60))


def test_a_table_without_quasi_identifiers_is_refused():
    with pytest.raises(SchemaError, match="declares none"):
        cv.Mondrian(k=3).fit(random_table(2, 60).with_roles(quasi=[]))


def test_a_frame_is_not_a_table():
    with pytest.raises(ParameterError, match="'table' parameter of Mondrian must be a Table"):
        cv.Mondrian(k=3).fit(pd.DataFrame({"a": [1]}))


def test_per_class_needs_a_target():
    table = random_table(2, 60).with_roles(target=[])
    with pytest.raises(SchemaError, match="no target"):
        cv.Mondrian(k=3, by_class=True).fit(table)


def test_a_constant_quasi_identifier_is_published_as_it_is():
    release = one_column([7] * 6, 3)
    assert len(release.regions) == 1
    assert release.to_frame()["q"].tolist() == [7] * 6
    assert cv.measure.ncp(release).tolist() == [0.0] * 6


def test_a_column_of_missing_values_alone_is_a_class():
    release = one_column(np.full(6, np.nan), 3)
    assert len(release.regions) == 1
    assert release.to_frame()["q"].isna().all()


def test_a_hierarchy_that_misses_values_names_the_column_and_how_many():
    short = Hierarchy((("a", "*"), ("b", "*")), "city")
    seed = next(s for s in range(100) if random_table(s, 60).frame["city"].nunique() == 4)
    with pytest.raises(SchemaError, match="hierarchy of 'city' misses 2 of the 4 values"):
        cv.Mondrian(k=3, hierarchies={"city": short}).fit(random_table(seed, 60))


def test_hierarchies_of_other_columns_are_refused():
    with pytest.raises(SchemaError, match=r"does not generalise: \['job'\]"):
        cv.Mondrian(k=3, hierarchies={"job": CITY}).fit(random_table(2, 60))


def test_duplicate_column_names_are_refused():
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    with pytest.raises(SchemaError, match="unique"):
        cv.Table.from_frame(frame, quasi_identifiers=["a"])


def test_errors_and_caveats_name_nobody():
    table = random_table(2, 60)
    release = cv.Mondrian(k=5).fit(table).protect(table.take(range(40)))
    assert not any(value in text for text in release.caveats for value in table.frame["id"])


# ---------------------------------------------------------------- real data


@pytest.mark.parametrize("k", [2, 5, 10, 25])
@pytest.mark.parametrize("settings", [{}, {"l": 2, "sensitive": "class"}, {"t": 0.2, "sensitive": "class"}])
def test_german_credit_keeps_its_promise(k, settings):
    table = cv.load("german_credit")
    release = cv.Mondrian(k, **settings).fit(table).protect(table)
    assert release.guarantee.refute(release, table) is None
    frame = release.to_text_frame()
    sizes = frame.groupby(table.schema.names("quasi"), dropna=False, observed=True).size()
    assert sizes.min() >= k


def test_german_credit_hierarchical_distance():
    purpose = sorted(cv.load("german_credit").frame["purpose"].dropna().unique())
    tree = Hierarchy(tuple((p, "first" if i < 4 else "second", "*") for i, p in enumerate(purpose)), "purpose")
    table = cv.load("german_credit").with_roles(sensitive=["purpose"])
    protector = cv.Mondrian(5, t=0.25, closeness="hierarchical", sensitive="purpose", hierarchies={"purpose": tree})
    release = protector.fit(table).protect(table)
    assert release.guarantee.refute(release, table) is None
    assert len(release.regions) > 1
