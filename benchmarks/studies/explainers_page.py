"""Write the table of docs/guide/explaining.md from the results: nothing in it is typed by hand."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "explainers.json"
PAGE = ROOT / "docs" / "guide" / "explaining.md"
START, END = "<!-- table: explainers -->\n", "<!-- end: explainers -->"


def table(found: dict[str, Any]) -> str:
    """Whom plain answers give away, what is left of that under CF-K, and what answers cost."""
    rows, speed = found["rows"], {s["explainer"]: s for s in found["speed"]}
    sets = list(dict.fromkeys(r["set"] for r in rows))
    asked = ", ".join(f"{s}: {next(r['asked'] for r in rows if r['set'] == s)}" for s in sets)
    size = next(iter(speed.values()))["rows"]
    heads = ["answered", "columns changed", "linkage, plain", 'inversion, `search="exact"`']
    heads += ['inversion, `search="groups"`', "fit, s", "answer, ms"]
    lines = [
        f"Refused people who asked: {asked} (`benchmarks/studies/explainers.py`). Cells: German credit / Adult (4,000",
        "rows). Linkage: the share of answers that fit one person of the table. Inversion, for someone who knows the",
        f"code: the share of answers with fewer than k = {found['k']} people left. Speed: CPU seconds of a fit to",
        f"{size:,} rows of Adult, milliseconds per answer in a batch, model included.",
        "",
        f"| | {' | '.join(heads)} |",
        f"|---|{'---|' * len(heads)}",
    ]
    for name in dict.fromkeys(r["explainer"] for r in rows if r["protector"] == "none"):
        mine = [r for r in rows if r["explainer"] == name]
        plain = [r for r in mine if r["protector"] == "none"]
        cells = [
            " / ".join(f"{r['answered']}" for r in plain),
            " / ".join("-" if r["columns_changed"] is None else f"{r['columns_changed']:.1f}" for r in plain),
            " / ".join(f"{r['linkage']['exposed']['value']:.0%}" for r in plain),
            *(_left([r for r in mine if f"'{search}'" in r["protector"]]) for search in ("exact", "groups")),
            f"{speed[name]['fit_cpu_s']:.1f}",
            f"{speed[name]['answer_cpu_ms']:.1f}",
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _left(rows: list[dict[str, Any]]) -> str:
    """Of two sets, how many answers are left with fewer than k people; nothing where CF-K cannot go by it."""
    if not rows:
        return ""
    below = [r["inversion"]["detail"]["below k after bisectors"] for r in rows]
    return " / ".join(f"{b['value']:.0%} of {b['n']}" for b in below)


def whole_page() -> str:
    """The page with the table of the results in it."""
    page = PAGE.read_text(encoding="utf-8")
    if not RESULTS.exists():
        return page
    before, _, rest = page.partition(START)
    return before + START + table(json.loads(RESULTS.read_text(encoding="utf-8"))) + END + rest.partition(END)[2]


def main() -> None:
    """Write the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.write_text(whole_page(), encoding="utf-8")
    print(f"Written: {PAGE.name}")


if __name__ == "__main__":
    main()
