"""Mondrian of rows that stay in an engine."""
