"""Answers to as many queries as an engine can read."""
