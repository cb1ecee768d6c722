"""The page that shows explanations."""

from __future__ import annotations

import numpy as np

from countervail.core.explanation import Explanations
from countervail.core.guarantee import AllOf, KAnonymity
from countervail.core.words.catalogue import catalogue
from countervail.core.words.caveats import say_caveat
from countervail.core.words.people import worded_changes
from countervail.report.figures import bars
from countervail.report.page import Page, Section, in_full
from countervail.report.strips import region_strip

_SHOWN, _DRAWN = 50, 10


def explained_page(e: Explanations, title: str | None = None, language: str = "en") -> Page:
    """Sentences first, each once, then where the counterfactuals lie and what they ask people to change."""
    words, found = catalogue(language), [x for x in e if x.found]
    lead = ", ".join(words.say(f"page.{s}", number=str(n)) for s, n in e.status.value_counts().items())
    quotes = e.to_quotes(language)
    if len(quotes) > _SHOWN:  # of those who have nothing to change the lead says how many
        status = dict(zip(np.asarray(e.query).tolist(), e.status))
        quotes = [q for q, s in zip(quotes, status.values()) if s != "already_favourable"] or quotes
    more = [words.say("page.shown", shown=str(_SHOWN), all=str(len(quotes)))] if len(quotes) > _SHOWN else []
    sections = [Section(words.say("page.in_words"), more, quotes=quotes[:_SHOWN])]
    sections += [_change_section(e, i, n, language) for n, i in enumerate(np.flatnonzero(e.found)[:_DRAWN].tolist(), 1)]
    if found:
        names = list(e.counterfactuals.columns)
        shares = np.array([sum(n in x.changes for x in found) / len(found) for n in names])
        order = [int(j) for j in np.argsort(-shares, kind="stable") if shares[j] > 0][:15]
        picture = bars([str(names[j]) for j in order], [100 * float(shares[j]) for j in order], words.say("page.share"))
        caption = words.say("page.columns")
        sections.append(Section(words.say("page.changes"), picture=picture, caption=caption))
    caveats = " ".join(say_caveat(text, language) for text in e.caveats)
    return Page(title or words.say("page.title"), lead, sections, in_full(e.guarantee), caveats, language)


def _change_section(e: Explanations, row: int, number: int, language: str) -> Section:
    """One answer as a table of its changes; and where it lies among people, if that may be drawn."""
    one, words = e[row], catalogue(language)
    who = "" if e.ids is None else f": {e.ids.iloc[row]}"
    rows = [[c["what"], c["now"], c["instead"]] for c in worded_changes(one, language)]
    drawn = e.audit is not None and e.schema.names("quasi") and _may_draw(e)
    picture = region_strip(one, e.audit, language) if drawn and e.audit is not None else ""
    return Section(
        f"{words.say('page.answer', number=str(number))}{who}",
        header=[words.say(f"letter.{part}") for part in ("what", "now", "instead")],
        rows=rows,
        picture=picture,
        caption=words.say("page.strip") if picture else "",
    )


def _may_draw(e: Explanations) -> bool:
    """Pictures count the table's people, without noise: never beside answers that owe their privacy to noise."""
    parts = e.guarantee.parts if isinstance(e.guarantee, AllOf) else (e.guarantee,)
    return ("explainer" in e.provenance and "protector" not in e.provenance) or any(
        isinstance(part, KAnonymity) for part in parts
    )
