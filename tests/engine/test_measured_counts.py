"""Measures of a written release, from what an engine counts: those of the release in memory."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows_in_files import ROLES, people, spread

import countervail as cv
from countervail.engine.published import count_published

EXAMPLES = max(settings.default.max_examples // 5, 1)
OPTIONS = st.sampled_from([{}, {"suppress": 0.1}, {"l": 2, "sensitive": "illness"}, {"choose": "span"}])


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(OPTIONS, st.integers(2, 9), st.integers(0, 999), st.sampled_from([1, 2, 4]))
def test_every_engine_measures_a_release_as_it_is_measured_in_memory(tmp_path_factory, options, k, seed, files):
    folder, frame = tmp_path_factory.mktemp("measured"), people(80, seed)
    wanted = cv.Mondrian(k, **options).fit(cv.Table.from_frame(frame, **ROLES)).protect()
    scan = cv.Table.scan(spread(frame, folder / "in", files, seed), **ROLES)
    written = cv.Mondrian(k, **options).fit(scan).write(folder / "out")
    for engine in ("memory", "duckdb"):
        found = count_published(
            folder / "out", scan.schema, ["granted"], engine=engine, suppressed=written.suppressed
        )  # fmt: skip
        assert cv.measure.discernibility(found) == cv.measure.discernibility(wanted)
        assert cv.measure.average_class_size(found, k=k) == cv.measure.average_class_size(wanted, k=k)
        assert cv.measure.classification_metric(found) == cv.measure.classification_metric(wanted)
        assert cv.measure.release_risk(found) == cv.measure.release_risk(wanted)


def test_a_population_is_not_compared_with_counts(tmp_path):
    table = cv.Table.from_frame(people(80), **ROLES)
    scan = cv.Table.scan(spread(people(80), tmp_path / "in", 2), **ROLES)
    cv.Mondrian(4).fit(scan).write(tmp_path / "out")
    found = count_published(tmp_path / "out", scan.schema)
    with pytest.raises(cv.ParameterError, match=r"'population' .* left out for counts of a written release"):
        cv.measure.release_risk(found, population=table)
