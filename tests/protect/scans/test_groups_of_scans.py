"""Answers from groups, learnt from rows in an engine: the same sealed table, and so the same answers, as in memory."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import countervail as cv
from countervail.core.sealed import SealedTable
from countervail.engine import Scan

ROLES = {
    "identifiers": ["id"],
    "quasi_identifiers": ["age", "city"],
    "sensitive": ["ill"],
    "target": "granted",
    "favourable": "yes",
}
WORDS = ["a", "b", "été", "e\u0301te\u0301", "京都", None]
EXAMPLES = max(settings.default.max_examples // 5, 1)


def model(rows):
    """Whoever earns enough for her age."""
    debts = rows["debts"].fillna(0).to_numpy(dtype=float)
    earned = rows["income"].to_numpy(dtype=float) - 2 * debts - rows["age"].fillna(30).to_numpy(dtype=float) / 10
    return np.where((earned > 12) | (rows["job"].astype(object) == "b").to_numpy(), "yes", "no")


@st.composite
def tables(draw):
    """People with ties, missing values, letters in one piece or two, and private vectors that several have."""
    n = draw(st.integers(12, 60))

    def column(values):
        return [draw(values) for _ in range(n)]

    ages = st.integers(20, draw(st.sampled_from([22, 30, 70])))
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "age": np.array(column(st.one_of(ages, st.just(np.nan))), dtype=float),
            "city": column(st.sampled_from(WORDS)),
            "job": column(st.sampled_from(["b", "c", "été", "e\u0301te\u0301"])),
            "income": column(st.sampled_from([5, 10, 20, 30, 2**40])),
            "debts": np.array(column(st.sampled_from([0.0, -0.0, 0.5, 1.25])), dtype=float),
            "ill": column(st.sampled_from(["none", "none", "flu", "gout"])),
            "granted": ["yes", "no", *column(st.sampled_from(["yes", "no"]))][:n],
        }
    )


def in_files(frame, folder, files):
    folder.mkdir()
    for i in range(files):
        frame.iloc[i::files].to_parquet(folder / f"{i}.parquet", index=False)
    return folder


def same(found, wanted, asked):
    """Whether two fitted protectors hold the same, promise the same and say the same."""
    assert found.search_.sealed_.digest == wanted.search_.sealed_.digest
    a, b = found.explain(asked), wanted.explain(asked)
    pd.testing.assert_frame_equal(a.to_frame(), b.to_frame())
    assert (a.to_text(), a.guarantee, a.caveats, a.provenance) == (b.to_text(), b.guarantee, b.caveats, b.provenance)


OPTIONS = st.sampled_from(
    [
        {},
        {"reward": "none"},
        {"reward": "plausibility", "n_counterfactuals": 2},
        {"amounts": "exact", "immutable": ["job"]},
        {"l": 2, "sensitive": "ill"},
        {"t": 0.5, "sensitive": "ill"},
        {"weights": {"age": 0.9, "city": 0.1}},
        {"explainer": cv.NearestCounterfactual()},
    ]
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables(), OPTIONS, st.integers(2, 4), st.sampled_from([1, 2, 4]))
def test_every_engine_seals_and_answers_as_a_table_in_memory_does(tmp_path_factory, frame, options, k, files):
    folder = tmp_path_factory.mktemp("groups")
    table = cv.Table.from_frame(frame, **ROLES)
    source, asked = in_files(frame, folder / "in", files), frame.drop(columns=["id", "granted"]).head(8)
    try:
        wanted = cv.CFK(k, **options).fit(table, model)
    except cv.CountervailError as refused:
        for engine in ("memory", "duckdb"):
            with pytest.raises(type(refused)):
                cv.CFK(k, **options).fit(cv.Table.scan(source, engine=engine, **ROLES), model)
        return
    for engine in ("memory", "duckdb"):
        scan = cv.Table.scan(source, engine=engine, threads=2, **ROLES)
        found = cv.CFK(k, **options).fit(scan, model)
        scan.close()
        same(found, wanted, asked)


@pytest.fixture
def people():
    rng = np.random.default_rng(3)
    n = 400
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "age": rng.integers(20, 70, n).astype(float),
            "city": rng.choice(["Ghent", "Bruges", "Liège"], n),
            "job": rng.choice(["b", "c", "d"], n),
            "income": rng.integers(1, 6, n) * 5,
            "debts": rng.integers(0, 3, n) / 2,
            "ill": rng.choice(["none", "flu"], n),
            "granted": rng.choice(["yes", "no"], n),
        }
    )


@pytest.fixture
def scan(people, tmp_path):
    return cv.Table.scan(in_files(people, tmp_path / "in", 2), engine="duckdb", **ROLES)


def test_equal_private_vectors_of_a_group_are_held_once_and_counted(scan, people):
    sealed = cv.CFK(20).fit(scan, model).search_.sealed_.sealed
    assert len(sealed.groups) < len(people) == len(sealed)
    held = pd.DataFrame(sealed.to_dict()["others"]["income"]["at"])
    assert len(held) == len(people)


def test_answers_come_from_what_was_sealed_and_not_from_the_files(scan, people, tmp_path):
    found = cv.CFK(5).fit(scan, model)
    before = found.explain(people.drop(columns=["id", "granted"]).head(20)).to_text()
    scan.close()
    for file in (tmp_path / "in").iterdir():
        file.unlink()
    assert found.explain(people.drop(columns=["id", "granted"]).head(20)).to_text() == before
    assert pickle.loads(pickle.dumps(found)).explain(people.head(20)).to_text() == before


def test_a_protector_of_a_scan_is_saved_as_that_of_a_table(scan, people, tmp_path):
    table = cv.Table.from_frame(people, **ROLES)
    for name, rows in (("scan", scan), ("table", table)):
        cv.CFK(5).fit(rows, model).save(tmp_path / f"{name}.json")
    assert (tmp_path / "scan.json").read_text() == (tmp_path / "table.json").read_text()
    again = cv.load_protector(tmp_path / "scan.json", model)
    asked = people.drop(columns=["id", "granted"]).head(20)
    assert again.explain(asked).to_text() == cv.CFK(5).fit(table, model).explain(asked).to_text()


def test_people_with_several_rows_hide_among_as_many_more(people, tmp_path):
    twice = people.assign(id=people["id"] // 2)
    scan = cv.Table.scan(in_files(twice, tmp_path / "in", 2), engine="duckdb", **ROLES)
    table = cv.Table.from_frame(twice, **ROLES)
    same(cv.CFK(5).fit(scan, model), cv.CFK(5).fit(table, model), people.drop(columns=["id", "granted"]).head(20))


def test_a_refit_to_a_scan_forgets_the_table(scan, people):
    table = cv.Table.from_frame(people, **ROLES)
    fitted = cv.CFK(5).fit(table, model)
    assert fitted.table_ is table
    with pytest.raises(AttributeError, match="holds no rows"):
        _ = fitted.fit(scan, model).table_
    with pytest.raises(AttributeError, match="holds no rows"):
        _ = fitted.roster_


def test_what_needs_rows_one_by_one_refuses_a_scan(scan, people):
    table = cv.Table.from_frame(people, **ROLES)
    roster = cv.CFK(5).fit(table, model).roster_
    mondrian = cv.protect.GroupSearch(grouping="mondrian")
    for options, name in [
        ({"search": "exact"}, "search"),
        ({"search": "grasp"}, "search"),
        ({"search": mondrian}, "search"),
        ({"previous": roster}, "previous"),
        ({"ledger": cv.Ledger("people", epsilon=1.0)}, "ledger"),
    ]:
        with pytest.raises(cv.ParameterError, match=rf"'{name}' parameter of CFK must be .* for a scan"):
            cv.CFK(5, **options).fit(scan, model)
    with pytest.raises(cv.ParameterError, match=r"'k' parameter of CFK must be at most the number of rows, 400"):
        cv.CFK(401).fit(scan, model)


@pytest.mark.parametrize("columns, what", [(2, "the distinct quasi-identifiers"), (5, "the private vectors")])
def test_too_little_memory_is_said_with_the_setting(columns, what, scan, monkeypatch):
    monkeypatch.setattr(Scan, "budget", lambda self, asked: 30 if asked == columns else 9999)
    with pytest.raises(cv.ParameterError, match=rf"'memory' .* enough for {what}.*more than 30.*--memory"):
        cv.CFK(5).fit(scan, model)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["u", "v", None]), st.integers(1, 4)), min_size=1))
def test_lines_with_counts_are_sealed_as_rows_are(lines):
    schema = cv.Schema((cv.Column("age", "numeric", "quasi"), cv.Column("ill")))
    cells = [{"age": pd.Interval(a, a + 9, closed="both")} for a in (40, 20, 20)]
    regions = cv.core.region.Regions.from_cells(cells)
    lines = [*lines, *((g, "u", 1) for g in range(3))]
    group, ill, times = (np.array(column) for column in zip(*lines))
    frame = pd.DataFrame({"ill": list(ill)})
    one, place = SealedTable.of(regions, group, frame, schema, times)
    rows = np.repeat(np.arange(len(lines)), times)
    other, moved = SealedTable.of(regions, group[rows], frame.iloc[rows].reset_index(drop=True), schema)
    assert one.digest == other.digest and len(one) == len(other) and place.tolist() == moved.tolist()
    assert one.groups[one.lines_of(np.arange(len(one)))].tolist() == other.groups.tolist()
