"""The pages behind the promises: docs/decisions in a checkout, countervail/proofs where the package is installed."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from countervail.core.errors import DataNotFoundError, ParameterError

_PACKAGE = Path(__file__).resolve().parents[2]
_PLACES = (_PACKAGE / "proofs", _PACKAGE.parents[1] / "docs" / "decisions")


def proof_names() -> list[str]:
    """The pages there are, by name."""
    return sorted(p.stem for p in _folder().glob("*.md") if p.stem != "README")


def proof_page(name: str) -> str:
    """A page by its name, or by its path as a guarantee prints it.

    Examples
    --------
    >>> proof_page("docs/decisions/dp-table.md").splitlines()[0]
    '# A noisy table'
    """
    stem, known = PurePosixPath(name).name.removesuffix(".md"), proof_names()
    if stem not in known:
        raise ParameterError(f"There is no page '{name}' of proofs. There are: {', '.join(known)}.")
    return (_folder() / f"{stem}.md").read_text(encoding="utf-8")


def proof_title(name: str) -> str:
    """The heading of a page."""
    return proof_page(name).partition("\n")[0].lstrip("# ").strip()


def _folder() -> Path:
    for place in _PLACES:
        if place.is_dir():
            return place
    raise DataNotFoundError("The pages of proofs are not beside this package. Install it from a wheel or a checkout.")
