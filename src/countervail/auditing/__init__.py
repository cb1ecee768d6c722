"""Audits: may this leave the house? The battery, the appetite, the verdict and the dossier."""

from countervail.auditing.appetite import Appetite as Appetite
from countervail.auditing.appetite import Recipient as Recipient
from countervail.auditing.finding import Finding as Finding
from countervail.auditing.result import Audit as Audit
from countervail.auditing.result import verify as verify
from countervail.auditing.run import audit as audit
from countervail.auditing.side_by_side import SideBySide as SideBySide
from countervail.auditing.side_by_side import compare as compare
from countervail.auditing.verdict import Ruling as Ruling
