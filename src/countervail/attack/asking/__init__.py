"""Attacks that ask an explainer about what it holds: by repetition, by its own rows, or about the model."""
