"""Microaggregation: groups of at least k people, published as their centres."""
