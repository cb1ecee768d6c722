"""Contract checks, public so that anyone who adds a class can run them on it."""

from countervail.testing.attacks import attack_checks as attack_checks
from countervail.testing.audit import audit_epsilon as audit_epsilon
from countervail.testing.audit import audit_one_run as audit_one_run
from countervail.testing.audit import audit_rho as audit_rho
from countervail.testing.contracts import Contract as Contract
from countervail.testing.contracts import contracts as contracts
from countervail.testing.explainers import explainer_checks as explainer_checks
from countervail.testing.protectors import protector_checks as protector_checks
from countervail.testing.tables import small_model as small_model
from countervail.testing.tables import small_table as small_table
