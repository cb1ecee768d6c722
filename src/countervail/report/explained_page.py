"""The page that shows explanations."""

from __future__ import annotations

import numpy as np

from countervail.core.explanation import Explanations
from countervail.core.guarantee import AllOf, KAnonymity
from countervail.core.words.people import worded_changes
from countervail.report.figures import bars
from countervail.report.page import Page, Section
from countervail.report.strips import region_strip

_SHOWN, _DRAWN = 50, 10
STRIP_CAPTION = (
    "Coloured: where the counterfactual lies. Dot: the asker. Bars are rounded, and empty where fewer than ten people "
    "are."
)


def explained_page(e: Explanations, title: str = "Explanations", language: str = "en") -> Page:
    """Sentences first, each once, then where the counterfactuals lie and what they ask people to change."""
    found = [x for x in e if x.found]
    counts = e.status.value_counts()
    lead = ", ".join(f"{n} {str(s).replace('_', ' ')}" for s, n in counts.items())
    quotes = e.to_quotes(language)
    more = [f"The first {_SHOWN} of {len(quotes)} are shown."] if len(quotes) > _SHOWN else []
    sections = [Section("In words", more, quotes=quotes[:_SHOWN])]
    sections += [_change_section(e, i, n, language) for n, i in enumerate(np.flatnonzero(e.found)[:_DRAWN].tolist(), 1)]
    if found:
        names = list(e.counterfactuals.columns)
        shares = np.array([sum(n in x.changes for x in found) / len(found) for n in names])
        order = [int(j) for j in np.argsort(-shares, kind="stable") if shares[j] > 0][:15]
        picture = bars([str(names[j]) for j in order], [100 * float(shares[j]) for j in order], "% of explanations")
        caption = "The columns that the counterfactuals change."
        sections.append(Section("What would have to change", picture=picture, caption=caption))
    return Page(title, lead, sections, str(e.guarantee), " ".join(e.caveats))


def _change_section(e: Explanations, row: int, number: int, language: str) -> Section:
    """One answer as a table of its changes; and where it lies among people, if that may be drawn."""
    one = e[row]
    who = "" if e.ids is None else f": {e.ids.iloc[row]}"
    rows = [[c["what"], c["now"], c["instead"]] for c in worded_changes(one, language)]
    drawn = e.audit is not None and e.schema.names("quasi") and _may_draw(e)
    picture = region_strip(one, e.audit) if drawn and e.audit is not None else ""
    return Section(
        f"Explanation {number}{who}",
        header=["What", "Now", "Instead"],
        rows=rows,
        picture=picture,
        caption=STRIP_CAPTION if picture else "",
    )


def _may_draw(e: Explanations) -> bool:
    """Pictures count the table's people, without noise: never beside answers that owe their privacy to noise."""
    parts = e.guarantee.parts if isinstance(e.guarantee, AllOf) else (e.guarantee,)
    return ("explainer" in e.provenance and "protector" not in e.provenance) or any(
        isinstance(part, KAnonymity) for part in parts
    )
