"""The page that shows explanations."""

from __future__ import annotations

import numpy as np

from countervail.core.explanation import Explanations
from countervail.core.guarantee import AllOf, KAnonymity
from countervail.report.figures import bars
from countervail.report.page import Page, Section
from countervail.report.strips import region_strip

_SHOWN, _DRAWN = 50, 10
STRIP_CAPTION = (
    "Coloured: where the counterfactual lies. Dot: the asker. Bars are rounded, and empty where fewer than ten people "
    "are."
)


def explained_page(e: Explanations, title: str = "Explanations") -> Page:
    """Sentences first, then where the counterfactuals lie and what they ask people to change."""
    found = [x for x in e if x.found]
    counts = e.status.value_counts()
    lead = ", ".join(f"{n} {str(s).replace('_', ' ')}" for s, n in counts.items())
    quotes = [x.to_text() for x in e][:_SHOWN]
    more = [f"The first {_SHOWN} of {len(e)} are shown."] if len(e) > _SHOWN else []
    sections = [Section("In words", more, quotes=quotes)]
    if e.audit is not None and e.schema.names("quasi") and _may_draw(e):
        for number, x in enumerate(found[:_DRAWN], 1):
            picture = region_strip(x, e.audit)
            sections.append(
                Section(f"Explanation {number}", quotes=[x.sentence], picture=picture, caption=STRIP_CAPTION)
            )
    if found:
        names = list(e.counterfactuals.columns)
        shares = np.array([sum(n in x.changes for x in found) / len(found) for n in names])
        order = [int(j) for j in np.argsort(-shares, kind="stable") if shares[j] > 0][:15]
        picture = bars([str(names[j]) for j in order], [100 * float(shares[j]) for j in order], "% of explanations")
        caption = "The columns that the counterfactuals change."
        sections.append(Section("What would have to change", picture=picture, caption=caption))
    return Page(title, lead, sections, str(e.guarantee), " ".join(e.caveats))


def _may_draw(e: Explanations) -> bool:
    """Pictures count the table's people, without noise: never beside answers that owe their privacy to noise."""
    parts = e.guarantee.parts if isinstance(e.guarantee, AllOf) else (e.guarantee,)
    return ("explainer" in e.provenance and "protector" not in e.provenance) or any(
        isinstance(part, KAnonymity) for part in parts
    )
