"""Explainers. The export line is the registration: a class named here is in the CLI, docs and contract tests."""

from countervail.explain.base import Explainer as Explainer
from countervail.explain.nice import NICE as NICE
