"""Mondrian: tables cut into classes that at least k people share."""
