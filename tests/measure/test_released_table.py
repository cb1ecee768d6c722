"""What a released table costs, on values that can be checked by hand."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail import measure
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.region import Regions
from countervail.core.release import Release

SCHEMA = cv.Schema(
    (cv.Column("age", "numeric", "quasi"), cv.Column("city", role="quasi"), cv.Column("ok", role="target")), ("yes",)
)
TABLE = cv.Table(
    pd.DataFrame({"age": [20, 24, 30, 60, 60], "city": list("aabcd"), "ok": ["yes", "yes", "no", "no", "yes"]}), SCHEMA
)


def release(**changes):
    cells = [
        {"age": pd.Interval(20, 30, closed="both"), "city": frozenset("ab")},
        {"age": 60, "city": frozenset("cd")},
    ]
    parts = {
        "regions": Regions.from_cells(cells, SCHEMA),
        "groups": np.array([0, 0, 0, 1, 1]),
        "others": TABLE.frame[["ok"]],
        "schema": SCHEMA,
        "guarantee": cv.KAnonymity(2),
        "audit": TABLE,
    }
    return Release(**{**parts, **changes})


def test_ncp_is_the_mean_of_width_and_set_size():
    """Age 10 of 40 and two of four cities; a plain age and two of four cities."""
    expected = [(0.25 + 0.5) / 2] * 3 + [(0 + 0.5) / 2] * 2
    assert measure.ncp(release()) == pytest.approx(expected)
    assert measure.ncp(release(), weights={"age": 1.0, "city": 0.0})[0] == pytest.approx(0.25)
    assert measure.ncp(release(audit=None), table=TABLE) == pytest.approx(expected)


def test_discernibility_squares_class_sizes_and_charges_suppression():
    assert measure.discernibility(release()) == 9 + 4
    assert measure.discernibility(release(suppressed=2)) == 9 + 4 + 2 * 7


def test_average_class_size():
    assert measure.average_class_size(release()) == 2.5
    assert measure.average_class_size(release(), k=2) == 1.25
    with pytest.raises(ParameterError, match="'k'"):
        measure.average_class_size(release(), k=0)


def test_classification_metric_counts_minorities():
    """One of three in the first class, one of two in the second."""
    assert measure.classification_metric(release()) == pytest.approx(2 / 5)
    with pytest.raises(SchemaError, match="no target"):
        measure.table.classification_metric(release(schema=SCHEMA.with_roles(target=[])))


def test_risks():
    found = measure.release_risk(release())
    assert (found.prosecutor, found.journalist, found.marketer) == (0.5, 0.5, 2 / 5)
    population = cv.Table(pd.concat([TABLE.frame] * 4), SCHEMA)
    wide = measure.release_risk(release(), population=population)
    assert (wide.prosecutor, wide.journalist) == (0.5, 1 / 8)
    assert wide.marketer == pytest.approx((3 / 12 + 2 / 8) / 5)
    assert set(found.to_dict()) == {"prosecutor", "journalist", "marketer"}


def test_a_population_without_the_released_people_is_refused():
    with pytest.raises(ParameterError, match="nobody in 1 of the classes"):
        measure.release_risk(release(), population=TABLE.take([0, 1, 2]))


@pytest.mark.parametrize("name", ["ncp", "discernibility", "classification_metric"])
def test_one_name_serves_both_and_nothing_else(name):
    with pytest.raises(ParameterError, match="Explanations or a Release"):
        getattr(measure, name)(TABLE)


def test_explanations_still_need_their_model():
    table = cv.load("toy_credit")
    e = cv.CFK(k=3).fit(table, cv.data.toy_credit_model).explain(cv.data.toy_credit_query())
    assert measure.ncp(e).shape == (1,)
    assert measure.discernibility(e) >= 3
    assert 0 <= measure.classification_metric(e, cv.data.toy_credit_model) <= 1
    with pytest.raises(ParameterError, match="'model'"):
        measure.classification_metric(e)


def test_measured_ncp_is_what_the_cuts_minimise():
    """The kernels count NCP in codes; the measure counts it on what was published."""
    from countervail.protect.mondrian.columns import describe, encode
    from countervail.protect.mondrian.narrow import rows_loss

    table = cv.load("german_credit")
    protector = cv.Mondrian(k=10).fit(table)
    quasi, codes = encode(table, {})
    data, q = describe(quasi, tree_loss=False), len(quasi)
    cells = [np.flatnonzero(protector.cell_of_ == c).astype(np.int32) for c in range(len(protector.regions_))]
    stamp = np.full(data.positions.shape[1], -1, np.int64)
    inside = np.array(
        [[rows_loss(codes, rows, j, data, stamp, c * q + j) for j in range(q)] for c, rows in enumerate(cells)]
    )
    published = measure.ncp(protector.protect(table)).mean()
    assert inside.mean(axis=1)[protector.cell_of_].mean() == pytest.approx(published)


@pytest.mark.parametrize("dtype", ["int8", "Int8", "int64", "float32"])
def test_the_range_of_narrow_numbers_does_not_overflow(dtype):
    """From -100 to 100 is 200, which no int8 holds; a class of 0 to 50 is a quarter of it."""
    schema = cv.Schema((cv.Column("a", "numeric", "quasi"),))
    table = cv.Table(pd.DataFrame({"a": pd.array([-100, 0, 50, 100], dtype=dtype)}), schema)
    cells = [{"a": -100}, {"a": pd.Interval(0, 50, closed="both")}, {"a": 100}]
    r = release(
        regions=Regions.from_cells(cells, schema),
        groups=np.array([0, 1, 1, 2]),
        others=pd.DataFrame(index=range(4)),
        schema=schema,
        audit=table,
    )
    assert measure.ncp(r).tolist() == [0.0, 0.25, 0.25, 0.0]
