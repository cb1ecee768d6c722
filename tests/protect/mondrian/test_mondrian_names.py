"""Classes named by groups of a hierarchy: cuts that are worth it only together, and the goals on Adult."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.errors import DataNotFoundError
from countervail.core.hierarchy import Hierarchy
from countervail.core.loss import ncp

ARX = Path(__file__).resolve().parents[4] / "shared" / "data" / "hierarchies" / "adult"
Q5 = ("age", "sex", "race", "relationship", "marital-status")
GOALS = {"Q5": (Q5, 1.15), "Q8": ((*Q5, "workclass", "education-num", "occupation"), 7.6)}
LETTERS = Hierarchy(
    (("a", "vowel", "*"), ("e", "vowel", "*"), ("b", "other", "*"), ("c", "other", "*"), ("d", "other", "*")), "letter"
)


def table_of(letters, numbers=None):
    frame = pd.DataFrame({"letter": letters, "x": numbers if numbers is not None else [0] * len(letters)})
    schema = cv.Schema((cv.Column("letter", "categorical", "quasi"), cv.Column("x", "numeric", "quasi")))
    return cv.Table(frame, schema)


def named(table, k, **settings):
    protector = cv.Mondrian(k, hierarchies={"letter": LETTERS}, labels="hierarchy", **settings).fit(table)
    return protector, sorted(set(protector.protect(table).to_text_frame()["letter"]))


def test_siblings_are_set_apart_one_by_one():
    _, labels = named(table_of(list("aaabbbcccddd")), 3)
    assert labels == ["a", "b", "c", "d"]


def test_small_siblings_are_pooled_under_the_name_of_their_group():
    """Two c and two d need each other; b is large enough alone."""
    _, labels = named(table_of(list("aaaeee" + "bbbb" + "ccdd")), 3)
    assert labels == ["a", "b", "e", "other"]


def test_a_division_that_pays_only_when_carried_through_is_begun():
    """Sixteen rows at k=4. Half of x saves 2/3 of its loss for one bit: 10.7. One letter apart saves the loss of four
    rows, all four apart of 16 for two bits: 11.3 per root of bits. By the first cut alone, no letter would be told."""
    flat = {"letter": Hierarchy((("a",), ("b",), ("c",), ("d",)), "letter")}
    table = table_of(list("bbbbccccddddaaaa"), [0, 1, 2, 3] * 4)
    protector = cv.Mondrian(4, hierarchies=flat, labels="hierarchy").fit(table)
    labels = sorted(set(protector.protect(table).to_text_frame()["letter"]))
    assert labels == ["a", "b", "c", "d"]
    assert len(protector.regions_) == 4


def test_values_that_only_the_hierarchy_knows_are_no_loss():
    table = table_of(list("aaabb"))  # no c, d, e in the table
    protector, labels = named(table, 3)
    assert labels == ["*"]
    assert ncp(protector.regions_, table).tolist() == [0.5]  # all of the letters, nothing of x


def test_names_never_keep_a_class_larger_than_sets_would():
    """If nothing made for names is admissible, the cuts for sets are tried."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        table = table_of(rng.choice(list("abcde"), 40, p=[0.4, 0.1, 0.2, 0.2, 0.1]), rng.integers(0, 3, 40))
        protector, _ = named(table, 5)
        for cell in range(len(protector.regions_)):
            rows = table.frame[protector.cell_of_ == cell]
            if len(rows) >= 10:
                counts = rows["letter"].value_counts()
                assert counts.iloc[0] < 5 or len(rows) - counts.iloc[0] < 5


@pytest.mark.parametrize("name", sorted(GOALS))
def test_the_goal_on_adult_is_met(name):
    """Goals: ARX's local recoding with names, as measured for the specification; numbers are intervals."""
    quasi, goal = GOALS[name]
    try:
        table = cv.load("adult").with_roles(quasi=quasi, sensitive=[])
    except DataNotFoundError:
        pytest.skip("needs the registered data set 'adult'")
    if not ARX.is_dir():
        pytest.skip("needs the hierarchies of ARX beside the checkout")
    trees = {n: ARX / f"{n}.csv" for n in quasi if n != "age" and (ARX / f"{n}.csv").is_file()}
    release = cv.Mondrian(10, hierarchies=trees, labels="hierarchy").fit(table).protect(table)
    assert 100 * cv.measure.ncp(release).mean() <= goal
    assert np.bincount(release.classes()).min() >= 10
