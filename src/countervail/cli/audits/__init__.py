"""Commands about what may leave: the battery and its verdict, dossiers, and several protections side by side."""
