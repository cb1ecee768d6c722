"""CaseBased: pairs of rows that are counterfactuals of each other, and what they say about others."""
