"""`by=`: groups of askers and of people in a table, and what is measured beside the attacks."""

import html

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.attack.shared.planted import open_release
from countervail.auditing.finding import GROUP
from countervail.auditing.result import Audit, verify
from countervail.core.errors import ParameterError
from countervail.testing import small_model, small_table


def open_to_one_city(members):
    """A table in which the rows of city a are as they are, and all others are somebody else's."""
    frame = members.frame.copy()
    rest = (frame["city"] != "a").to_numpy()
    rng = np.random.default_rng(0)
    for name in members.schema.features:
        if name != "city":
            frame.loc[rest, name] = rng.permutation(frame.loc[rest, name].to_numpy())
    return open_release(cv.Table(frame, members.schema))


def test_people_of_one_group_in_a_table_are_seen_to_be_exposed():
    members, others = small_table(900).split(test_size=0.5, random_state=0)
    made = cv.audit(
        open_to_one_city(members), members, control=others, by="city", attacks=["membership"], jobs=1, budget=None
    )
    worst = made["membership"].worst
    assert worst.group == "a" and worst.of == 3 and worst.excess().level == pytest.approx(1 - 0.05 / 3)
    assert worst.excess().low > made["membership"].counts.excess().high
    said = {d.criterion: d for d in made.decisions}["membership"]
    assert said.word == "reject" and any("in the group 'a'" in r for r in said.reasons)
    assert not verify(made.to_json())


def test_groups_fare_with_intervals_that_are_sure_together():
    members, others = small_table(900).split(test_size=0.6, random_state=0)
    answers = cv.CFK(k=5).fit(members, small_model).explain(others)
    made = cv.audit(answers, members, control=others, by="city", attacks=["linkage"], jobs=1, budget=None)
    groups = made.beside["groups"]
    assert set(groups) <= set(members.frame["city"].unique())
    city = others.frame["city"].to_numpy()
    for name, found in groups.items():
        there = pd.Series(answers.found[city[answers.query] == name]).groupby(
            answers.query[city[answers.query] == name]
        )
        assert found["asked"] == len(there) and found["answered"]["value"] == pytest.approx(there.max().mean())
        assert found["answered"]["level"] == pytest.approx(1 - 0.05 / len(groups))
    page = made.to_html()
    assert "How groups fare" in page and Audit.from_json(made.to_json()).beside == made.beside


def test_one_persons_influence_on_a_table_is_measured_and_decides_nothing():
    members, others = small_table(400).split(test_size=0.5, random_state=0)
    protector = cv.Mondrian(k=5).fit(members)
    made = cv.audit(protector, members, control=others, attacks=["linkage"], jobs=1, budget=None)
    found = made.beside["influence"]
    direct = cv.DifferentialInferenceTest(cv.Mondrian(k=5), n_records=200, beside=0).run(members, found["column"])
    assert found["mean"]["value"] == pytest.approx(direct.mean)
    assert "What one person's record changes" in html.unescape(made.to_html())
    released = protector.protect(members)
    alone = cv.audit(released, members, control=others, attacks=["linkage"], jobs=1, budget=None)
    assert alone.beside["influence"] == {
        "column": None,
        "why": "only the table was given, and no protector that could be run again",
    }


def test_a_column_that_nobody_has_or_of_many_values_parts_no_table():
    members, others = small_table(400).split(test_size=0.5, random_state=0)
    released = open_release(members)
    with pytest.raises(ParameterError, match="'by' parameter of audit must be a column of the people in the table"):
        cv.audit(released, members, control=others, by="moon", attacks=["membership"], jobs=1)
    with pytest.raises(ParameterError, match="at most 20 values"):
        cv.audit(released, members, control=others, by="age", attacks=["membership"], jobs=1)


def test_every_group_of_a_table_has_an_interval_and_the_worst_is_among_them():
    members, others = small_table(600).split(test_size=0.5, random_state=0)
    made = cv.audit(
        open_release(members), members, control=others, by="city", attacks=["membership"], jobs=1, budget=None
    )
    found = made["membership"]
    each = {n.removeprefix(GROUP): e for n, e in found.detail.items() if n.startswith(GROUP)}
    assert set(each) == {"a", "b", "c"}
    assert each[found.worst.group] == found.worst.excess()
    assert all(e.level == pytest.approx(1 - 0.05 / 3) for e in each.values())
    page = html.unescape(made.to_html())
    assert "How exposed each group is" in page and f"{GROUP}a" not in page
