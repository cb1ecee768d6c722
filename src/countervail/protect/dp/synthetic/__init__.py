"""One private draw of counts, a synthetic table made of it, and answers from that table."""
