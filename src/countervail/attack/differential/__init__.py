"""Differential inference testing: what depends on one person's record."""
