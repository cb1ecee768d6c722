"""The encodings of released cells: the appendix of the paper, worked by hand."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.attack.differential.encodings import (
    CATEGORICAL,
    CONTINUOUS,
    Spec,
    encode_axis,
    make_specs,
    parse_encoding,
    quantiles_before,
)
from countervail.core.errors import ParameterError
from countervail.core.region import Regions

AGE = cv.Column("age", "numeric", "quasi")
GENDER = cv.Column("gender", "categorical", "quasi")


def cells(name, values, kind):
    return Regions.from_cells([{name: v} for v in values], cv.Schema((cv.Column(name, kind),))).axes[0]


def age(how, own=30):
    axis = cells("age", [30, pd.Interval(35, 55, closed="both")], "numeric")
    edges = np.array([15.0, 30, 45, 60, 75, 90])
    rows, mine = encode_axis(axis, pd.Series([own], name="age"), Spec(AGE, how, 15, 90, edges, ()))
    return rows.tolist(), mine.tolist()


def gender(how, own="Male"):
    axis = cells("gender", ["Female", "Male", frozenset({"Female", "Male"})], "categorical")
    spec = Spec(GENDER, how, 0, 0, np.zeros(0), ("Female", "Male"))
    rows, mine = encode_axis(axis, pd.Series([own], name="gender"), spec)
    return rows.tolist(), mine.tolist()


# Kassem et al. (2018), appendix A.1. Two slips there: 15 in 7 bits is 0001111, and 45 shifted by 15 is 30.
def test_scaling_takes_midpoints():
    assert age("scaling") == ([[0.2], [0.4]], [0.2])


def test_bounds():
    rows, own = age("bounds")
    assert np.allclose(rows, [[0.2, 0.2], [4 / 15, 8 / 15]])
    assert np.allclose(own, [0.2, 0.2])


def test_binary_digits_of_shifted_midpoints():
    rows, own = age("binary")
    assert rows == [[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 0]]
    assert own == rows[0]


def test_quantiles_after_mark_every_quantile_that_is_met():
    rows, own = age("quantiles-after")
    assert rows == [[0, 1, 0, 0, 0], [0, 1, 1, 0, 0]]
    assert age("quantiles-after", own=90)[1] == [0, 0, 0, 0, 1]
    assert own == rows[0]


def test_hot_marks_all_categories_of_a_set():
    assert gender("hot") == ([[1, 0], [0, 1], [1, 1]], [0, 1])


def test_hot_after_takes_a_set_for_a_category_of_its_own():
    rows, own = gender("hot-after")
    assert np.array(rows).sum(axis=1).tolist() == [1, 1, 1]
    assert len({tuple(r) for r in rows}) == 3
    assert own == rows[1]


def test_binary_numbers_the_generalisations():
    rows, own = gender("binary")
    assert {tuple(r) for r in rows} == {(0, 1), (1, 0), (1, 1)}
    assert own == rows[1]


def test_true_false_of_the_example_in_section_3():
    first = [cells("age", [pd.Interval(15, 25, closed="both"), pd.Interval(17, 20, closed="both")], "numeric")]
    first.append(cells("gender", ["Female", "Male"], "categorical"))
    first.append(cells("country", [frozenset({"France", "Germany"}), frozenset({"Italy", "Germany"})], "categorical"))
    target = [("age", 16), ("gender", "Male"), ("country", "France")]
    out = []
    for axis, (name, value) in zip(first, target):
        spec = Spec(cv.Column(name), "tf", 0, 0, np.zeros(0), ())
        rows, own = encode_axis(axis, pd.Series([value], name=name), spec)
        assert own.tolist() == [1]
        out.append(rows[:, 0].tolist())
    assert np.array(out).T.tolist() == [[1, 0, 1], [0, 1, 0]]


def test_missing_values_are_no_number():
    axis = cells("age", [None, frozenset({30, None})], "numeric")
    spec = Spec(AGE, "scaling", 15, 90, np.zeros(0), ())
    rows, own = encode_axis(axis, pd.Series([np.nan], name="age"), spec)
    assert rows.tolist() == [[0], [0.2]]
    assert own.tolist() == [0]
    spec = Spec(AGE, "tf", 15, 90, np.zeros(0), ())
    assert encode_axis(axis, pd.Series([np.nan], name="age"), spec)[0].tolist() == [[1], [1]]


def test_all_twenty_four_are_named():
    names = {f"{a}-{b}" for a in CONTINUOUS for b in CATEGORICAL}
    assert len(names) == 24
    assert {parse_encoding(n, "X") for n in names} == {(a, b) for a in CONTINUOUS for b in CATEGORICAL}
    with pytest.raises(ParameterError, match="'encoding'"):
        parse_encoding("tf", "X")


def test_quantiles_before_make_categories():
    frame = pd.DataFrame({"age": [1, 2, 3, 4, np.nan], "level": list("aabbc"), "ill": list("xyxyx")})
    schema = cv.Schema(
        (
            AGE,
            cv.Column("level", "ordinal", "quasi", levels=("a", "b", "c")),
            cv.Column("ill", role="sensitive"),
        )
    )
    out = quantiles_before(cv.Table(frame, schema), 2)
    assert [c.type for c in out.schema] == ["categorical"] * 3
    assert out.frame["age"].isna().tolist() == [False] * 4 + [True]
    assert out.frame["age"].iloc[:4].tolist() == ["quantile 1"] * 2 + ["quantile 2"] * 2
    assert make_specs(out, ("tf", "hot"), 2)[0].values == ("quantile 1", "quantile 2", None)


def people(genders):
    frame = pd.DataFrame({"gender": genders, "ill": ["x", "y"] * (len(genders) // 2)})
    return cv.Table.from_frame(frame, quasi_identifiers=["gender"], sensitive=["ill"])


def features(how, table, released):
    (spec,) = make_specs(table, ("tf", how), 2)
    rows, own = encode_axis(cells("gender", released, "categorical"), table.frame["gender"].iloc[:1], spec)
    assert rows.shape == (len(released), len(own))
    return len(own)


# Kassem et al. (2018), appendix A.1: gender takes 2 features when hot, 2 in binary and 3 when hot after anonymization.
@pytest.mark.parametrize(("how", "n"), [("hot", 2), ("binary", 2), ("hot-after", 3), ("tf", 1)])
def test_a_table_without_gaps_has_the_papers_number_of_features(how, n):
    assert features(how, people(["Male", "Female"] * 2), ["Female", "Male", frozenset({"Female", "Male"})]) == n


@pytest.mark.parametrize(("how", "n"), [("hot", 3), ("binary", 3), ("hot-after", 4), ("tf", 1)])
def test_what_is_missing_anywhere_in_the_table_has_its_feature_in_both_releases(how, n):
    table = people(["Male", "Female", None, "Male"])
    everybody = ["Female", "Male", None, frozenset({"Female", "Male"})]
    without_the_gap = ["Female", "Male", frozenset({"Female", "Male"})]
    assert features(how, table, everybody) == features(how, table, without_the_gap) == n
