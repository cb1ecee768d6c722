"""Every exported class keeps its contract."""

import pytest
from sklearn.base import clone

from countervail import explain
from countervail.registry import exported
from countervail.testing import explainer_checks

EXPLAINERS = [e for c in exported(explain, explain.Explainer).values() for e in c.examples()]


@pytest.mark.parametrize(
    ("subject", "check"),
    [pytest.param(s, c, id=f"{s}:{c.__name__}") for s in EXPLAINERS for c in explainer_checks(s)],
)
def test_contract(subject, check):
    check(clone(subject))
