"""CF-K: counterfactuals whose quasi-identifiers at least k people share."""
