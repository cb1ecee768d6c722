"""Protectors. The export line is the registration: a class named here is in the CLI, docs and contract tests."""

from countervail.protect import published as published
from countervail.protect.base import ExplanationProtector as ExplanationProtector
from countervail.protect.base import TableProtector as TableProtector
from countervail.protect.cfk import CFK as CFK
from countervail.protect.dp_table import DPTable as DPTable
from countervail.protect.histograms import PrivateHistograms as PrivateHistograms
from countervail.protect.k_common import KCommonPatterns as KCommonPatterns
from countervail.protect.mondrian import Mondrian as Mondrian
from countervail.protect.neighbours import PrivateNeighbours as PrivateNeighbours
from countervail.protect.noisy import NoisyCounterfactual as NoisyCounterfactual
