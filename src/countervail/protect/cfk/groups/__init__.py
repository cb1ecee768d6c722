"""Answers from groups: who hides with whom, sealed; which private vectors of a group may be handed out."""
