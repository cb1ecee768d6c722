"""A schema proposed from rows in an engine is the one that is proposed from a frame."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows_in_files import people, spread

import countervail as cv
from countervail.core.files.frames import read_frame
from countervail.data.propose import propose_schema
from countervail.engine import proposal
from countervail.engine.proposal import propose_scan

ENGINES = ["memory", "duckdb"]
EXAMPLES = max(settings.default.max_examples // 5, 1)
KINDS = {
    "note": lambda rng, n: [f"{'came in and asked for a loan ' * 2}{i % 9}" for i in rng.integers(0, n, n)],
    "e-mail": lambda rng, n: [f"person{i}@example.org" for i in rng.integers(0, n, n)],
    "birth date": lambda rng, n: [f"{d % 28 + 1}.{d % 12 + 1}.{1950 + d % 50}" for d in rng.integers(0, 900, n)],
    "postcode": lambda rng, n: rng.integers(1000, 9999, n),
    "flag": lambda rng, n: rng.choice([0, 1], n),
    "number": lambda rng, n: pd.array(rng.integers(2**53, 2**53 + 9, n), dtype="Int64"),
    "share": lambda rng, n: np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(3)),
    "amount": lambda rng, n: rng.choice(["1,234.5", "17", "NA"], n),
    "empty": lambda rng, n: [None] * n,
    "class": lambda rng, n: rng.choice(["yes", "no"], n),
}


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(list(KINDS)), min_size=1, unique=True), st.integers(1, 90), st.integers(0, 999))
def test_every_engine_proposes_what_a_frame_proposes(tmp_path_factory, names, n, seed):
    folder, rng = tmp_path_factory.mktemp("proposed"), np.random.default_rng(seed)
    frame = pd.DataFrame({name: KINDS[name](rng, n) for name in names})
    frame.to_parquet(folder / "rows.parquet", index=False)
    wanted = propose_schema(read_frame(folder / "rows.parquet"))
    source = spread(frame, folder / "in", 1 + seed % 2 * (n > 4), seed) if "empty" not in names else folder
    for engine in ENGINES:
        found = propose_scan(source, engine=engine)
        assert found.schema == wanted.schema
        assert found.reasons == wanted.reasons


@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_of_too_many_values_is_taken_for_an_identifier(engine, tmp_path, monkeypatch):
    source = spread(people(300).drop(columns="income"), tmp_path / "in", 2)
    monkeypatch.setattr(proposal, "room_for", lambda memory, columns: 100)
    found = propose_scan(source, "granted", engine=engine)
    assert found.schema["id"].role == "identifier" and found.schema["granted"].role == "target"
    assert ("more than 100 different values" in found.reasons["id"]) == (engine == "duckdb")


def test_fractions_of_too_many_values_ask_for_memory(tmp_path, monkeypatch):
    source = spread(people(300), tmp_path / "in", 2)
    monkeypatch.setattr(proposal, "room_for", lambda memory, columns: 20)
    with pytest.raises(cv.ParameterError, match=r"'memory' .* enough for the different values of 'income'"):
        propose_scan(source, engine="duckdb")


def test_no_rows_and_no_such_target_are_told(tmp_path):
    people(5).head(0).to_parquet(tmp_path / "none.parquet", index=False)
    with pytest.raises(cv.SchemaError, match="The table is empty"):
        propose_scan(tmp_path / "none.parquet")
    people(5).to_parquet(tmp_path / "some.parquet", index=False)
    with pytest.raises(cv.SchemaError, match="is not a column of the data"):
        propose_scan(tmp_path / "some.parquet", "decision", engine="duckdb")
