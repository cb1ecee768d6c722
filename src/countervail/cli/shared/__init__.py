"""What several commands share: flags, ways to speak, methods, what epsilon means, comparisons of k."""
