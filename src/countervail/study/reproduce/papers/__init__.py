"""One declarative file per paper."""
