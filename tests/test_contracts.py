"""Every registered class keeps its contract."""

from importlib.util import find_spec

import pytest
from sklearn.base import clone

from countervail.registry import published
from countervail.testing import contracts

NEEDS = {"gan": ("torch", "opacus")}


def marks(contract):
    """Published mechanisms warn at every fit; some need an extra."""
    found = []
    if contract.subject.name in published():
        found.append(pytest.mark.filterwarnings("ignore::countervail.PrivacyWarning"))
    if contract.extra is not None and not all(find_spec(module) for module in NEEDS[contract.extra]):
        found.append(pytest.mark.skip(reason=f"the extra '{contract.extra}' is not installed"))
    return found


@pytest.mark.parametrize("contract", [pytest.param(c, id=c.label, marks=marks(c)) for c in contracts()])
def test_contract(contract):
    contract.check(clone(contract.subject))
