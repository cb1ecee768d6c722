"""FACE: feasible and actionable counterfactuals, by way of other people's rows."""
