"""Differential inference testing of releases that show sets of sensitive values, such as tables of patterns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import countervail as cv
from countervail.attack.differential.general import ReadRelease
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.testing import small_table

NAMES = ["age", "city", "level"]


def patterns(table):
    return cv.KCommonPatterns(k=3).fit(table).protect(table)


@pytest.mark.parametrize("anonymiser", [cv.KCommonPatterns(k=3), patterns], ids=["protector", "function"])
@pytest.mark.parametrize("sensitive", ["ill", "ok"])
def test_tables_of_patterns_are_tested_like_any_other_release(anonymiser, sensitive):
    test = cv.DifferentialInferenceTest(anonymiser, n_records=4, beside=2)
    result = test.run(small_table(40), sensitive)
    assert result.path == "general"
    assert result.control is None
    assert ((result.d_pp >= 0) & (result.d_pp <= 1)).all()
    assert result.d_pp.max() > 0
    assert set(result.beside) == {"identity", "second learner", "identity, second learner"}


@pytest.mark.parametrize("encoding", ["tf-tf", "scaling-hot"])
def test_each_member_of_a_set_gets_its_share_of_the_row(encoding):
    table = small_table(40)
    release = patterns(table)
    test = cv.DifferentialInferenceTest(patterns, n_records=2, beside=0, encoding=encoding)
    own = test.run(table)
    release_rows = release.to_frame()
    shares = [len(c) if isinstance(c, frozenset) else 1 for c in release_rows["ill"]]
    published = ReadRelease.of(release, NAMES, "ill", ("no", "yes"))
    assert max(shares) == 2
    assert len(published.secret) == sum(shares)
    assert published.weight.sum() == pytest.approx(len(release))
    slow = cv.DifferentialInferenceTest(patterns, learner=_Plain(), n_records=2, beside=0, encoding=encoding)
    assert abs(slow.run(table).d_pp - own.d_pp).max() < 1e-12


class _Plain(BernoulliNB):
    """The same learner, given every row rather than counts of equal ones."""


def test_a_set_of_everything_tells_as_much_as_its_members_in_equal_shares():
    table = small_table(12)
    cells = [{"age": pd.Interval(0, 99, closed="both"), "ill": frozenset({"no", "yes"})}]
    cells = [{**c, "city": frozenset("abc"), "level": frozenset({"low", "mid", "high"})} for c in cells]
    regions = Regions.from_cells(cells, table.schema)

    def vague(given):
        n = len(given)
        return Release(regions, np.zeros(n, int), pd.DataFrame(index=range(n)), given.schema, cv.NoGuarantee("test"))

    result = cv.DifferentialInferenceTest(vague, beside=0, learner=DecisionTreeClassifier()).run(table)
    assert result.epsilon == 0
    assert ReadRelease.of(vague(table), NAMES, "ill", ("no", "yes")).weight.tolist() == [0.5] * 24


def test_a_learner_that_takes_no_weights_is_named():
    test = cv.DifferentialInferenceTest(patterns, learner=KNeighborsClassifier(3), n_records=2, beside=0)
    with pytest.raises(ParameterError, match="sample_weight"):
        test.run(small_table(40))


def test_sets_without_any_value_of_the_table_are_refused():
    with pytest.raises(SchemaError, match="that the table does not have"):
        ReadRelease.of(patterns(small_table(40)), NAMES, "ill", ("never", "seen"))
