"""Studies: mechanisms compared on the same tables, models, people and figures. Plan -> run -> Study."""

from countervail.study.audit import audit_mechanism as audit_mechanism
from countervail.study.choose import PRIORITIES as PRIORITIES
from countervail.study.choose import Recommendation as Recommendation
from countervail.study.choose import recommend as recommend
from countervail.study.mechanisms import MECHANISMS as MECHANISMS
from countervail.study.mechanisms import PUBLISHED as PUBLISHED
from countervail.study.mechanisms import READINGS as READINGS
from countervail.study.mechanisms import SOUND as SOUND
from countervail.study.plan import Cell as Cell
from countervail.study.plan import Plan as Plan
from countervail.study.result import Row as Row
from countervail.study.result import Study as Study
from countervail.study.run import run as run
