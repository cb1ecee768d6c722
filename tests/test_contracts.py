"""Every exported class keeps its contract."""

from importlib.util import find_spec

import pytest
from sklearn.base import clone

from countervail import attack, explain, protect
from countervail.registry import exported
from countervail.testing import attack_checks, explainer_checks, protector_checks

EXPLAINERS = [e for c in exported(explain, explain.Explainer).values() for e in c.examples()]
EXPLAINERS += [p for c in exported(protect, protect.ExplanationProtector).values() for p in c.examples()]
PUBLISHED = [p for c in exported(protect.published, protect.ExplanationProtector).values() for p in c.examples()]
PUBLISHED_TABLES = [p for c in exported(protect.published, protect.TableProtector).values() for p in c.examples()]
TABLE_PROTECTORS = [p for c in exported(protect, protect.TableProtector).values() for p in c.examples()]
ATTACKS = [
    a
    for base in (attack.ReleaseAttack, attack.OracleAttack)
    for c in exported(attack, base).values()
    for a in c.examples()
]


def published(subject):
    """Published mechanisms warn at every fit; the GAN needs an extra."""
    absent = subject.name == "published-dpgan" and not (find_spec("torch") and find_spec("opacus"))
    return [
        pytest.mark.filterwarnings("ignore::countervail.PrivacyWarning"),
        *([pytest.mark.skip(reason="the extra 'gan' is not installed")] if absent else []),
    ]


@pytest.mark.parametrize(
    ("subject", "check"),
    [pytest.param(s, c, id=f"{s}:{c.__name__}") for s in EXPLAINERS for c in explainer_checks(s)]
    + [
        pytest.param(s, c, id=f"{s.name}:{s}:{c.__name__}", marks=published(s))
        for s in PUBLISHED
        for c in explainer_checks(s)
    ]
    + [pytest.param(s, c, id=f"{s}:{c.__name__}") for s in TABLE_PROTECTORS for c in protector_checks(s)]
    + [pytest.param(s, c, id=f"{s.name}:{s}:{c.__name__}") for s in PUBLISHED_TABLES for c in protector_checks(s)]
    + [pytest.param(s, c, id=f"{s}:{c.__name__}") for s in ATTACKS for c in attack_checks(s)],
)
def test_contract(subject, check):
    check(clone(subject))
