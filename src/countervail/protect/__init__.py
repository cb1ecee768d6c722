"""Protectors. The export line is the registration: a class named here is in the CLI, docs and contract tests."""

from countervail.protect import published as published
from countervail.protect._classes import Classes as Classes
from countervail.protect._classes import ClassProtector as ClassProtector
from countervail.protect.base import ExplanationProtector as ExplanationProtector
from countervail.protect.base import TableProtector as TableProtector
from countervail.protect.cfk.cfk import CFK as CFK
from countervail.protect.cfk.exact import ExactSearch as ExactSearch
from countervail.protect.cfk.grasp import GraspSearch as GraspSearch
from countervail.protect.cfk.groups.group_search import GroupSearch as GroupSearch
from countervail.protect.class_roster import ClassRoster as ClassRoster
from countervail.protect.dp.histograms import PrivateHistograms as PrivateHistograms
from countervail.protect.dp.neighbours import PrivateNeighbours as PrivateNeighbours
from countervail.protect.dp.noisy import NoisyCounterfactual as NoisyCounterfactual
from countervail.protect.dp.private_logistic import train_private_logistic as train_private_logistic
from countervail.protect.dp.synthetic.private_synthetic import PrivateSynthetic as PrivateSynthetic
from countervail.protect.dp.table import DPTable as DPTable
from countervail.protect.dp.table_explainer import DPTableExplainer as DPTableExplainer
from countervail.protect.load import load_protector as load_protector
from countervail.protect.microaggregation.microaggregation import Microaggregation as Microaggregation
from countervail.protect.mondrian.mondrian import Mondrian as Mondrian
from countervail.protect.patterns.k_common import KCommonPatterns as KCommonPatterns
from countervail.protect.scans.explain_scan import explain_scan as explain_scan
