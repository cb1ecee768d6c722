"""Values that every other layer speaks in; imports nothing of ours."""
