"""Fill the tables of docs/guide/published-mechanisms.md from benchmarks/results/published.json."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from countervail import registry
from countervail.study import mechanisms

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "published.json"
PAGE = ROOT / "docs" / "guide" / "published-mechanisms.md"
_SHOWN = (None, 0.01, 1.0, 10.0)
_NEAR = (None, 3, 20)
_NAMES = {"adult": "Adult", "acs_income_ca_2018": "ACS income", "german_credit": "German credit"}


def tables(data: dict[str, Any]) -> dict[str, str]:
    """Every table of the page."""
    beside = {name: _beside(found) for name, found in data["beside_the_paper"].items()}
    return {
        "audits": _audits(data["audits"]),
        "who_asks": _who_asks(data["beside_the_paper"]),
        **beside,
        "head_to_head": _head_to_head(data["head_to_head"]),
        "dpgan": _rows(data["dpgan"]["rows"]) + "\n\n" + _size(data["dpgan"]),
        "models": _models(data["models"]),
    }


def filled(page: str, found: dict[str, str]) -> str:
    """The page with its tables in their places."""
    for name, text in found.items():
        before, _, rest = page.partition(f"<!-- table:{name} -->\n")
        _, _, after = rest.partition(f"<!-- end:{name} -->")
        page = f"{before}<!-- table:{name} -->\n{text}\n<!-- end:{name} -->{after}"
    return page


def _audits(found: dict[str, Any]) -> str:
    kinds = registry.published()
    lines = []
    for name, audit in found.items():
        kind = kinds.get(name)
        what = f"`cv.published.{kind.__name__}`" if kind is not None else f"`{name}`"
        holds = f"nothing: {kind.why}" if kind is not None else "what it claims (proof on its page)"
        draws = max(e["draws"] for e in audit["pairs"].values())
        lines.append([what, f"{audit['claim']:g}", holds, f"**{max(audit['worst'], 0):.2f}**", f"{draws:,}"])
    return _table(["mechanism", "claims", "what holds", "audited, at least", "draws"], lines)


def _beside(found: dict[str, Any]) -> str:
    shown = [r for r in found["rows"] if r["epsilon"] in _SHOWN and r["neighbours"] in _NEAR]
    agreement = found["agreement"]
    return "\n\n".join(
        [
            _rows(shown),
            f"{_size(found)} Over all settings, as described: {_agreement(agreement['described'])}",
            f"With the other readings of LDP and of the exponential mechanism: {_agreement(agreement['reported'])}",
        ]
    )


def _who_asks(found: dict[str, Any]) -> str:
    lines = []
    for name, result in found.items():
        groups = {"as in our reading": result["rows"], "the others": result["others_ask"]["rows"]}
        reported = {(r["mechanism"], r["epsilon"]): r["reported"] for r in result["rows"]}
        for who, rows in groups.items():
            by = {(r["mechanism"], r["epsilon"]): r["figures"] for r in rows}
            far = by["nice", None]["dist_rec"]
            shares = [f"{100 * by['published-laplace', e]['correctness']['value']:.1f}" for e in _SHOWN[1:]]
            lines.append([_NAMES[name], who, f"{far['value']:.2f} ± {far['deviation']:.2f}", *shares])
        shares = [f"*{100 * reported['published-laplace', e]['correctness']:.1f}*" for e in _SHOWN[1:]]
        lines.append([_NAMES[name], "*reported*", f"*{reported['nice', None]['dist_rec']:.2f}*", *shares])
    header = [f"Correctness of Laplace noise, epsilon {e:g}" for e in _SHOWN[1:] if e is not None]
    return _table(["data", "who asks", "Dist_rec of NICE", *header], lines)


def _agreement(found: dict[str, Any]) -> str:
    within = " and ".join(
        f"{n.upper()} within 5 points in {s['within_5_points']} of {s['rows']} rows (largest gap "
        f"{100 * s['largest']:.1f})"
        for n, s in found["shares"].items()
    )
    ranks = ", ".join(f"{_LABELS[n]} {v:.2f}" for n, v in found["rank_correlation"].items() if v == v)
    return f"{within}. Rank correlation with the reported: {ranks}."


_LABELS = {
    "correctness": "Correctness",
    "dist_rec": "Dist_rec",
    "plaus_prox": "Plaus_prox",
    "m0": "M0",
    "m1": "M1",
    "d_min": "d_min",
}


def _rows(rows: list[dict[str, Any]]) -> str:
    lines = []
    for r in rows:
        epsilon = "" if r["epsilon"] is None else f"{r['epsilon']:g}"
        near = "" if r["neighbours"] is None else str(r["neighbours"])
        lines.append([r["mechanism"], epsilon, near, *(_both(r, n) for n in _LABELS)])
    return _table(["mechanism", "epsilon", "k", *_LABELS.values()], lines)


def _both(row: dict[str, Any], name: str) -> str:
    scale, digits = (100, 1) if name in ("correctness", "m0", "m1") else (1, 2)
    ours = f"{scale * row['figures'][name]['value']:.{digits}f}"
    return ours if row["reported"] is None else f"{ours} / *{scale * row['reported'][name]:.{digits}f}*"


def _size(found: dict[str, Any]) -> str:
    plan, most = found["plan"], max(r["answers"] for r in found["rows"])
    people = max(r["people"] for r in found["rows"])
    return f"{people:,} people over {len(plan['seeds'])} seeds, up to {most:,} answers a row."


def _head_to_head(found: dict[str, Any]) -> str:
    lines = []
    for name, result in found.items():
        for epsilon, gaps in result["ours_minus_theirs"].items():
            cells = [_gap(gaps[n], n) for n in ("correctness", "dist_rec", "plaus_prox")]
            lines.append([_NAMES[name], epsilon, *cells])
    sizes = "; ".join(f"{_NAMES[n]}: {_size(r)}" for n, r in found.items())
    header = ["data", "epsilon", "Correctness, points", "Dist_rec", "Plaus_prox"]
    return f"{_table(header, lines)}\n\n{sizes}"


def _gap(gap: dict[str, Any], name: str) -> str:
    scale, digits = (100, 1) if name == "correctness" else (1, 3)
    sign = 1 if name == "correctness" else -1
    low, high = sorted(sign * gap[end] for end in ("low", "high"))
    verdict = "ours" if low > 0 else "theirs" if high < 0 else "level"
    ends = ", ".join(f"{scale * gap[end]:+.{digits}f}" for end in ("low", "high"))
    return f"{scale * gap['value']:+.{digits}f} [{ends}] {verdict}"


def _models(found: dict[str, Any]) -> str:
    kinds = ("forest", "network", "lightgbm")
    lines = [
        [name, f"{r['rows']:,}", *(f"{r[k]['accuracy']:.3f} / *{r[k]['reported']:.3f}*" for k in kinds)]
        for name, r in found.items()
    ]
    return _table(["data", "rows", *kinds], lines)


def _table(header: list[str], lines: list[list[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> None:
    """Write the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    found = tables(json.loads(RESULTS.read_text(encoding="utf-8")))
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    print(f"Written: {PAGE.name} ({len(mechanisms())} mechanisms known)")


if __name__ == "__main__":
    main()
