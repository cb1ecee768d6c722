"""Small audits that several tests look at."""

import pytest

import countervail as cv
from countervail.testing import small_model, small_table

QUICK = ["linkage", "singling-out", "membership"]


@pytest.fixture(scope="session")
def halves():
    return small_table(400).split(test_size=0.5, random_state=0)


@pytest.fixture(scope="session")
def plain(halves):
    members, _ = halves
    return cv.NICE(target="favourable").fit(members, small_model)


@pytest.fixture(scope="session")
def rejected(halves, plain):
    members, others = halves
    return cv.audit(plain, members, control=others, jobs=1, attacks=QUICK, budget=None)


@pytest.fixture(scope="session")
def kept(halves):
    members, others = halves
    return cv.audit(cv.CFK(k=10).fit(members, small_model), members, control=others, jobs=1, attacks=QUICK, budget=None)
