"""Files that a scan reads, and files that come into being whole."""
