"""Rules by rough sets: MLEM2, imprecise rules, rules that enough rows support, and voting by LERS."""

from countervail.rules.classify import LERS as LERS
from countervail.rules.classify import MLEM2 as MLEM2
from countervail.rules.classify import RuleClassifier as RuleClassifier
from countervail.rules.given import read_rules as read_rules
from countervail.rules.induce import Inducer as Inducer
from countervail.rules.rough import RoughSet as RoughSet
from countervail.rules.rough import approximate as approximate
from countervail.rules.rough import reducts as reducts
from countervail.rules.ruleset import Rule as Rule
from countervail.rules.ruleset import RuleSet as RuleSet
from countervail.rules.values import ValueTable as ValueTable
