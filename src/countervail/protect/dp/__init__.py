"""Differentially private explanations and tables."""
