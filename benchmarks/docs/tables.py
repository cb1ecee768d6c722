"""Write the tables of protectors and attacks into README.md, from the registry."""

from __future__ import annotations

from pathlib import Path

from countervail.testing.documented import filled

PAGE = Path(__file__).resolve().parents[2] / "README.md"


def main() -> None:
    """Write the page."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"Written: {PAGE.name}")


if __name__ == "__main__":
    main()
