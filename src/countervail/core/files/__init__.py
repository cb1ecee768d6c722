"""Reading and writing: tables, schemas, releases, and what JSON may hold."""
