"""Hierarchies of values: groups of groups, up to one that holds everything."""

from countervail.core.hierarchy.hierarchy import Hierarchy as Hierarchy
from countervail.core.hierarchy.hierarchy import read_hierarchies as read_hierarchies
