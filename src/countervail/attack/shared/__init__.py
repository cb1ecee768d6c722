"""What several attacks share: distances, crowds of strangers, curves, and leaks to prove an attack on."""
