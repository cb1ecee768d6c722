"""Studies: mechanisms compared on the same tables, models, people and figures. StudyPlan -> run -> Study."""

from countervail.study.audit import audit_mechanism as audit_mechanism
from countervail.study.choose import PRIORITIES as PRIORITIES
from countervail.study.choose import Recommendation as Recommendation
from countervail.study.choose import recommend as recommend
from countervail.study.mechanisms import READINGS as READINGS
from countervail.study.mechanisms import as_published as as_published
from countervail.study.mechanisms import described as described
from countervail.study.mechanisms import mechanisms as mechanisms
from countervail.study.mechanisms import sound as sound
from countervail.study.plan import Cell as Cell
from countervail.study.plan import StudyPlan as StudyPlan
from countervail.study.reproduce import Reproduction as Reproduction
from countervail.study.reproduce import papers as papers
from countervail.study.reproduce import reproduce as reproduce
from countervail.study.result import Row as Row
from countervail.study.result import Study as Study
from countervail.study.run import run as run
