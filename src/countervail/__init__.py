"""Private counterfactual explanations, private tables, and the attacks that show how private they are."""

from countervail import data as data
from countervail import measure as measure
from countervail.core.errors import BudgetError, CountervailError, PrivacyWarning, SchemaError
from countervail.core.explanation import Explanation, Explanations
from countervail.core.guarantee import KAnonymity, NoGuarantee
from countervail.core.region import Region, Regions
from countervail.core.schema import Column, Phrases, Schema
from countervail.core.table import Table
from countervail.data.load import load
from countervail.explain import NICE

__all__ = [
    "NICE",
    "BudgetError",
    "Column",
    "CountervailError",
    "Explanation",
    "Explanations",
    "KAnonymity",
    "NoGuarantee",
    "Phrases",
    "PrivacyWarning",
    "Region",
    "Regions",
    "Schema",
    "SchemaError",
    "Table",
    "data",
    "load",
    "measure",
]
