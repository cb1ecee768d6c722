"""Answers that are made by moving the asker's own row, not found among records."""
