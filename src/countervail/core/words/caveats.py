"""Caveats in the language of the reader; those that no catalogue knows stay as they were written."""

from __future__ import annotations

import re
from functools import cache

from countervail.core.words.catalogue import catalogue

_PLACE = re.compile(r"\\{(\w+)\\}")


def say_caveat(text: str, language: str) -> str:
    """A caveat in a language: found by its English words, with what stands in their places."""
    if language == "en":
        return text
    for name, form in _forms().items():
        if found := form.fullmatch(text):
            return catalogue(language).say(name, **found.groupdict())
    return text


@cache
def _forms() -> dict[str, re.Pattern[str]]:
    """The English caveats as patterns."""
    templates = catalogue("en").templates
    known = {n: re.escape(t) for n, t in templates.items() if n.startswith("caveat.")}
    return {n: re.compile(_PLACE.sub(r"(?P<\1>.+)", t)) for n, t in known.items()}
