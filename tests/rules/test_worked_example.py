"""The worked example of Inuiguchi, Ichida, Torra (2019): Tables 1, 2, 4, 5, 6, and the attack on Tokyo."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.attack import Knowledge, Shallow
from countervail.protect.patterns.compose import PatternParts, compose
from countervail.rules import Inducer
from countervail.rules.induce import mark_inside
from countervail.rules.inputs import build_value_table

TABLE = cv.load("toy_evaluation")
VALUES = build_value_table(TABLE.features, TABLE.target, TABLE.schema, "test")
I3, I4, I6, I5, I1, I2 = range(6)  # where the paper's rules are in ours
M, F, MF = "male", "female", frozenset({"male", "female"})
S, E, SE = "salesman", "engineer", frozenset({"salesman", "engineer"})
LH, LM, MH = frozenset({"low", "high"}), frozenset({"low", "medium"}), frozenset({"medium", "high"})
TO, OF, TF = frozenset({"Tokyo", "Osaka"}), frozenset({"Osaka", "Fukuoka"}), frozenset({"Tokyo", "Fukuoka"})

# Table 4: for each object the rules chosen, and for each rule the other object (numbered from 1).
TABLE_4 = {
    "cT1": [
        ((I3, I6), (2, 6)),
        ((I4, I6), (3, 6)),
        ((I1, I4), (4, 2)),
        ((I2, I5), (5, 6)),
        ((I2, I3), (4, 1)),
        ((I3, I5), (1, 4)),
    ],
    "cT3": [
        ((I3, I6), (2, 6)),
        ((I4, I6), (3, 6)),
        ((I1, I4), (4, 1)),
        ((I2, I5), (5, 6)),
        ((I2, I3), (4, 2)),
        ((I3, I5), (5, 4)),
    ],
}
TABLE_5 = {
    "cT1": [
        (M, S, TO, LH),
        (M, S, OF, MH),
        (MF, S, "Tokyo", LH),
        (M, S, TF, MH),
        (F, SE, TF, LM),
        (MF, E, OF, LM),
        (MF, SE, "Fukuoka", MH),
        (M, SE, "Osaka", LH),
        (M, S, OF, LH),
    ],
    "cT3": [
        (M, S, TO, LH),
        (M, S, OF, MH),
        (MF, S, "Tokyo", LH),
        (M, S, TF, MH),
        (F, SE, TF, LM),
        (MF, S, TO, LH),
        (MF, E, OF, LM),
        (MF, SE, "Fukuoka", MH),
        (M, SE, TO, LH),
        (M, SE, OF, LH),
    ],
}
# Table 6: conditions, conclusion, and the tables that the rule comes from.
TABLE_6 = [
    ({"sex": F}, LM, ("cT1", "cT3")),
    ({"occupation": E}, LM, ("cT1", "cT3")),
    ({"sex": M, "domicile": TO}, LH, ("cT1", "cT3")),
    ({"domicile": "Tokyo"}, LH, ("cT1", "cT3")),
    ({"domicile": "Fukuoka"}, MH, ("cT1", "cT3")),
    ({"occupation": S, "domicile": TO}, LH, ("cT1", "cT3")),
    ({"sex": M, "domicile": TF}, MH, ("cT1", "cT3")),
    ({"occupation": S, "domicile": OF}, frozenset({"high"}), ("cT1",)),
    ({"occupation": S, "domicile": OF}, MH, ("cT3",)),
]


def patterns(name):
    """A pattern table from the choices of Table 4."""
    rules = Inducer(VALUES).unions(2)
    choices = [
        PatternParts(picked, tuple((u, other - 1) for other in others))
        for u, (picked, others) in enumerate(TABLE_4[name])
    ]
    return compose(VALUES, rules, choices, False, "evaluation")


def release(name):
    regions = patterns(name)
    n = len(regions)
    others = pd.DataFrame(index=pd.RangeIndex(n))
    return cv.Release(regions, np.arange(n), others, TABLE.schema, cv.KCommonality(2))


def test_table_2_is_found():
    found = Inducer(VALUES, target="evaluation").unions(2)
    assert [r.sentence for r in found] == [
        "If sex is male then evaluation is high or low.",
        "If occupation is salesman then evaluation is high or low.",
        "If sex is male and occupation is salesman then evaluation is high or medium.",
        "If domicile is Fukuoka then evaluation is high or medium.",
        "If sex is female then evaluation is low or medium.",
        "If occupation is engineer then evaluation is low or medium.",
    ]
    assert (found.support >= 2).all()


@pytest.mark.parametrize("name", ["cT1", "cT3"])
def test_the_choices_of_table_4_give_table_5(name):
    shown = patterns(name).to_frame()
    assert list(shown.itertuples(index=False, name=None)) == TABLE_5[name]


@pytest.mark.parametrize("name", ["cT1", "cT3"])
def test_table_5_is_2_common(name):
    assert cv.KCommonality(2).refute(release(name), TABLE) is None
    assert "fit fewer than k=3" in cv.KCommonality(3).refute(release(name), TABLE)


@pytest.mark.parametrize(("cells", "conclusion", "names"), TABLE_6)
def test_the_rules_of_table_6_are_valid(cells, conclusion, names):
    for name in names:
        shown = release(name).to_frame()
        values = build_value_table(shown[VALUES.names], shown["evaluation"], TABLE.schema, "test")
        union = sum(1 << values.classes.index(c) for c in conclusion)
        inside, _ = Inducer(values, "paper").lower(union)
        asked = pd.DataFrame({n: shown[n].map(lambda v, n=n: _set(v) <= _set(cells[n])) for n in cells})
        met = asked.all(axis=1).to_numpy()[[values.group.tolist().index(i) for i in range(len(values))]]
        assert met.any() and not (met & ~inside).any()


def _set(cell):
    return cell if isinstance(cell, frozenset) else frozenset({cell})


def test_two_rules_of_table_6_are_not_minimal():
    shown = release("cT1").to_frame()
    values = build_value_table(shown[VALUES.names], shown["evaluation"], TABLE.schema, "test")
    inducer = Inducer(values, "paper", "evaluation")
    low_or_high = sum(1 << values.classes.index(c) for c in LH)
    found = inducer.cover([low_or_high])
    assert "If domicile is Osaka or Tokyo then evaluation is high or low." in [r.sentence for r in found]
    for r in range(len(found)):
        inside, _ = inducer.lower(low_or_high)
        assert not (mark_inside(found, r, values) & ~inside).any()


def test_living_in_tokyo_reveals_the_occupation_but_not_the_sex():
    domains = {n: list(TABLE.schema[n].domain) for n in TABLE.schema.features}
    known = Knowledge(pd.DataFrame({"domicile": ["Tokyo"]}), pd.DataFrame(), ("sex", "occupation"), domains)
    guess = Shallow(known=1).guess(release("cT1"), known)
    assert guess["occupation"].tolist() == ["salesman"]
    assert guess["sex"].isna().all()


def test_two_attributes_say_less_in_the_patterns_than_in_the_table():
    """Section 3: female and salesman give Tokyo or Fukuoka, and low or medium; the table gives Tokyo and low."""
    domains = {n: list(TABLE.schema[n].domain) for n in TABLE.schema.names()}
    known = Knowledge(
        pd.DataFrame({"sex": ["female", "male"], "occupation": ["salesman", "engineer"]}),
        pd.DataFrame(),
        ("domicile", "evaluation"),
        domains,
    )
    assert Shallow().guess(release("cT3"), known).isna().all(axis=None)
    plain = cv.Release(*_open())
    assert Shallow().guess(plain, known).to_numpy().tolist() == [["Tokyo", "low"], ["Osaka", "low"]]


def _open():
    regions = cv.Regions.from_cells(TABLE.frame.astype(object).to_dict("records"), TABLE.schema)
    n = len(regions)
    return regions, np.arange(n), pd.DataFrame(index=pd.RangeIndex(n)), TABLE.schema, cv.NoGuarantee("raw")
