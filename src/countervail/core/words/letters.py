"""Letters: one answer as somebody gets it by post, from a template that may be replaced."""

from __future__ import annotations

import re
from datetime import date as Date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from countervail.core.cells import visible
from countervail.core.errors import DataNotFoundError, ParameterError, RefusedError, bad_parameter
from countervail.core.guarantee import NoGuarantee
from countervail.core.phrase import decision_text
from countervail.core.words.catalogue import Catalogue, catalogue
from countervail.core.words.people import worded_changes

if TYPE_CHECKING:
    from jinja2 import Template

    from countervail.core.explanation import Explanation, Explanations

_OWN = "letter.txt.j2"


def write_letters(
    e: Explanations, language: str, template: str | Path | None, sender: str, date: Date | None
) -> list[str]:
    """A letter for every person, in the order of the queries."""
    if isinstance(e.guarantee, NoGuarantee):
        raise RefusedError(
            f"These answers must not go into letters, for they promise nothing: {e.guarantee.why}. "
            f"Make them with CFK or another protector."
        )
    words, form = catalogue(language), read_template(template)
    assert e.query is not None
    rows: dict[int, list[int]] = {}
    for i, query in enumerate(e.query.tolist()):
        rows.setdefault(query, []).append(i)
    ones = list(e)
    told = [_person(e, at, [ones[i] for i in at], words) for at in rows.values()]
    common = {"words": _of_letter(words), "language": language, "sender": visible(sender, keep="\n")}
    return [_render(form, {**common, "date": _day(date, words), **one}) for one in told]


def letter_names(e: Explanations, template: str | Path | None = None) -> list[str]:
    """A file name for every letter: a number, and what of the identifier a file name can hold."""
    assert e.query is not None
    first = {query: i for i, query in reversed(list(enumerate(e.query.tolist())))}
    order = list(dict.fromkeys(e.query.tolist()))
    ending = _ending(template) or ".txt"
    width = max(4, len(str(len(order))))
    return [f"{n:0{width}d}{_file_part(e, first[query])}{ending}" for n, query in enumerate(order, 1)]


def _ending(template: str | Path | None) -> str:
    """What a letter is: a template `letter.html.j2` makes `.html`."""
    name = Path(_OWN if template is None else template).name
    return Path(name.removesuffix(".j2").removesuffix(".jinja")).suffix


def _file_part(e: Explanations, row: int) -> str:
    part = "" if e.ids is None else re.sub(r"[^A-Za-z0-9_-]+", "_", e.ids.iloc[row])[:60].strip("_")
    return f"-{part}" if part else ""


def _person(e: Explanations, rows: list[int], ones: list[Explanation], words: Catalogue) -> dict[str, Any]:
    """What a template may say about one person: nothing of anybody else."""
    told: dict[str, Explanation] = {}
    for one in ones:
        told.setdefault(one.to_text(words.language), one)
    decision = decision_text(ones[0].before, e.schema, words.language)
    return {
        "id": "" if e.ids is None else visible(e.ids.iloc[rows[0]]),
        "found": ones[0].found,
        "status": ones[0].status,
        "decision": visible(words.say("letter.decision", decision=decision)),
        "answers": [_answer(one, words, further=n > 0) for n, one in enumerate(told.values())],
    }


def _answer(one: Explanation, words: Catalogue, *, further: bool) -> dict[str, Any]:
    rows = worded_changes(one, words.language)
    text = one.to_text(words.language, further=further)
    return {"text": text, "changes": rows, "table": _aligned(rows, words)}


def _aligned(rows: list[dict[str, str]], words: Catalogue) -> str:
    """Changes as lines of a table for letters without markup."""
    parts = ("what", "now", "instead")
    cells = [[words.say(f"letter.{p}") for p in parts], *([row[p] for p in parts] for row in rows)]
    widths = [max(len(row[j]) for row in cells) for j in range(len(parts))]
    return "\n".join("  " + "  ".join(t.ljust(w) for t, w in zip(row, widths)).rstrip() for row in cells)


def _of_letter(words: Catalogue) -> dict[str, str]:
    return {n.removeprefix("letter."): t for n, t in words.templates.items() if n.startswith("letter.")}


def _day(date: Date | None, words: Catalogue) -> str:
    if date is None:
        return ""
    return words.say("letter.date", day=str(date.day), month=words.months[date.month - 1], year=str(date.year))


def read_template(path: str | Path | None) -> Template:
    """The letter's form: ours, or the user's file, which can read what it is given and run nothing else."""
    from jinja2 import PackageLoader, StrictUndefined, TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    if path is not None and not Path(path).is_file():
        raise DataNotFoundError(f"No letter template at '{path}'. Give the path of a text or HTML file.")
    room = ImmutableSandboxedEnvironment(
        loader=PackageLoader("countervail.core", "words"),
        autoescape=_ending(path) in (".html", ".htm"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    try:
        if path is None:
            return room.get_template(_OWN)
        return room.from_string(Path(path).read_text(encoding="utf-8"))
    except TemplateError as error:
        raise ParameterError(f"The letter template '{path}' cannot be read: {error.message}") from None
    except UnicodeDecodeError:
        raise ParameterError(f"The letter template '{path}' must be text in UTF-8.") from None


def _render(form: Template, parts: dict[str, Any]) -> str:
    from jinja2 import TemplateError

    try:
        return form.render(parts)
    except TemplateError as error:
        # Its message names what the template asked for, never what it was given.
        got = error.message or type(error).__name__
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        got = type(error).__name__
    raise bad_parameter("to_letters", "template", f"one that uses {', '.join(sorted(parts))}", got)
