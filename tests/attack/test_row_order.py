"""Rows that stand as the people do: found whatever the cells say, and only then."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import countervail as cv
from countervail.attack.shared.planted import open_explanations, open_release
from countervail.core.errors import ParameterError, SchemaError
from countervail.core.files.release_file import read_release
from countervail.testing import small_table


@pytest.fixture(scope="module")
def people():
    return small_table(600).split(test_size=0.5, random_state=0)


def in_order(release, table):
    """The release as a tool writes it that changes cells and leaves every row where it is."""
    quasi = table.select("quasi")
    of = release.regions.covers(quasi[release.regions.names]).argmax(axis=0)
    others = table.frame[list(release.others.columns)].reset_index(drop=True)
    return replace(release, groups=of.astype(np.int64), others=others)


def slow(release, table, names):
    """The same by hand: the j-th row of each class for the j-th person who fits it."""
    hits = cases = 0
    for group in range(len(release.regions)):
        rows = [i for i, g in enumerate(release.groups) if g == group]
        region = release.regions[np.array([group])]
        fit = [j for j in range(len(table)) if region.covers(table.frame[release.regions.names].iloc[[j]])[0, 0]]
        if rows and len(rows) == len(fit):
            cases += len(rows)
            hits += sum(
                all(release.others[n].iloc[i] == table.frame[n].iloc[j] for n in names) for i, j in zip(rows, fit)
            )
    return hits, cases


def test_rows_left_where_they_were_are_found_and_shuffled_ones_are_not(people):
    members, others = people
    shuffled = cv.Mondrian(k=10).fit(members).protect(members)
    attack = cv.attack.RowOrder()
    left = attack.run(in_order(shuffled, members), members, others)
    assert left.members.value == 1 and left.excess.low > 0.9
    assert attack.run(shuffled, members, others).excess.low < 0.05


def test_a_file_in_the_order_of_its_people_is_found(people, tmp_path):
    members, others = people
    release = in_order(cv.Mondrian(k=10).fit(members).protect(members), members)
    release.write(tmp_path / "r.csv")
    read = read_release(tmp_path / "r.csv", members)
    assert cv.attack.RowOrder().run(read, members, others).excess.low > 0.9


def test_it_counts_as_by_hand(people):
    members, others = people
    shuffled = cv.Mondrian(k=10).fit(members).protect(members)
    for release in (shuffled, in_order(shuffled, members)):
        found = cv.attack.RowOrder(n_targets=None).run(release, members, others).members
        assert (round(found.value * found.n), found.n) == slow(release, members, list(release.others.columns))


def test_an_audit_rejects_a_table_in_the_order_of_its_people(people):
    members, others = people
    release = in_order(cv.Mondrian(k=10).fit(members).protect(members), members)
    made = cv.audit(release, members, control=others, attacks=["row-order"], jobs=1, budget=None)
    assert made.verdict == "reject"
    assert {d.criterion: d.word for d in made.decisions}["linkability"] == "reject"


@settings(max_examples=20)
@given(st.integers(0, 2**31))
def test_an_order_drawn_at_random_says_nothing(seed):
    members, others = small_table(120).split(test_size=0.5, random_state=0)
    order = np.random.default_rng(seed).permutation(len(members))
    made = open_release(members)
    mixed = replace(made, others=made.others.iloc[order].reset_index(drop=True))
    assert cv.attack.RowOrder().run(mixed, members, others).members.value < 0.2


def test_what_has_no_rows_of_people_is_refused(people):
    members, others = people
    attack = cv.attack.RowOrder()
    with pytest.raises(SchemaError, match="order of the questions"):
        attack.run(open_explanations(members), members, others)
    made = open_release(members)
    with pytest.raises(SchemaError, match="as many rows"):
        attack.run(replace(made, others=made.others.iloc[:50], groups=made.groups[:50].copy()), members, others)
    with pytest.raises(SchemaError, match="published as they are"):
        attack.run(replace(made, others=pd.DataFrame(index=made.others.index)), members, others)
    with pytest.raises(ParameterError, match="n_targets"):
        cv.attack.RowOrder(n_targets=0).run(made, members, others)
