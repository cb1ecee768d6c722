"""Tables of patterns that at least k people fit."""
