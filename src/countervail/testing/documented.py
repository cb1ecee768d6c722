"""The tables of the docs that list what there is, written from the registry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from countervail import registry
from countervail.attack import OracleAttack
from countervail.core.guarantee import DifferentialPrivacy, Guarantee, NoGuarantee

_MEASURED = "nobody: [published mechanisms](docs/guide/published-mechanisms.md), here to be measured"
_BUDGET = "everybody, up to the [budget](docs/guide/budgets.md)"


def promise_table() -> str:
    """What each protector promises with its own settings, and whom that withstands; equal promises share a line."""
    lines: dict[tuple[str, str], list[str]] = {}
    counted: list[str] = []
    kinds: list[type[Any]] = [*registry.explainers().values(), *registry.explanation_protectors().values()]
    kinds += registry.table_protectors().values()
    for kind in kinds:
        for settings in registry.fact(kind, "variants"):
            promise: Guarantee = kind(**settings).guarantee()
            lines.setdefault(_words(promise), []).append(_call("cv", kind, settings))
        if isinstance(registry.promise(kind), DifferentialPrivacy) and "ledger" in registry.parameters(kind):
            counted.append(_call("cv", kind))
    if counted:
        lines["a budget for all answers ever", _BUDGET] = [f"{', '.join(counted)} with `ledger=cv.Ledger(...)`"]
    if known := registry.published().values():
        lines["none", _MEASURED] = [_call("cv.published", kind) for kind in known]
    return table(["", "promise", "withstands"], [[", ".join(who), *words] for words, who in lines.items()])


def attack_table() -> str:
    """What each attack does, and what it looks at."""
    rows = []
    for name, kind in registry.attacks().items():
        seen = "answers, by asking" if issubclass(kind, OracleAttack) else "what was released"
        rows.append([f"`{name}`", f"`cv.attack.{kind.__name__}`", seen, registry.summary(kind)])
    return table(["", "", "looks at", "what it does"], rows)


def filled(page: str) -> str:
    """A page with these tables in their places, between `<!-- table:NAME -->` and `<!-- end:NAME -->`."""
    for name, make in (("promises", promise_table), ("attacks", attack_table)):
        start, end = f"<!-- table:{name} -->\n", f"<!-- end:{name} -->"
        if start in page and end in page:
            before, _, rest = page.partition(start)
            page = f"{before}{start}{make()}\n{end}{rest.partition(end)[2]}"
    return page


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _words(promise: Guarantee) -> tuple[str, str]:
    if isinstance(promise, NoGuarantee):
        return "none", f"nobody: {promise.why}"
    claim = promise.claim
    if isinstance(promise, DifferentialPrivacy):
        each = "for all answers from one draw" if promise.answers is None else "for each answer"
        spent = f"epsilon = {promise.epsilon:g}" + (f", delta = {promise.delta:g}" if promise.delta else "")
        given = "" if promise.given == "no model" else f", given a {promise.given}"
        claim = f"differential privacy, {spent} {each}{given}"
    return claim, promise.adversary or "for each part someone else"


def _call(place: str, kind: type[Any], settings: Mapping[str, Any] | None = None) -> str:
    given = "" if settings is None else f"({', '.join(f'{n}={json.dumps(v)}' for n, v in settings.items())})"
    return f"`{place}.{kind.__name__}{given}`"
