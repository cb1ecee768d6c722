"""Round bounds: what rules say of numbers points at nobody, and all that they say holds."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import countervail as cv
from countervail.core.cells import fits
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.schema import Column, Schema
from countervail.core.words.dates import iso
from countervail.rules.round_bounds import FLOOR, bin_numbers, find_cuts
from countervail.rules.values import Attribute

LEVELS = ("none", "some", "much", "most")


@st.composite
def columns(draw):
    """Distinct values of a column, how many rows have each, and what the column is."""
    kind = draw(st.sampled_from(["whole", "real", "day", "levels"]))
    if kind == "levels":
        values = sorted(draw(st.sets(st.integers(0, 3), min_size=1)))
        a = Attribute("x", True, LEVELS)
    elif kind == "real":
        real = st.floats(-1e9, 1e9, allow_nan=False).map(lambda v: v + 0.0)
        values, a = sorted(draw(st.sets(real, min_size=1, max_size=25))), Attribute("x", True)
    else:
        spread = draw(st.sampled_from([20, 1_000, 20_000]))
        values = sorted(draw(st.sets(st.integers(-spread, spread), min_size=1, max_size=40)))
        a = Attribute("x", True, whole=True, told="day" if kind == "day" else "number")
    rows = draw(st.lists(st.integers(1, 9), min_size=len(values), max_size=len(values)))
    return np.array(values, dtype=float), np.array(rows), a


@given(columns(), st.integers(1, 12))
def test_cuts_stand_apart_and_are_said_by_no_rare_value(column, least):
    values, rows, a = column
    cuts = find_cuts(values, rows, a, least)
    lows = np.array([-np.inf, *(c.low for c in cuts)])
    highs = np.array([*(c.high for c in cuts), np.inf])
    inside = [(values >= low) & (values <= high) for low, high in zip(lows, highs)]
    assert (np.sum(inside, axis=0) == 1).all()  # the bins are apart, and hold everybody
    assert not cuts or min(rows[i].sum() for i in inside) >= least
    held = dict(zip(values.tolist(), rows.tolist()))
    for told in {v for c in cuts for v in (c.low, c.high)}:
        if a.told == "day":
            assert iso(told).endswith("-01") or iso(told + 1).endswith("-01")
        else:
            assert held.get(told, least) >= least


def test_of_the_cuts_that_could_follow_the_roundest_is_taken():
    values, rows = np.array([*range(1001, 1500, 7)], dtype=float), np.ones(72, dtype=int)
    cuts = find_cuts(values, rows, Attribute("x", True), 20)
    assert [c.low for c in cuts] == [1200.0, 1350.0]  # above 1400 are too few
    assert [(c.high, c.low) for c in find_cuts(values, rows, Attribute("x", True, whole=True), 20)] == [
        (1199, 1200),
        (1349, 1350),
    ]


def test_numbers_that_leave_no_room_are_cut_between_two():
    cuts = find_cuts(np.arange(30.0, 70.0), np.full(40, 3), Attribute("age", True, whole=True), 30)
    assert [(c.high, c.low) for c in cuts] == [(39.5, 39.5), (49.5, 49.5), (59.5, 59.5)]


def people(seed=0, n=400):
    rng = np.random.default_rng(seed)
    born = pd.Timestamp("1940-01-01") + pd.to_timedelta(rng.integers(0, 20_000, n), unit="D")
    frame = pd.DataFrame(
        {
            "born": born.strftime("%Y-%m-%d"),
            "pay": rng.lognormal(10.3, 0.5, n).round(2),
            "age": rng.integers(18, 90, n),
            "city": np.where(rng.random(n) < 0.03, [f"Xq{i}town" for i in range(n)], rng.choice(["Ghent", "Liege"], n)),
            "schooling": rng.choice(LEVELS, n, p=[0.49, 0.3, 0.2, 0.01]),
        }
    )
    frame["ok"] = np.where((frame.pay > 30_000) & (frame.age > 40), "yes", "no")
    frame.loc[frame.index[:3], "ok"] = "perhaps"
    columns = (
        Column("born", "date", "quasi", order="ymd"),
        Column("pay", "numeric"),
        Column("age", "numeric", "quasi"),
        Column("city", role="quasi"),
        Column("schooling", "ordinal", levels=LEVELS),
        Column("ok", role="target"),
    )
    return cv.Table(frame, Schema(columns, ("yes",)))


@pytest.mark.parametrize("k", [2, 5, 20])
@pytest.mark.parametrize("most", [1, 2])
def test_all_that_rules_with_round_bounds_say_holds(k, most):
    table = people()
    rules = cv.LERS(k=k, bounds="round", max_values=most).fit(table).rules_
    assert len(rules)
    for rule in list(rules)[:60]:
        inside = np.ones(len(table), dtype=bool)
        for name, cell in rule.region.cells.items():
            inside &= np.array([fits(v, cell) for v in table.frame[name]])
        assert int(inside.sum()) == rule.support >= k
        assert set(table.target[inside]) <= set(rule.conclusion)


@pytest.mark.parametrize("most", [1, 2])
def test_rules_with_round_bounds_name_nothing_that_few_people_have(most):
    table, k = people(), 5
    rules = cv.LERS(k=k, bounds="round", max_values=most).fit(table).rules_
    text = rules.to_text()
    for name in ("pay", "age"):
        counts = table.frame[name].value_counts()
        rare = set(counts.index[counts < FLOOR].astype(float))
        told = re.findall(rf"{name} is (?:at least |at most |from )?(\S+)(?: to (\S+))?", text)
        assert told and not rare & {float(v) for pair in told for v in pair if v}
    assert re.search(r"born is \D*\d{4}-\d\d\b", text) and not re.search(r"\d{4}-\d\d-\d\d", text)
    assert "Xq" not in text and "perhaps" not in text
    exact = cv.LERS(k=k, max_values=most).fit(table).rules_.to_text()
    assert re.search(r"born is at (?:least|most) \d{4}-\d\d-\d\d", exact)


def test_dates_in_json_are_what_the_sentences_say_and_are_read_back(tmp_path):
    table = people()
    for bounds, shape in (("round", r"\d{4}-\d\d"), ("values", r"\d{4}-\d\d-\d\d")):
        rules = cv.LERS(k=5, bounds=bounds).fit(table).rules_
        held = rules.to_dict()["rules"]
        told = [(r["if"]["born"], r["sentence"]) for r in held if "born" in r["if"]]
        assert told
        for cell, sentence in told:
            ends = [v for v in cell.values() if v is not None] if isinstance(cell, dict) else [cell]
            assert ends and all(re.fullmatch(shape, v) and v in sentence for v in ends)
        (tmp_path / "rules.json").write_text(json.dumps(rules.to_dict()), encoding="utf-8")
        again = cv.rules.read_rules(tmp_path / "rules.json", table)
        assert again.support.tolist() == rules.support.tolist()
        assert [r.region.cells for r in again] == [r.region.cells for r in rules]


@pytest.mark.parametrize("wrong", ["1967-13", "then", "1967-02-30", ""])
def test_a_date_that_is_none_is_refused(wrong):
    table = people()
    with pytest.raises(SchemaError, match="'born'"):
        cv.rules.read_rules([{"if": {"born": {"from": None, "to": wrong}}, "then": ["yes"]}], table)


def test_ten_people_share_a_number_not_ten_rows_of_fewer():
    """Five people with four rows each share a pay: twenty rows, five people. Nothing between them is told."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(60), 4)
    pay = np.repeat(1000 + 100 * (np.arange(60) // 5), 4)
    frame = pd.DataFrame({"id": [f"p{i}" for i in who], "pay": pay.astype(float), "x": rng.integers(0, 2, 240)})
    frame["ok"] = np.where(frame.pay > 1500, "yes", "no")
    columns = (Column("id", role="identifier"), Column("pay", "numeric"), Column("x", "numeric"))
    table = cv.Table(frame, Schema((*columns, Column("ok", role="target")), ("yes",)))
    rules = cv.LERS(k=8, bounds="round").fit(table).rules_
    bounds = {v for r in rules for v in ends_of(r.region.cells.get("pay")) if np.isfinite(v)}
    for at in bounds:
        below, above = frame.id[frame.pay <= at].nunique(), frame.id[frame.pay >= at].nunique()
        assert min(below, above) >= FLOOR
        assert frame.id[frame.pay == at].nunique() in (0, *range(FLOOR, 61))
    assert bounds


def ends_of(cell):
    return () if cell is None else (cell.left, cell.right) if isinstance(cell, pd.Interval) else (cell, cell)


def test_rules_with_round_bounds_classify_as_well_as_their_votes_say():
    table = people()
    rows = table.features
    model = cv.LERS(k=5, bounds="round").fit(table)
    assert (model.predict(rows) == table.target).mean() > 0.8
    assert model.fit(table).rules_.to_text() == model.rules_.to_text()


def test_bins_of_a_table_keep_its_rows_and_classes():
    from countervail.rules.inputs import build_value_table

    table = people()
    values = build_value_table(table.features, table.target, table.schema, "LERS")
    binned, _ = bin_numbers(values, 5)
    assert binned.rows == values.rows == len(table) and binned.classes == values.classes
    np.testing.assert_array_equal(binned.decisions[binned.group], values.decisions[values.group])


def test_bounds_are_one_of_two_kinds():
    with pytest.raises(ParameterError, match="'bounds' parameter of LERS must be 'values' or 'round'"):
        cv.LERS(bounds="coarse").fit(people())
