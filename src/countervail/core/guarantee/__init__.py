"""Guarantees, what they are counted with, and the budgets that many of them share."""

from countervail.core.guarantee.promises import Adjacency as Adjacency
from countervail.core.guarantee.promises import AllOf as AllOf
from countervail.core.guarantee.promises import DifferentialPrivacy as DifferentialPrivacy
from countervail.core.guarantee.promises import Guarantee as Guarantee
from countervail.core.guarantee.promises import KAnonymity as KAnonymity
from countervail.core.guarantee.promises import KCommonality as KCommonality
from countervail.core.guarantee.promises import LDiversity as LDiversity
from countervail.core.guarantee.promises import NoGuarantee as NoGuarantee
from countervail.core.guarantee.promises import TCloseness as TCloseness
from countervail.core.guarantee.promises import guarantee_from_dict as guarantee_from_dict
