"""Columns whose classes are named by groups of a hierarchy: cuts made for names, and gaps set apart."""
