"""Private counterfactual explanations, private tables, and the attacks that show how private they are."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from countervail.core.errors import (
    BudgetError,
    CountervailError,
    DataNotFoundError,
    LedgerError,
    ModelFileError,
    ModelWarning,
    ParameterError,
    PrivacyWarning,
    RefusedError,
    RemoteModelError,
    SchemaError,
)

if TYPE_CHECKING:
    from countervail import attack as attack
    from countervail import data as data
    from countervail import measure as measure
    from countervail import model as model
    from countervail import study as study
    from countervail.attack import DifferentialInferenceTest as DifferentialInferenceTest
    from countervail.auditing import Appetite as Appetite
    from countervail.auditing import Audit as Audit
    from countervail.auditing import audit as audit
    from countervail.auditing import compare as compare
    from countervail.core.explanation import Explanation as Explanation
    from countervail.core.explanation import Explanations as Explanations
    from countervail.core.guarantee import AllOf as AllOf
    from countervail.core.guarantee import DifferentialPrivacy as DifferentialPrivacy
    from countervail.core.guarantee import KAnonymity as KAnonymity
    from countervail.core.guarantee import KCommonality as KCommonality
    from countervail.core.guarantee import LDiversity as LDiversity
    from countervail.core.guarantee import NoGuarantee as NoGuarantee
    from countervail.core.guarantee import TCloseness as TCloseness
    from countervail.core.hierarchy import Hierarchy as Hierarchy
    from countervail.core.region import Region as Region
    from countervail.core.region import Regions as Regions
    from countervail.core.release import Release as Release
    from countervail.core.schema import Column as Column
    from countervail.core.schema import Schema as Schema
    from countervail.core.table import Table as Table
    from countervail.core.words.phrases import Phrases as Phrases
    from countervail.data.load import load as load
    from countervail.explain import FACE as FACE
    from countervail.explain import NICE as NICE
    from countervail.explain import SEDC as SEDC
    from countervail.explain import CaseBased as CaseBased
    from countervail.explain import NearestCounterfactual as NearestCounterfactual
    from countervail.explain.foreign import read_explanations as read_explanations
    from countervail.explain.together import share_changes as share_changes
    from countervail.ledger import Ledger as Ledger
    from countervail.protect import CFK as CFK
    from countervail.protect import DPTable as DPTable
    from countervail.protect import DPTableExplainer as DPTableExplainer
    from countervail.protect import KCommonPatterns as KCommonPatterns
    from countervail.protect import Mondrian as Mondrian
    from countervail.protect import NoisyCounterfactual as NoisyCounterfactual
    from countervail.protect import PrivateHistograms as PrivateHistograms
    from countervail.protect import PrivateNeighbours as PrivateNeighbours
    from countervail.protect import PrivateSynthetic as PrivateSynthetic
    from countervail.protect import explain_scan as explain_scan
    from countervail.protect import load_protector as load_protector
    from countervail.protect import published as published
    from countervail.protect import train_private_logistic as train_private_logistic
    from countervail.rules import LERS as LERS
    from countervail.rules import MLEM2 as MLEM2

# Whatever needs more than Python is imported when first used: `import countervail` stays quick.
_LATER = {
    **dict.fromkeys(("Appetite", "Audit", "audit", "compare"), "countervail.auditing"),
    **dict.fromkeys(("Explanation", "Explanations"), "countervail.core.explanation"),
    **dict.fromkeys(
        ("AllOf", "DifferentialPrivacy", "KAnonymity", "KCommonality", "LDiversity", "NoGuarantee", "TCloseness"),
        "countervail.core.guarantee",
    ),
    "Hierarchy": "countervail.core.hierarchy",
    **dict.fromkeys(("Region", "Regions"), "countervail.core.region"),
    "Release": "countervail.core.release",
    **dict.fromkeys(("Column", "Schema"), "countervail.core.schema"),
    "Table": "countervail.core.table",
    "Phrases": "countervail.core.words.phrases",
    "data": "countervail.data",
    "load": "countervail.data.load",
    "DifferentialInferenceTest": "countervail.attack",
    "LERS": "countervail.rules",
    "Ledger": "countervail.ledger",
    "MLEM2": "countervail.rules",
    "attack": "countervail.attack",
    "explain_scan": "countervail.protect",
    "load_protector": "countervail.protect",
    "measure": "countervail.measure",
    "model": "countervail.model",
    "published": "countervail.protect.published",
    "read_explanations": "countervail.explain.foreign",
    "share_changes": "countervail.explain.together",
    "study": "countervail.study",
    "train_private_logistic": "countervail.protect",
}
# Whatever class these export is ours too: their export lines are the registration. The lists here are for tools that
# read without running.
_REGISTERED = ("countervail.explain", "countervail.protect")

__all__ = [
    "CFK",
    "FACE",
    "LERS",
    "MLEM2",
    "NICE",
    "SEDC",
    "AllOf",
    "Appetite",
    "Audit",
    "BudgetError",
    "CaseBased",
    "Column",
    "CountervailError",
    "DPTable",
    "DPTableExplainer",
    "DataNotFoundError",
    "DifferentialInferenceTest",
    "DifferentialPrivacy",
    "Explanation",
    "Explanations",
    "Hierarchy",
    "KAnonymity",
    "KCommonPatterns",
    "KCommonality",
    "LDiversity",
    "Ledger",
    "LedgerError",
    "Microaggregation",
    "ModelFileError",
    "ModelWarning",
    "Mondrian",
    "NearestCounterfactual",
    "NoGuarantee",
    "NoisyCounterfactual",
    "ParameterError",
    "Phrases",
    "PrivacyWarning",
    "PrivateHistograms",
    "PrivateNeighbours",
    "PrivateSynthetic",
    "RefusedError",
    "Region",
    "Regions",
    "Release",
    "RemoteModelError",
    "Schema",
    "SchemaError",
    "TCloseness",
    "Table",
    "attack",
    "audit",
    "compare",
    "data",
    "explain_scan",
    "load",
    "load_protector",
    "measure",
    "model",
    "published",
    "read_explanations",
    "share_changes",
    "study",
    "train_private_logistic",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        module = import_module(_LATER[name])
        found = globals()[name] = getattr(module, name, module)
        return found
    for package in _REGISTERED if name[:1].isupper() else ():
        if isinstance(kind := getattr(import_module(package), name, None), type):
            return kind
    raise AttributeError(f"module 'countervail' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
