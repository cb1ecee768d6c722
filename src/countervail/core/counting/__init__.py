"""How many of many rows lie in each of many regions, without asking every region about every row."""

from countervail.core.counting.by_tree import count_in_tree as count_in_tree
