"""Rows that move between classes once the cuts have ended."""
