"""Words for people: phrases of a schema, catalogues of sentences, numbers as each language writes them, letters."""
