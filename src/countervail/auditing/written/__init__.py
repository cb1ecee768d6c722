"""The dossier as it is read: its parts, pictures and standing texts, as a page, on paper, signed."""
