"""People whom a release may speak of, counted among rows in an engine: as many as in a table with the same rows."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows_in_files import ROLES, people, spread

import countervail as cv
from countervail.attack.shared.released import people_behind
from countervail.attack.singling_out import SinglingOut, count_people
from countervail.core import region
from countervail.engine import Scan

EXAMPLES = max(settings.default.max_examples // 5, 1)
CONDITIONS = st.sampled_from([{}, {"conditions": "univariate"}, {"columns": "features"}])


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(2, 9), st.integers(0, 999), st.sampled_from([1, 2, 4]), CONDITIONS, st.booleans())
def test_every_engine_counts_as_many_as_a_table_holds(tmp_path_factory, k, seed, files, how, tree):
    folder, frame = tmp_path_factory.mktemp("people"), people(90, seed).assign(age=lambda f: f["age"] // 9)
    table, source = cv.Table.from_frame(frame, **ROLES), spread(frame, folder / "in", files, seed)
    release = cv.Mondrian(k).fit(table).protect()
    names = table.schema.names("quasi") if "columns" not in how else table.schema.features
    asked = SinglingOut(n_targets=30, **how).predicates(release, names)
    with pytest.MonkeyPatch.context() as patch:
        if tree:
            patch.setattr(region, "_PAIRS", 0)
        behind, alone = people_behind(release, table.select("quasi")), count_people(asked, table.frame)
        wanted = cv.measure.release_risk(release, population=table)
        for engine in ("memory", "duckdb"):
            scan = cv.Table.scan(source, engine=engine, threads=2, **ROLES)
            assert np.array_equal(people_behind(release, scan), behind)
            assert np.array_equal(count_people(asked, scan), alone)
            assert cv.measure.release_risk(release, population=scan) == wanted
            scan.close()


def test_plain_rows_are_looked_up_with_their_counts(tmp_path):
    frame = people(90).assign(age=lambda f: f["age"] // 9, income=1.0)
    table, scan = cv.Table.from_frame(frame, **ROLES), cv.Table.scan(spread(frame, tmp_path / "in", 2), **ROLES)
    asked = cv.core.region.Regions.from_cells(table.select("quasi").dropna().head(20).to_dict("records"), table.schema)
    assert np.array_equal(count_people(asked, scan), count_people(asked, table.frame))


def test_too_little_memory_is_said_with_the_setting(tmp_path, monkeypatch):
    table = cv.Table.from_frame(people(90), **ROLES)
    scan = cv.Table.scan(spread(people(90), tmp_path / "in", 2), engine="duckdb", **ROLES)
    monkeypatch.setattr(Scan, "budget", lambda self, columns: 20)
    with pytest.raises(cv.ParameterError, match=r"'memory' .* distinct rows of .*more than 20.*--memory"):
        cv.measure.release_risk(cv.Mondrian(5).fit(table).protect(), population=scan)
