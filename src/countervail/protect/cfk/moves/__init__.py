"""Answers that move as few features as possible towards a candidate; everything else stays the asker's own."""
