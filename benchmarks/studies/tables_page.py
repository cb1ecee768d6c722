"""Write the tables of docs/guide/tables.md from the results: nothing in them is typed by hand."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "guide" / "tables.md"
NAMES = {"adult": "Adult", "cmc": "CMC", "german_credit": "German", "heart_c": "Heart", "informs_5000": "Informs"}
NAMES |= {"default_credit": "Default", "acs_income_ca_2018": "ACS income"}


def read(name: str) -> Any:
    """One file of results."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def options() -> str:
    """NCP and time of each setting, and the peers."""
    found = read("mondrian_options.json")
    k, rows = found["k"], found["ours"]
    lines = [
        f"Adult, k={k}: NCP in percent and CPU milliseconds of `fit` (`benchmarks/speed/mondrian_options.py`); the",
        "peers as measured for the specification.",
        "",
        "| | NCP Q5 | NCP Q8 | ms Q5 | ms Q8 | left out Q5 / Q8 |",
        "|---|---|---|---|---|---|",
    ]
    for option in rows["Q5"]:
        one, two = rows["Q5"][option], rows["Q8"][option]
        lines.append(
            f"| {option} | {one['ncp_percent']:.2f} | {two['ncp_percent']:.2f} | {one['fit_ms']:.0f} "
            f"| {two['fit_ms']:.0f} | {one['suppressed']:,} / {two['suppressed']:,} |"
        )
    for peer, figures in found["peers_ncp_percent"].items():
        eight = "-" if figures["Q8"] is None else f"{figures['Q8']:g}"
        lines.append(f"| *{peer}* | *{figures['Q5']:g}* | *{eight}* | | | |")
    return "\n".join(lines)


