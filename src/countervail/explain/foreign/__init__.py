"""Explanations that other tools wrote, ready for every attack and measure; none of these tools is imported."""

from countervail.explain.foreign.read import read_explanations as read_explanations
