"""Explainers. The export line is the registration: a class named here is in the CLI, docs and contract tests."""

from countervail.explain.base import Explainer as Explainer
from countervail.explain.cases.cases import CaseBased as CaseBased
from countervail.explain.face.face import FACE as FACE
from countervail.explain.nearest import NearestCounterfactual as NearestCounterfactual
from countervail.explain.nice import NICE as NICE
from countervail.explain.sedc import SEDC as SEDC
