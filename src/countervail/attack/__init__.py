"""Attacks. The export line is the registration: a class named here is in the CLI, docs and contract tests."""

from countervail.attack.asking.answered_membership import AnsweredMembership as AnsweredMembership
from countervail.attack.asking.asked_inference import AskedInference as AskedInference
from countervail.attack.asking.averaging import Averaging as Averaging
from countervail.attack.asking.extraction import Extraction as Extraction
from countervail.attack.asking.recourse_membership import RecourseMembership as RecourseMembership
from countervail.attack.attribute_inference import AttributeInference as AttributeInference
from countervail.attack.base import Knowledge as Knowledge
from countervail.attack.base import OracleAttack as OracleAttack
from countervail.attack.base import ReleaseAttack as ReleaseAttack
from countervail.attack.base import SetAttack as SetAttack
from countervail.attack.deep import Deep as Deep
from countervail.attack.differential.test import DifferentialInferenceTest as DifferentialInferenceTest
from countervail.attack.differential.test import DifferentialResult as DifferentialResult
from countervail.attack.homogeneity import Homogeneity as Homogeneity
from countervail.attack.intersection import Intersection as Intersection
from countervail.attack.inversion import Inversion as Inversion
from countervail.attack.linkability import Linkability as Linkability
from countervail.attack.linkage import Linkage as Linkage
from countervail.attack.membership import Membership as Membership
from countervail.attack.reidentification import Reidentification as Reidentification
from countervail.attack.result import AttackResult as AttackResult
from countervail.attack.row_order import RowOrder as RowOrder
from countervail.attack.shallow import Shallow as Shallow
from countervail.attack.singling_out import SinglingOut as SinglingOut
