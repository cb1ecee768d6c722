"""Which papers there are, what of them can be reproduced, and what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from countervail.core.errors import DataNotFoundError, ParameterError
from countervail.data.registry import REGISTERED, find
from countervail.study.reproduce.values import Exhibit, Publication

_NAMES = ("goethals", "kassem", "inuiguchi", "anonymous")
_EXTRAS = {"lightgbm": "lightgbm", "gan": "opacus"}


def papers() -> dict[str, Publication]:
    """All papers, by name."""
    found = (import_module(f"countervail.study.reproduce.papers.{name}").PAPER for name in _NAMES)
    return {p.id: p for p in found}


def find_paper(name: str) -> Publication:
    """A paper by its name or by another that it goes by."""
    known = papers()
    wanted = name.lower().strip()
    for paper in known.values():
        if wanted in (paper.id, *paper.also):
            return paper
    listed = "; ".join(f"{p.id} ({', '.join(p.also)})" for p in known.values())
    raise ParameterError(f"No paper is called '{name[:60]}'. There are: {listed}.")


def find_exhibit(paper: Publication, name: str) -> Exhibit:
    """A table or a figure of a paper."""
    found = paper.exhibit(name)
    if found is None:
        raise ParameterError(
            f"Nothing of '{paper.id}' is called '{name[:60]}'. There are: {', '.join(e.id for e in paper.exhibits)}."
        )
    return found


def missing(exhibit: Exhibit) -> tuple[str, ...]:
    """The registered data sets that it needs and that are not on this machine."""
    return tuple(n for n in exhibit.needs if n in REGISTERED and not _there(n))


def check_possible(paper: Publication, exhibit: Exhibit) -> None:
    """Refuse what cannot run here, and say what would."""
    if exhibit.entries is None:
        raise ParameterError(f"{exhibit.name} of '{paper.id}' cannot be reproduced: {exhibit.why_not}")
    if exhibit.extra is not None and find_spec(_EXTRAS[exhibit.extra]) is None:
        raise ParameterError(
            f"{exhibit.name} of '{paper.id}' needs an extra that is not installed. Install it with: "
            f"pip install 'countervail[{exhibit.extra}]'."
        )
    if absent := missing(exhibit):
        about = REGISTERED[absent[0]]
        able = [e.id for e in paper.exhibits if e.entries is not None and not missing(e)]
        raise DataNotFoundError(
            f"{exhibit.name} of '{paper.id}' needs the data set '{about.name}', which is not on this machine. It comes "
            f"from: {about.source} (licence: {about.licence}). Put {about.name}.csv.gz and {about.name}.json into the "
            f"folder that the environment variable COUNTERVAIL_DATA names. Without it, these run: "
            f"{', '.join(able) or 'none'}."
        )


def possible(paper: Publication) -> Sequence[Exhibit]:
    """What runs here."""
    return [
        e
        for e in paper.exhibits
        if e.entries is not None and not missing(e) and (e.extra is None or find_spec(_EXTRAS[e.extra]) is not None)
    ]


def _there(name: str) -> bool:
    try:
        find(name)
    except DataNotFoundError:
        return False
    return True
