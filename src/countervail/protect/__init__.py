"""Protectors. The export line is the registration: a class named here is in the CLI, docs and contract tests."""

from countervail.protect.base import ExplanationProtector as ExplanationProtector
from countervail.protect.cfk import CFK as CFK
