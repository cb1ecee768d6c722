"""How figures of several pieces become one: a mean over samples, pooled sums, a trend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from countervail.core.stats import Estimate, mean_interval, plain_value
from countervail.study.result import SHARES, Moments

Figure = dict[str, Any]  # value, low, high, n; or a text
Found = Mapping[str, Any]  # what a piece found: {"figures": {key: Figure}, ...}
_PLAIN = "nice"
_KINDS = {"published-ldp": "DP-Pre", "published-inline": "Inline_DP"}
_CLEAR = 0.5  # the rank correlation from which on a trend is one


def figure(value: Any) -> Figure:
    """A figure as JSON data: an estimate, a number that is exactly known, or a text."""
    if isinstance(value, Estimate):
        return {n: plain_value(v) for n, v in value.to_dict().items() if n != "level"}
    if isinstance(value, str):
        return {"text": value}
    number = plain_value(value)
    return {"value": number, "low": number, "high": number, "n": 1}


def one(found: Sequence[Found], key: str) -> Figure:
    """The figure of the only piece."""
    return dict(found[0]["figures"][key])


def mean(found: Sequence[Found], key: str) -> Figure:
    """The mean over the pieces, with Student's interval over them; of one piece, its own figure."""
    if len(found) == 1:
        return one(found, key)
    values = [f["figures"][key]["value"] for f in found]
    return figure(mean_interval([v for v in values if v is not None]))


def largest(found: Sequence[Found], key: str) -> Figure:
    """The mean of the pieces' maxima, between the least and the greatest of them."""
    values = [f["figures"][key]["value"] for f in found]
    n = sum(int(f["figures"][key]["n"]) for f in found)
    return {"value": sum(values) / len(values), "low": min(values), "high": max(values), "n": n}


def pooled(found: Sequence[Found], key: str) -> Figure:
    """The mean over the people of all pieces, from their sums."""
    parts = [Moments(**f["moments"][key]) for f in found]
    scale = 100.0 if key.partition("|")[0] in SHARES else 1.0
    total = sum(parts[1:], start=parts[0])
    e = total.estimate(share=scale > 1)
    return figure(Estimate(scale * e.value, scale * e.low, scale * e.high, e.n))


def change(found: Sequence[Found], key: str) -> Figure:
    """How much a mechanism's figure differs from plain NICE's, in percent of it."""
    name = key.partition("|")[0]
    plain = [f for f in found if f["name"] == _PLAIN]
    made = [f for f in found if f["name"] != _PLAIN]
    ours, theirs = (_total(f, k) for f, k in ((made, key), (plain, f"{name}|None")))
    if not theirs:
        return figure(float("nan"))
    return figure(100 * (ours / theirs - 1))


def most(found: Sequence[Found], key: str) -> Figure:
    """The kind of mechanism with the largest mean."""
    return figure(_KINDS.get(max(_by_name(found), key=lambda n: _total(_by_name(found)[n], key)), "DP-Post"))


def least(found: Sequence[Found], key: str) -> Figure:
    """The kind of mechanism with the smallest mean."""
    return figure(_KINDS.get(min(_by_name(found), key=lambda n: _total(_by_name(found)[n], key)), "DP-Post"))


def _by_name(found: Sequence[Found]) -> dict[str, list[Found]]:
    out: dict[str, list[Found]] = {}
    for f in found:
        out.setdefault(str(f["name"]), []).append(f)
    return out


def _total(found: Sequence[Found], key: str) -> float:
    """The mean over people of all pieces, at this figure and epsilon and the most neighbours that were tried."""
    parts = []
    for f in found:
        fitting = [k for k in f["moments"] if k.startswith(f"{key}|")]
        last = max(fitting, key=lambda k: float(k.rpartition("|")[2].replace("None", "0")))
        parts.append(Moments(**f["moments"][last]))
    total = sum(parts[1:], start=parts[0])
    return total.total / total.people


def trend(found: Sequence[Found], key: str) -> Figure:
    """Whether a figure rises or falls over the pieces, in their order."""
    from scipy.stats import spearmanr

    values = [f["figures"][key]["value"] for f in found]
    if len(set(values)) == 1:
        return figure("stays")
    rank = float(spearmanr(range(len(values)), values).statistic)
    return figure("rises" if rank >= _CLEAR else "falls" if rank <= -_CLEAR else "no trend")


def best(found: Sequence[Found], key: str) -> Figure:
    """The name of the piece with the largest figure."""
    first = max(found, key=lambda f: float(f["figures"][key]["value"]))
    return figure(str(first["name"]))


def beside(found: Sequence[Found], key: str) -> Figure:
    """Whether the first piece's figure is lower than the second's, higher, or equal to it."""
    first, second = (float(f["figures"][key]["value"]) for f in found)
    return figure("equal" if first == second else "lower" if first < second else "higher")


HOW: dict[str, Callable[[Sequence[Found], str], Figure]] = {
    f.__name__: f for f in (one, mean, largest, pooled, change, most, least, trend, best, beside)
}