def explanations() -> str:
    """NCP and pureness of explanations drawn from Mondrian tables, beside CF-K and the paper."""
    found = read("mondrian_explanations.json")["sets"]
    methods = ("plain", "mondrian", "groups", "exact")
    lines = [
        "NCP / pureness in percent (`benchmarks/studies/mondrian_explanations.py`; the paper's Tables 6, 7 and 9 to 12",
        "were reported on other splits, models and another Mondrian).",
        "",
        f"| | k | {' | '.join(methods)} | *Mondrian, reported* | *CF-K, reported* |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in (n for n in NAMES if n in found):
        for k in (k for k in ("5", "10", "20") if k in found[name]):
            ours, theirs = found[name][k]["ours"], found[name][k]["reported"]
            cells = [
                _pair(ours[m]["ncp"]["value"], ours[m]["pureness"]["value"]) if ours[m]["found"] else "-"
                for m in methods
            ]
            cells += [f"*{_pair(theirs[w]['ncp'], theirs[w]['pureness'])}*" for w in ("mondrian", "cfk")]
            lines.append(f"| {NAMES[name]} | {k} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _pair(ncp: float, pureness: float) -> str:
    return f"{ncp:.1f} / {pureness:.0f}"


def centres() -> str:
    """Microaggregation beside its published losses, and beside Mondrian."""
    found = read("microaggregation.json")
    lines = [
        f"`benchmarks/studies/microaggregation.py`, k={found['k']}: SSE / SST and NCP in percent, error of counts",
        "over two columns (median), CPU seconds of `fit`. MDAV's published losses are reproduced:",
        f"{_reproduced(found['reference'])}.",
        "",
        "| | rows | method | SSE / SST | NCP | query error | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, rows in found["sets"].items():
        for method in ("mdav", "v-mdav", "mondrian"):
            r = rows[method]
            lines.append(
                f"| {name} ({len(rows['columns'])} numbers) | {rows['n']:,} | {method} | {r['sse_percent']:.2f} "
                f"| {r['ncp_percent']:.2f} | {r['query_error_median']:.3f} | {r['fit_cpu_seconds']:.2f} |"
            )
    return "\n".join(lines)


def _reproduced(reference: Any) -> str:
    parts = []
    for name, rows in reference.items():
        pairs = [f"{r['mdav']:.2f} (*{r['mdav_reported']:.2f}*) at k={k}" for k, r in rows["loss_percent"].items()]
        parts.append(f"{name.capitalize()} {', '.join(pairs)}")
    return "; ".join(parts)


def population() -> str:
    """Estimates of population uniques beside the truth."""
    found = read("population_risk.json")["sets"]
    lines = [
        "Samples of populations that are known (`benchmarks/studies/population_risk.py`): means over the draws.",
        "",
        "| population | sampled | uniques, true | Pitman | Zayatz | SNB | rule | risk, true | estimated | *Franconi* |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rows in found.items():
        for fraction, r in rows["fractions"].items():
            numbers = [_mean(r[w], ",.0f") for w in ("pitman", "zayatz", "snb", "rule")]
            chances = [_mean(r[w], ".3f") for w in ("journalist_true", "journalist", "journalist_franconi")]
            cells = [f"{name} ({rows['n']:,})", f"{float(fraction):.0%}", f"{rows['uniques']:,}", *numbers, *chances]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(found: Any, form: str) -> str:
    return "-" if found["mean"] is None else format(found["mean"], form)


def utility() -> str:
    """What readers still get from tables of several protections, anonypy's among them."""
    found = read("utility_peers.json")["sets"]
    lines = [
        "What readers still get (`benchmarks/studies/utility_peers.py`): NCP, the median error of counts over two",
        "columns, and the accuracy, on other people, of a boosted model that learnt from the released cells (with half",
        "the width of its 95% interval); all in percent. `local` is told by names of groups on Adult, which has",
        "hierarchies.",
        "",
        "| set | k | | NCP | counts | accuracy | CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, rows in found.items():
        for k in (key for key in rows if key.startswith("k=")):
            first = next(iter(rows[k].values()))["accuracy_of_original"]["value"]
            lines.append(f"| {NAMES.get(name, name)} | {k[2:]} | original rows | | | {100 * first:.1f} | |")
            for method, f in rows[k].items():
                right = f["accuracy"]
                figures = [f"{f['ncp_percent']:.2f}", f"{f['query_error_percent']:.1f}"]
                figures.append(f"{100 * right['value']:.1f} ±{50 * (right['high'] - right['low']):.1f}")
                lines.append(f"| | | {method} | {' | '.join(figures)} | {f['cpu_seconds']:.2f} |")
    return "\n".join([*lines, "", *_against_us(found)])


def _against_us(found: dict[str, Any]) -> list[str]:
    """Where anonypy's tables are better than ours, read off the record."""
    runs = {
        (NAMES.get(name, name), key): methods
        for name, rows in found.items()
        for key, methods in rows.items()
        if key.startswith("k=")
    }
    peer = next(m for m in next(iter(runs.values())) if m.startswith("anonypy"))
    lines = [f"What speaks against ours, beside {peer}:", ""]
    for figure, words in (("ncp_percent", "loses more (NCP)"), ("query_error_percent", "counts worse")):
        worse: dict[str, list[str]] = {}
        for (name, k), methods in runs.items():
            for method, f in methods.items():
                if f[figure] > methods[peer][figure]:
                    worse.setdefault(method, []).append(f"{name} ({k})")
        said = [f"{method} on {', '.join(where)}" for method, where in worse.items()]
        lines.append(f"- {words}: {'; '.join(said) or 'none'};")
    told = [
        f"{method} on {name} ({k})"
        for (name, k), methods in runs.items()
        for method, f in methods.items()
        if f["accuracy"]["low"] > methods[peer]["accuracy"]["high"]
        or f["accuracy"]["high"] < methods[peer]["accuracy"]["low"]
    ]
    overlap = "none: all intervals overlap, so it tells nothing apart here"
    lines.append(f"- accuracy that can be told from anonypy's: {'; '.join(told) or overlap};")
    slower = [
        f"{method} on {name} ({k})"
        for (name, k), methods in runs.items()
        for method, f in methods.items()
        if f["cpu_seconds"] > methods[peer]["cpu_seconds"]
    ]
    lines.append(f"- takes longer: {'; '.join(slower) or 'none'}.")
    unknown = (
        "ARX and sdcMicro were not run here: of them only the NCP above is known, as measured for the specification."
    )
    lines += ["", unknown]
    return lines


TABLES = {
    "options": options,
    "utility": utility,
    "explanations": explanations,
    "centres": centres,
    "population": population,
}


def main() -> None:
    """Put each table between its marks."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    page = PAGE.read_text(encoding="utf-8")
    for name, text in TABLES.items():
        before, _, rest = page.partition(f"<!-- table:{name} -->\n")
        _, _, after = rest.partition(f"<!-- end:{name} -->")
        page = f"{before}<!-- table:{name} -->\n{text()}\n<!-- end:{name} -->{after}"
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
