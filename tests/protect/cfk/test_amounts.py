"""Moved private numbers leave round: what may be said of every such number, a slow twin, and the promise."""

import json
from datetime import date, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from moves_twin import REWARDS, otherwise, permuted, values_of

import countervail as cv
from countervail.core.encode import Encoder
from countervail.protect.cfk.moves.amounts import AmountColumn, _multiples, ladder

QUASI = ["age", "city"]
AMOUNTS = ["money", "share", "score", "rate", "since"]
DOMAINS = {"money": (0, 9_800), "score": (0, 100, 21)}
LIMITS = [
    {},
    {"monotone": {"money": "up", "share": "down"}},
    {"ranges": {"money": (1_500, 6_200), "share": (0.2, 0.9)}},
    {"immutable": ["share", "city"]},
    {"forbidden": {"money": [("*", 4_000), ("*", 5_000)], "rate": [("*", 70)]}},
    {"max_changes": 2, "costs": {"money": 3.0}},
]


def people(seed, n):
    """Whole amounts, fractions, a declared grid, few values far apart, and days."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3_000, n), unit="D")
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 30, n),
            "city": rng.choice(["a", "b", "c"], n),
            "money": rng.integers(0, 9_800, n),
            "share": rng.random(n).round(4),
            "score": rng.integers(0, 21, n) * 5.0,
            "rate": rng.choice([3, 19, 44, 70, 300], n),
            "since": days.strftime("%Y-%m-%d"),
            "ok": rng.choice(["no", "yes"], n),
        }
    )
    frame.loc[:1, "ok"] = ["no", "yes"]
    return dated(frame, "since", domains=DOMAINS, quasi_identifiers=QUASI)


def dated(frame, *days, **roles):
    """A table in which some columns are dates."""
    plain = cv.Table.from_frame(frame, target="ok", favourable="yes", **roles).schema
    columns = (cv.Column(c.name, "date", c.role) if c.name in days else c for c in plain)
    return cv.Table.from_frame(frame, schema=cv.Schema(tuple(columns), plain.favourable))


def model_of(seed):
    """A model of everything, with bends so that a number between two good ones may be bad."""
    w = np.random.default_rng(seed).normal(0, 1, 7)

    def model(frame):
        columns = (
            frame["age"].to_numpy(float) / 5 - 5,
            (frame["city"] == "b").to_numpy(float),
            frame["money"].to_numpy(float) / 2_000 - 2.5,
            frame["share"].to_numpy(float) * 4 - 2,
            frame["score"].to_numpy(float) / 25 - 2,
            np.sin(frame["rate"].to_numpy(float)),
            np.sin(frame["since"].to_numpy(float) / 300),
        )
        merit = sum(a * c for a, c in zip(w, columns)) + 0.4 * np.sin(frame["money"].to_numpy(float) / 150)
        return np.where(merit > 0.6, "yes", "no")

    return model


# ---------------------------------------------------------------- one number


def twin_ladder(x, v):
    """Round numbers between and beyond, by decimals."""
    x, v = Decimal(repr(x)), Decimal(repr(v))
    way, between, beyond = v - x, [], []
    for digits in range(4):
        unit = Decimal(1).scaleb(abs(way).adjusted() + 1 - digits)
        low, high = ((v / unit).to_integral_value(r) * unit for r in (ROUND_FLOOR, ROUND_CEILING))
        if low == high:
            break
        near, far = (low, high) if way > 0 else (high, low)
        if min(x, v) < near < max(x, v):
            between.append(near)
        if abs(far - v) * 10 <= abs(way):
            beyond.append(far)
    return [float(n) for n in dict.fromkeys(between)], [float(n) for n in dict.fromkeys(beyond)]


def tried(x, v):
    one, other = np.array([x], dtype=float), np.array([v], dtype=float)
    return [
        [n for n in dict.fromkeys(part[0].tolist()) if n == n] for part in ladder(one, other, _multiples(one, other))
    ]


WHOLE = st.integers(-10_000_000, 10_000_000).map(float)
SHORT = st.builds(lambda n, places: n / 10**places, st.integers(-10_000_000, 10_000_000), st.integers(1, 9))


@given(st.one_of(st.tuples(WHOLE, WHOLE), st.tuples(SHORT, SHORT), st.tuples(WHOLE, SHORT)))
def test_round_numbers_lie_where_they_should_and_are_those_of_plain_decimals(pair):
    x, v = (n + 0.0 for n in pair)
    assume(x != v)
    between, beyond = tried(x, v)
    assert (between, beyond) == twin_ladder(x, v)
    assert all(min(x, v) < n < max(x, v) for n in between)
    assert all((n - v) * (v - x) > 0 and abs(n - v) <= 0.1 * abs(v - x) * (1 + 1e-9) for n in beyond)
    digits = [len(Decimal(repr(n)).normalize().as_tuple().digits) for n in (*between, *beyond)]
    assert all(d <= len(Decimal(repr(v)).normalize().as_tuple().digits) for d in digits)


@given(WHOLE, WHOLE)
def test_whole_numbers_stay_whole(x, v):
    assume(x != v)
    assert all(n.is_integer() for part in tried(x, v) for n in part)


@pytest.mark.parametrize(
    ("x", "v", "between", "beyond"),
    [
        (12_169, 7_582, [10_000, 8_000, 7_600, 7_590], [7_500, 7_580]),
        (0.1, 0.286206563, [0.2, 0.28, 0.286], [0.3, 0.29, 0.287]),
        (24, 18, [20], []),  # 18 is as round as whole numbers so near are
        (3, 0, [], []),  # no fraction of a child
        (-500, 3_217, [0, 3_000, 3_200, 3_210], [3_300, 3_220]),
        (1_000, 3_000, [], []),
    ],
)
def test_examples(x, v, between, beyond):
    assert tried(x, v) == [between, beyond]


def column(values, *days, **settings):
    frame = pd.DataFrame({"money": values, "age": 1, "ok": np.where(np.arange(len(values)) % 2, "no", "yes")})
    table = dated(frame, *days, quasi_identifiers=["age"], **settings)
    encoder = Encoder.fit(table, ["money"])
    return AmountColumn.of(encoder.codings[0], encoder.encode(table.features)[:, 0])


def rungs(made, x, v):
    return [n for n in made.ladder(np.array([float(x)]), np.array([float(v)]))[0].tolist() if n == n]


def test_numbers_beyond_are_somewhere_among_those_of_the_table():
    made = column(np.arange(0, 9_970, 7))
    assert rungs(made, 100, 4_985)[-1] == 4_990
    assert rungs(made, 100, 9_968) == [9_000, 9_900, 9_960]


def test_declared_ends_hold_for_numbers_between_too():
    made = column(np.arange(2_050, 9_000, 7), domains={"money": (2_050, 9_000)})
    assert rungs(made, -300, 2_078) == [2_070, 2_100, 2_080]  # neither 0 nor 2,000


def test_few_values_may_be_codes_and_stay_among_themselves():
    made = column(np.array([3, 19, 44, 70, 300, 3]))
    assert rungs(made, 3, 44) == [] and rungs(made, 300, 44) == []
    assert rungs(column(np.array([3, 40, 44, 50, 300, 3])), 3, 44) == [40]


def test_a_value_of_a_declared_grid_stays_on_it():
    made = column(np.tile(np.arange(0, 101, 4.0), 2), domains={"money": (0, 100, 26)})
    assert (rungs(made, 3, 64), rungs(made, 3, 92), rungs(made, 3, 93)) == ([60], [100], [90, 100])


def test_dates_become_the_first_of_a_year_or_of_a_month():
    made = column([f"{year}-{month}-09" for year in range(2015, 2024) for month in range(1, 13)], "money")

    def tried_days(start, end):
        first, last = ((date.fromisoformat(day) - date(1970, 1, 1)).days for day in (start, end))
        return [str(date(1970, 1, 1) + timedelta(n)) for n in rungs(made, first, last)]

    assert tried_days("2015-03-04", "2019-05-17") == ["2019-01-01", "2019-05-01", "2019-06-01"]
    assert tried_days("2020-02-10", "2019-05-17") == ["2020-01-01", "2019-06-01", "2019-05-01"]
    assert tried_days("2015-03-04", "2019-01-01") == []


# ---------------------------------------------------------------- answers


def drawn(seed, n=45):
    table, queries, model = people(seed, n), people(seed + 10_000, 8).features, model_of(seed)
    return table, queries, model, cv.CFK(k=3).fit(table, model)


def typed(rows, table):
    return pd.DataFrame(rows)[table.schema.features].astype(table.frame.dtypes[table.schema.features].to_dict())


def pure(cells, table, model):
    """Whether every combination of the cells leads to "yes"."""
    names = list(cells)
    made = product(*(values_of(cells[n], n, table) for n in names))
    return bool((model(typed([dict(zip(names, values)) for values in made], table)) == "yes").all())


def allowed(name, start, end, monotone=None, ranges=None, immutable=(), forbidden=None, **_):
    low, high = (ranges or {}).get(name, (-np.inf, np.inf))
    way = {"up": 1, "down": -1}.get((monotone or {}).get(name), 0)
    steps = (forbidden or {}).get(name, ())
    return low <= end <= high and way * (end - start) >= 0 and name not in immutable and ("*", end) not in steps


def first_of(day, unit):
    return np.datetime64(int(day), "D").astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(int) == day


def twin_rungs(name, x, v, table, limits, reward):
    """What is tried in the place of `v`, from the definitions."""
    held = {float(n) for n in table.frame[name]}
    between, beyond = twin_ladder(float(x), float(v)) if name != "since" else twin_days(int(x), int(v))
    if reward in ("plausibility", "typical"):  # what was made for nearness stays near
        between = [n for n in between if 10 * abs(n - v) <= abs(v - x) * (1 + 1e-9)]
    beyond = [n for n in beyond if min(held) <= n <= max(held)]
    out = [n for n in dict.fromkeys([*between, *beyond]) if allowed(name, x, n, **limits)]
    low, high = DOMAINS.get(name, (-np.inf, np.inf))[:2]
    out = [n for n in out if low <= n <= high and (len(held) > 20 or n in held)]
    return [n for n in out if n % 5 == 0] if name == "score" else out


def twin_days(x, v):
    between, beyond = [], []
    for unit in ("Y", "M"):
        if first_of(v, unit):
            break
        low = next(d for d in range(v, v - 400, -1) if first_of(d, unit))
        high = next(d for d in range(v, v + 400) if first_of(d, unit))
        near, far = (low, high) if v > x else (high, low)
        between += [float(near)] * (min(x, v) < near < max(x, v))
        beyond += [float(far)] * (10 * abs(far - v) <= abs(v - x))
    return between, beyond


def twin_round(answer, table, model, limits, reward="sparsity"):
    """The cells of an answer with round amounts: one feature after the other, each the first that is pure."""
    cells = dict(answer.cells)
    for name in (n for n in table.schema.features if n in AMOUNTS and n in answer.changes):
        failed = 0
        for value in twin_rungs(name, answer.factual[name], answer.cells[name], table, limits, reward):
            nearest = {n: c if n not in QUASI else nearest_of(c, answer.factual[n], n, table) for n, c in cells.items()}
            if failed == 3 or not pure(nearest | {name: value}, table, model):
                continue
            if pure(cells | {name: value}, table, model):
                cells[name] = value
                break
            failed += 1
    return cells


def nearest_of(cell, own, name, table):
    values = values_of(cell, name, table)
    return min(values, key=lambda v: abs(v - own)) if name == "age" else min(values, key=str)


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_the_first_round_numbers_that_keep_the_decision_are_taken(quick_groups, limits, seeds):
    compared, changed = 0, 0
    for seed in seeds(6, 300):
        table, queries, model, made = drawn(seed)
        reward = REWARDS[seed % len(REWARDS)]
        plain, rounded = (
            otherwise(made, reward=reward, amounts=amounts, **limits).explain(queries) for amounts in ("exact", "round")
        )
        assert (plain.found == rounded.found).all() and (plain.own == rounded.own).all()
        for a, b in zip(plain, rounded):
            if a.found:
                assert dict(b.cells) == twin_round(a, table, model, limits, reward), (seed, reward)
                compared, changed = compared + 1, changed + (dict(a.cells) != dict(b.cells))
    assert compared > 10 and changed > 5


@pytest.mark.parametrize("n", [1, 3])
def test_round_answers_keep_promise_limits_and_decision_alone_or_among_others(quick_groups, n, seeds):
    """Permuted private vectors change nothing; whole numbers are whole; nothing goes the other way."""
    moved = 0
    for seed in seeds(10, 1_000):
        table, queries, model, one = drawn(seed)
        two = cv.CFK(k=3).fit(permuted(table, one.search_.row_group_, seed), model)
        reward, limits = REWARDS[seed % len(REWARDS)], LIMITS[seed % len(LIMITS)]
        first, second = (otherwise(p, reward=reward, n_counterfactuals=n, **limits) for p in (one, two))
        e = first.explain(queries)
        assert e.to_json() == second.explain(queries).to_json()
        assert e.guarantee.refute(e, table) is None
        singly = [a for i in range(len(queries)) for a in first.explain(queries.iloc[[i]])]
        assert [a.to_text() for a in singly] == [a.to_text() for a in e]
        for a in (a for a in e if a.found):
            assert pure(a.cells, table, model) and len(a.changes) <= limits.get("max_changes", 7)
            for name in (n for n in a.changes if n in AMOUNTS):
                assert allowed(name, a.factual[name], a.cells[name], **limits)
                assert name == "share" or float(a.cells[name]).is_integer()
                moved += 1
        for i in range(len(queries)):
            said = [
                {name: a.cells[name] for name in a.changes} for a, query in zip(e, e.query) if query == i and a.found
            ]
            assert not any(p.items() <= q.items() for p in said for q in said if p is not q)
    assert moved > 20


@pytest.mark.parametrize("search", ["exact", "grasp"])
def test_projected_answers_are_round_too(search, seeds):
    changed = 0
    for seed in seeds(4, 100):
        table, queries, model = people(seed, 45), people(seed + 10_000, 8).features, model_of(seed)
        plain, rounded = (
            cv.CFK(k=3, search=search, amounts=a).fit(table, model).explain(queries) for a in ("exact", "round")
        )
        assert (plain.found == rounded.found).all() and (plain.own == rounded.own).all()
        assert (rounded.pureness[rounded.found] >= plain.pureness[plain.found]).all()
        for a, b in zip(plain, rounded):
            if a.found and a.pureness == 1:
                assert dict(b.cells) == twin_round(a, table, model, {})
                changed += dict(a.cells) != dict(b.cells)
    assert changed > 3


def test_whole_neighbours_are_left_as_they_are():
    table, queries, model, _ = drawn(1)
    made = [cv.CFK(k=3, reward="none", amounts=a).fit(table, model).explain(queries) for a in ("exact", "round")]
    assert made[0].counterfactuals.equals(made[1].counterfactuals)


def test_what_is_behind_a_round_answer_is_the_neighbours_own():
    _, queries, _, made = drawn(2)
    plain = otherwise(made, amounts="exact")
    assert made.disclosed(queries).counterfactuals.equals(plain.disclosed(queries).counterfactuals)
    assert not made.explain(queries).counterfactuals.equals(plain.explain(queries).counterfactuals)


def test_missing_numbers_are_neither_left_nor_reached_by_rounding():
    rng, n = np.random.default_rng(0), 80
    frame = pd.DataFrame({"age": rng.integers(20, 30, n), "money": rng.integers(0, 9_000, n).astype(float)})
    frame.loc[rng.random(n) < 0.3, "money"] = np.nan
    frame["ok"] = np.where(frame["money"] > 4_000, "yes", "no")
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age"])
    asked = pd.DataFrame({"age": [22, 23], "money": [np.nan, 312.0]})

    def model(rows):
        return np.where(rows["money"].to_numpy(float) > 4_000, "yes", "no")

    e = cv.CFK(k=3).fit(table, model).explain(asked)
    assert e.counterfactuals["money"][0] in set(frame["money"]) and e.found.all()
    assert e.counterfactuals["money"][1] % 10 == 0 and e.counterfactuals["money"][1] > 4_000


def test_other_words_than_round_and_exact_are_refused():
    table, _, model, _ = drawn(0)
    with pytest.raises(cv.CountervailError, match="'amounts' parameter of CFK"):
        cv.CFK(k=3, amounts="rough").fit(table, model)


@pytest.mark.parametrize("amounts", ["exact", "round"])
def test_a_saved_protector_keeps_what_was_asked_for_and_an_older_file_is_exact(amounts, tmp_path):
    table, queries, model, _ = drawn(2)
    made, path = cv.CFK(k=3, amounts=amounts).fit(table, model), tmp_path / "made.json"
    made.save(path)
    again = cv.load_protector(path, model)
    assert again.amounts == amounts and again.explain(queries).to_json() == made.explain(queries).to_json()
    older = json.loads(path.read_text(encoding="utf-8"))
    del older["parameters"]["amounts"]
    path.write_text(json.dumps(older | {"parameters": older["parameters"] | {"grouping": "clusters"}}))
    assert cv.load_protector(path, model).amounts == "exact"


def test_an_older_file_says_itself_how_groups_were_formed(tmp_path):
    table, queries, model, _ = drawn(2)
    made, path = cv.CFK(k=3, search=cv.protect.GroupSearch(grouping="mondrian")).fit(table, model), tmp_path / "m.json"
    made.save(path)
    older = json.loads(path.read_text(encoding="utf-8"))
    older["parameters"] |= {"search": "groups", "grouping": "mondrian"}
    path.write_text(json.dumps(older))
    again = cv.load_protector(path, model)
    assert again.search.grouping == "mondrian"
    assert again.explain(queries).to_json() == made.explain(queries).to_json()
