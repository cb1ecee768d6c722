"""Noisy counts of rows in an engine: the counts of a table with the same rows, so with a seed the same draw."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import countervail as cv
from countervail.engine import Scan
from countervail.protect.dp import histograms
from countervail.protect.dp.grid import Grid, RecordStream, read_records
from countervail.protect.dp.synthetic import edges
from countervail.protect.dp.synthetic.accounting import NoiseBudget

ROLES = {
    "identifiers": ["id"],
    "quasi_identifiers": ["age", "city"],
    "target": "granted",
    "favourable": "yes",
    "domains": {
        "age": (18, 80),
        "city": ["Ghent", "Liège", "京都"],
        "income": (0.0, 60.0, 13),
        "granted": ["yes", "no"],
    },
}
EXAMPLES = max(settings.default.max_examples // 5, 1)


def model(rows):
    """Whoever earns enough."""
    return np.where(rows["income"].to_numpy(dtype=float) > 30, "yes", "no")


def people(n, seed):
    rng = np.random.default_rng(seed)
    city = rng.choice(["Ghent", "Liège", "京都", "Ghent"], n).astype(object)
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "age": rng.integers(20, 70, n),
            "city": np.where(rng.random(n) < 0.1, None, city),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.gamma(2, 12, n).clip(0, 60).round(1)),
            "granted": rng.choice(["yes", "no"], n),
        }
    )


def in_files(frame, folder, files):
    folder.mkdir()
    for i in range(files):
        frame.iloc[i::files].to_parquet(folder / f"{i}.parquet", index=False)
    return folder


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(5, 400), st.integers(0, 999), st.sampled_from([1, 2, 4]), st.sampled_from([0.5, 50.0]))
def test_every_engine_draws_what_a_table_in_memory_draws(tmp_path_factory, n, seed, files, epsilon):
    folder, frame = tmp_path_factory.mktemp("counts"), people(n, seed)
    source = in_files(frame, folder / "in", files)
    table = cv.Table.from_frame(frame, **ROLES)
    asked = frame.dropna().drop(columns=["id", "granted"]).head(5)
    for made in (
        lambda: cv.PrivateSynthetic(epsilon, rows=50, missing=["city"], random_state=seed),
        lambda: cv.PrivateSynthetic(epsilon, rows=50, delta=0.0, adjacency="replace-one", random_state=seed),
        lambda: cv.PrivateHistograms(epsilon, records=30, random_state=seed),
    ):
        wanted = made().fit(table, model).explain(asked).to_frame()
        for engine in ("memory", "duckdb"):
            scan = cv.Table.scan(source, engine=engine, threads=2, **ROLES)
            found = made().fit(scan, model)
            scan.close()
            pd.testing.assert_frame_equal(found.explain(asked).to_frame(), wanted)


@pytest.fixture
def scan(tmp_path):
    return cv.Table.scan(in_files(people(200, 1), tmp_path / "in", 2), engine="duckdb", **ROLES)


def test_the_draw_of_a_scan_is_that_of_its_table(scan):
    table = cv.Table.from_frame(people(200, 1), **ROLES)
    drawn = [cv.PrivateSynthetic(50.0, random_state=1).fit(rows, model).draw_.to_dict() for rows in (scan, table)]
    assert drawn[0] == drawn[1] and drawn[0]["pairs"]


def test_a_ledger_pays_for_a_scan_as_for_a_table(scan):
    table, ledger = cv.Table.from_frame(people(200, 1), **ROLES), cv.Ledger("people", epsilon=3.0, delta=1e-5)
    first = cv.PrivateSynthetic(1.0, ledger=ledger).fit(scan, model)
    again = cv.PrivateSynthetic(1.0, ledger=ledger).fit(table, model)  # the same draw: nothing more is paid
    assert first.draw_.to_dict() == again.draw_.to_dict()


@pytest.mark.parametrize("made", [lambda: cv.PrivateSynthetic(5.0, rows=50), lambda: cv.PrivateHistograms(5.0)])
def test_nothing_depends_on_the_rows_of_a_scan_but_through_the_draw(tmp_path, monkeypatch, made):
    """The noise is one that does not look at what it is added to: other people, as many or not, change nothing."""

    def unseen(exact):
        shape = np.shape(exact)
        return np.full(shape, 900) if np.size(exact) == 1 else np.random.default_rng(1).integers(0, 400, shape)

    monkeypatch.setattr(NoiseBudget, "_drawn", lambda self, exact, far, budget: unseen(exact))
    monkeypatch.setattr(NoiseBudget, "choose", lambda self, scores, budget: 0)
    monkeypatch.setattr(histograms, "noisy_counts", lambda counts, *rest: unseen(counts))
    monkeypatch.setattr("countervail.core.rng.secrets.randbits", lambda bits: 7)
    asked = people(40, 3).dropna().drop(columns=["id", "granted"]).head(5)
    worlds = {"some": people(200, 1), "others": people(300, 2), "one": people(5, 4).dropna().head(1)}
    worlds["holes"] = people(200, 1).assign(income=[1.5] + [np.nan] * 199, city=["Ghent"] + [None] * 199)
    seen = {}
    for name, frame in worlds.items():
        rows = cv.Table.scan(in_files(frame, tmp_path / name, 1), engine="duckdb", **ROLES)
        protector = made().fit(rows, model)
        rows.close()
        answers = protector.explain(asked)
        file = tmp_path / f"{name}.json"
        if isinstance(protector, cv.PrivateSynthetic):
            protector.save(file)
        kept = file.read_text() if file.is_file() else ""
        again = pickle.loads(pickle.dumps(protector)).explain(asked).to_json()
        seen[name] = (
            answers.to_json(),
            answers.to_text(),
            str(answers.to_frame().dtypes),
            repr(protector),
            kept,
            again,
        )
    assert all(s == seen["some"] for s in seen.values())


def test_undeclared_domains_are_refused_before_rows_are_read(tmp_path, monkeypatch):
    source = in_files(people(50, 1), tmp_path / "in", 1)
    scan = cv.Table.scan(source, engine="duckdb", **{**ROLES, "domains": {}})
    monkeypatch.setattr(type(scan.relation), "grouped", None)
    with pytest.raises(cv.SchemaError, match="adds noise over public domains"):
        cv.PrivateSynthetic(1.0).fit(scan, model)


def test_what_answers_from_records_refuses_a_scan(scan):
    for made in (cv.PrivateNeighbours(1.0), cv.NoisyCounterfactual(1.0)):
        with pytest.raises(cv.ParameterError, match=r"'table' parameter of .* must be a Table: this is learnt row by"):
            made.fit(scan, model)


@pytest.mark.parametrize("least", [1, 20])  # of no column all values fit; of each by itself, and not all records
@pytest.mark.parametrize("cells", [None, 1])  # all pairs are counted at once, or one at a time
def test_records_that_do_not_fit_memory_are_counted_in_parts(tmp_path, monkeypatch, least, cells):
    """Nobody's record makes a fit end in an error: the draw is that of the table, batch by batch."""
    frame = people(700, 1)
    source, table = in_files(frame, tmp_path / "in", 3), cv.Table.from_frame(frame, **ROLES)
    if cells:
        monkeypatch.setattr(edges, "_CELLS", cells)
    for made in (
        lambda: cv.PrivateSynthetic(900.0, missing=["city"], random_state=1),
        lambda: cv.PrivateSynthetic(2.0, adjacency="replace-one", random_state=1),
        lambda: cv.PrivateHistograms(1.0, random_state=1),
    ):
        asked = frame.dropna().drop(columns=["id", "granted"]).head(5)
        wanted = made().fit(table, model).explain(asked).to_frame()
        with monkeypatch.context() as patch:
            patch.setattr(Scan, "budget", lambda self, columns: least if columns > 1 or least == 1 else 9999)
            scan = cv.Table.scan(source, engine="duckdb", **ROLES)
            assert isinstance(read_records(scan, Grid.of(table, "a test")), RecordStream)
            found = made().fit(scan, model)
            scan.close()
        pd.testing.assert_frame_equal(found.explain(asked).to_frame(), wanted)


def test_dates_are_read_alike_in_parts(tmp_path, monkeypatch):
    frame = people(300, 2).assign(since=[f"{d % 28 + 1:02d}/{d % 12 + 1:02d}/2020" for d in range(300)])
    since = cv.Column("since", type="date", domain=("2020-01-01", "2020-12-31", 12), order="dmy")
    schema = cv.Table.from_frame(people(300, 2), **ROLES).schema
    schema = replace(schema, columns=(*schema.columns, since))
    source = in_files(frame, tmp_path / "in", 2)
    drawn = []
    for budget in (9_999, 1):
        monkeypatch.setattr(Scan, "budget", lambda self, columns, n=budget: n)
        scan = cv.Table.scan(source, engine="duckdb", schema=schema)
        drawn.append(cv.PrivateSynthetic(50.0, random_state=1).fit(scan, model).draw_.to_dict())
        scan.close()
    assert drawn[0] == drawn[1] and drawn[0]["pairs"]
