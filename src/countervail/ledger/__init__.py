"""What has been let out about people, and how much more may be."""

from countervail.ledger.accounting import Cost as Cost
from countervail.ledger.history import Entry as Entry
from countervail.ledger.history import Statement as Statement
from countervail.ledger.ledger import Ledger as Ledger
