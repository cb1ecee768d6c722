"""Columns and counts of noisy tables, which have rows but no classes."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wasserstein_distance

import countervail as cv
from countervail.core.errors import SchemaError
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.testing import small_table

TABLE = small_table(300)


def noisy(epsilon):
    return cv.DPTable(epsilon, random_state=0).fit(TABLE).protect(TABLE)


def test_every_noisy_column_has_a_shift():
    release = noisy(1.0)
    shifts = {s.name: s.distance for s in cv.measure.column_shifts(release)}
    assert list(shifts) == TABLE.schema.features == list(release.others.columns)
    both = [np.asarray(f["age"], float) for f in (TABLE.frame, release.others)]
    reach = max(map(np.max, both)) - min(map(np.min, both))
    assert shifts["age"] == pytest.approx(wasserstein_distance(*both) / reach)
    before, after = (f["city"].value_counts(normalize=True) for f in (TABLE.frame, release.others))
    assert shifts["city"] == pytest.approx(before.sub(after, fill_value=0).abs().sum() / 2)


def test_columns_move_less_with_less_noise():
    little, much = (np.mean([s.distance for s in cv.measure.column_shifts(noisy(e))]) for e in (1000.0, 0.1))
    assert little < 0.01 < much


def test_counts_can_be_asked_of_a_noisy_table():
    little, much = (cv.measure.query_error(noisy(e), queries=50).median for e in (1000.0, 0.1))
    assert little < much


def test_released_numbers_beyond_the_table_count():
    """Ages 10 and 20 become 10 and 30: the second moved 10 of a range of 20, one of two people."""
    schema = cv.Schema((cv.Column("age", "numeric", "quasi"),))
    table = cv.Table(pd.DataFrame({"age": [10, 20]}), schema)
    release = Release(Regions((), 2), np.arange(2), pd.DataFrame({"age": [10, 30]}), schema, cv.NoGuarantee("test"))
    assert cv.measure.column_shifts(release, table=table)[0].distance == pytest.approx(10 / 20 / 2)


def test_a_release_without_any_feature_of_the_table_says_so():
    release = Release(Regions((), 3), np.arange(3), pd.DataFrame(index=range(3)), cv.Schema(()), cv.NoGuarantee("test"))
    with pytest.raises(SchemaError, match="shows none"):
        cv.measure.column_shifts(release, table=TABLE)
