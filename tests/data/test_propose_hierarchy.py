"""Proposed hierarchies: by the column's type, loadable, and ready for Mondrian."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.files.frames import read_frame
from countervail.core.hierarchy import Hierarchy
from countervail.data.propose_hierarchy import propose_hierarchy

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([18, 30, 71], "intervals"),
        ([0.1, 0.7, 1e6], "intervals"),
        (["1984-05-31", "2001-01-01"], "dates"),
        (pd.to_datetime(["1984-05-31"]), "dates"),
        (["31/05/1984", "1/1/2001"], "dates"),
        (["31.05.1984", "01.01.2001"], "dates"),
        (["99/05/1984", "01/01/2001"], "flat"),
        ([f"9{i:03d}" for i in range(20)], "prefixes"),
        (["cook", "smith"], "flat"),
        (pd.Categorical(["lo", "hi"], ["lo", "mid", "hi"], ordered=True), "order"),
    ],
)
def test_the_kind_follows_the_values(values, kind):
    proposal = propose_hierarchy(pd.Series(values, name="x"))
    assert proposal.kind == kind
    assert proposal.reason
    assert proposal.hierarchy.levels >= 2


@pytest.mark.parametrize(
    ("texts", "rows", "reason"),
    [
        (["23/05/1981", "03/12/1950"], [("03/12/1950", "1950-12"), ("23/05/1981", "1981-05")], "day/month/year"),
        (["05/23/1981", "12/03/1950"], [("12/03/1950", "1950-12"), ("05/23/1981", "1981-05")], "month/day/year"),
        (["03/12/1950"], [("03/12/1950", "1950-12")], "day/month/year .*: check"),
    ],
)
def test_days_with_slashes_keep_their_spelling(texts, rows, reason):
    proposal = propose_hierarchy(pd.Series(texts, name="born"))
    assert [row[:2] for row in proposal.hierarchy.rows] == rows
    assert pd.Series([proposal.reason]).str.contains(reason).all()
    assert propose_hierarchy(pd.Series(texts, name="born"), kind="dates").hierarchy == proposal.hierarchy


def test_a_hierarchy_of_days_from_a_csv_fits_the_parquet_file(tmp_path):
    days = pd.to_datetime("1950-01-01") + pd.to_timedelta(RNG.integers(0, 9000, 60), unit="D")
    frame = pd.DataFrame({"born": days, "ok": ["yes", "no"] * 30})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    texts, stamps = (propose_hierarchy(read_frame(tmp_path / n)["born"]) for n in ("a.csv", "a.parquet"))
    assert texts.hierarchy == stamps.hierarchy
    dated = cv.Table.read(tmp_path / "a.parquet", quasi_identifiers=["born"])
    mondrian = cv.Mondrian(5, hierarchies={"born": texts.hierarchy}, labels="hierarchy")
    with pytest.raises(ParameterError, match=r"with_types\(born='categorical'\)"):
        mondrian.fit(dated)
    table = dated.with_types(born="categorical")
    release = mondrian.fit(table).protect(table)
    assert np.bincount(release.classes()).min() >= 5


def test_leading_zeros_of_codes_reach_the_hierarchy(tmp_path):
    (tmp_path / "a.csv").write_text("\n".join(["code", *(f"0{i}" for i in range(1018, 1038))]))
    proposal = propose_hierarchy(read_frame(tmp_path / "a.csv")["code"])
    assert proposal.kind == "prefixes"
    assert proposal.hierarchy.rows[0][:2] == ("01018", "0101*")


def test_whole_numbers_between_are_listed_too():
    assert propose_hierarchy(pd.Series([3, 7])).hierarchy.values == ("3", "4", "5", "6", "7")


def test_widths_suit_the_range():
    for high in (3, 12, 90, 700, 12_345):
        rows = propose_hierarchy(pd.Series([0, high])).hierarchy.rows
        lowest = len({row[1] for row in rows})
        assert lowest <= 40
        assert len({row[-2] for row in rows}) <= 10


def test_quantiles_say_that_they_read_the_rows():
    proposal = propose_hierarchy(pd.Series(RNG.normal(size=40)), kind="quantiles", parts=4)
    assert "read off the rows" in proposal.reason


def test_declared_levels_give_the_order():
    column = cv.Column("x", "ordinal", levels=("low", "mid", "high"))
    proposal = propose_hierarchy(pd.Series(["high", "low"], name="x"), column=column)
    assert proposal.hierarchy.rows[0] == ("low", "low to mid", "*")


@pytest.mark.parametrize(
    ("values", "settings", "error", "message"),
    [
        ([None, None], {}, SchemaError, "missing values only"),
        (["a"], {"kind": "rings"}, ParameterError, "'kind' parameter"),
        (["a", "b"], {"kind": "order"}, SchemaError, "order of 'x' is not known"),
        (["a", "b"], {"kind": "intervals"}, SchemaError, "holds no numbers"),
    ],
)
def test_bad_requests_are_refused(values, settings, error, message):
    with pytest.raises(error, match=message):
        propose_hierarchy(pd.Series(values, name="x", dtype=object), **settings)


def test_every_proposal_for_german_credit_serves_mondrian():
    table = cv.load("german_credit")
    quasi = table.schema.names("quasi")
    trees = {n: propose_hierarchy(table.frame[n], column=table.schema[n]).hierarchy for n in quasi}
    assert all(isinstance(h, Hierarchy) for h in trees.values())
    release = cv.Mondrian(10, hierarchies=trees, labels="hierarchy").fit(table).protect(table)
    assert np.bincount(release.classes()).min() >= 10
