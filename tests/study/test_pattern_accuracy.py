"""What pattern tables of Inuiguchi et al. leave open, and what it does to the figures."""

import numpy as np
import pytest

import countervail as cv
from countervail.protect.patterns.compose import PatternParts, compose
from countervail.rules import LERS
from countervail.rules.induce import Inducer
from countervail.rules.inputs import build_value_table
from countervail.study.reproduce.papers.inuiguchi import _PATTERNS, CHOICES
from countervail.study.reproduce.values import printed
from countervail.study.reproduce.work.patterns import anonymised, pattern_source
from countervail.study.reproduce.work.toys import _RULES, words


def in_order(table, names):
    """The same table with its feature columns in another order."""
    schema = cv.Schema((*(table.schema[n] for n in names), table.schema["species"]), table.schema.favourable)
    return cv.Table(table.frame[[*names, "species"]], schema)


def accuracy(table, k, method):
    """Ten-fold, in the paper's semantics, with the folds of the reproduction."""
    y = np.array(table.target.astype(object))
    fold = np.empty(len(table), dtype=int)
    fold[np.random.default_rng(0).permutation(len(table))] = np.arange(len(table)) % 10
    right = 0
    for i in range(10):
        release = anonymised(method, k, table.take(fold != i))
        right += (LERS(semantics="paper").fit(release).predict(table.take(fold == i).features) == y[fold == i]).sum()
    return right / len(table)


def test_the_order_of_columns_alone_crosses_the_printed_accuracy():
    iris, said = pattern_source("iris"), float(printed("inuiguchi")["8"]["iris, k=5", "cT3"])
    given = accuracy(iris, 5, "cT3")
    width_first = accuracy(in_order(iris, ["petal_width", "sepal_length", "sepal_width", "petal_length"]), 5, "cT3")
    assert given < said - 0.15 and width_first > said


def test_setosa_patterns_contradict_no_narrow_rule():
    iris = pattern_source("iris")
    release = anonymised("cT3", 5, iris)
    found = LERS(semantics="paper").fit(release)
    too_general = [r for r in map(str, (s.sentence for s in found.rules_)) if "sepal_length is at least 4.9 then" in r]
    assert too_general and all("setosa" not in r for r in too_general)
    setosa = iris.frame[iris.frame["species"].astype(str) == "setosa"]
    wrong = setosa[setosa["sepal_length"] >= 4.9]
    assert len(wrong) > len(setosa) / 2 and (found.predict(wrong[list(iris.schema.features)]) != "setosa").mean() > 0.9


@pytest.mark.parametrize(("spread", "domicile"), [(False, "Osaka or Tokyo"), (True, "Fukuoka or Osaka or Tokyo")])
def test_step_s5b_gives_wider_patterns_than_table_5_prints(spread, domicile):
    """o1 has I3 with o2 and I6 with o6; neither rule names a domicile; o1, o2 and o6 live in three."""
    table = cv.load("toy_evaluation")
    values = build_value_table(table.features, table.target, table.schema, "test")
    rules = Inducer(values).unions(2)
    picked, others = CHOICES[0][0]
    assert (picked, others) == (("I3", "I6"), (2, 6))
    parts = PatternParts(tuple(_RULES[r] for r in picked), tuple((0, other - 1) for other in others))
    shown = compose(values, rules, [parts], spread, "evaluation").to_frame()
    assert words(shown["domicile"].iloc[0]) == domicile
    assert _PATTERNS["cT1"][0][2] == "Osaka or Tokyo"
