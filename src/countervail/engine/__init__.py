"""Grouped counts, lookups and writes where the rows are: in memory, in DuckDB, on a cluster. Nobody else names one."""

from countervail.engine.interface import Labelling as Labelling
from countervail.engine.interface import Relation as Relation
from countervail.engine.scan import Distinct as Distinct
from countervail.engine.scan import Scan as Scan
from countervail.engine.scan import engines as engines
from countervail.engine.scan import scan as scan
