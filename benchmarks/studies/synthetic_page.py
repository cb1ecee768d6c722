"""Write the tables of docs/guide/synthetic.md from the results: nothing in them is typed by hand."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from synthetic import NOT_SEEN
from synthetic_levels import CHOSEN_BY

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "synthetic.json"
PAGE = ROOT / "docs" / "guide" / "synthetic.md"
START, END = "<!-- table -->\n", "<!-- end -->"
MODELS = ROOT / "benchmarks" / "results" / "private_model.json"
MODEL_START, MODEL_END = "<!-- table: models -->\n", "<!-- end: models -->"
PEERS = ROOT / "benchmarks" / "results" / "synthetic_peers.json"
PEER_START, PEER_END = "<!-- table: peers -->\n", "<!-- end: peers -->"
FORMS = ROOT / "benchmarks" / "results" / "synthetic_forms.json"
FORM_START, FORM_END = "<!-- table: forms -->\n", "<!-- end: forms -->"
FEW = ROOT / "benchmarks" / "results" / "synthetic_levels.json"
FEW_START, FEW_END = "<!-- table: levels -->\n", "<!-- end: levels -->"
POWER = ROOT / "benchmarks" / "results" / "one_run_power.json"
POWER_START, POWER_END = "<!-- table: one run -->\n", "<!-- end: one run -->"
HITS = ROOT / "benchmarks" / "results" / "synthetic_hits.json"
HITS_START, HITS_END = "<!-- table: hits -->\n", "<!-- end: hits -->"
_LEVELS = {"pairs": "pairs of columns", "columns": "columns alone", "nothing": "nothing"}


def table(found: dict[str, Any]) -> str:
    """Distance, plausibility and changes of each mechanism on each set, and what the synthetic tables are worth."""
    sets = found["sets"]
    draws = max(p["draws"] for s in sets.values() for p in s["found"].values())
    people = max(s["n_people"] for s in sets.values())
    lines = [
        "Dist_rec / Plaus_prox / columns changed: distance from the asker, mean distance to the five nearest records,",
        f"less is better; epsilon 1 in total, delta 1e-6, up to {people} people, means of {draws} draws of noise",
        "(`benchmarks/studies/synthetic.py`). Sets with a star were not looked at while the mechanism was made. A",
        "search for typical answers differs by itself: NICE's own line says by how much.",
        "",
        _line("", [n + ("*" if n in NOT_SEEN else "") for n in sets]),
        f"|---|{'---|' * len(sets)}",
    ]
    labels = [m for m in next(iter(sets.values()))["found"] if "epsilon" not in m]
    lines += [_line(label, [_cell(s["found"][label]) for s in sets.values()]) for label in labels]
    less = [s["plausibility_less_that_of_nice_sparsity"]["PrivateSynthetic, typical"] for s in sets.values()]
    lines.append(_line("*Plaus_prox, private typical less NICE sparsity (95%)*", [_interval(e) for e in less]))
    lines.append(_line("counted", [_LEVELS[s["level"]] for s in sets.values()]))
    worth = [s["synthetic_table"] for s in sets.values()]
    apart = [f"{w['one_way']:.3f} / {w['two_way']:.3f}" for w in worth]
    lines.append(_line("total variation of columns / of pairs", apart))
    hits = [f"{w['rows_of_training_people']:.1%} / {w['rows_of_others']:.1%}" for w in worth]
    lines.append(_line("synthetic rows that are somebody's: in the table / not", hits))
    times = [s["found"]["PrivateSynthetic, typical"] for s in sets.values()]
    spent = [f"{t['fit_seconds']:.1f} / {t['answer_ms']:.1f}" for t in times]
    lines.append(_line("seconds to fit / ms per answer, beyond the model", spent))
    other = {m: p for m, p in sets.get("adult", {"found": {}})["found"].items() if "epsilon" in m}
    if other:
        said = ", ".join(f"{m.rpartition(' ')[2]}: {p['plaus_prox']['value']:.2f}" for m, p in other.items())
        lines += ["", f"Adult, typical, Plaus_prox by epsilon: {said}. At small epsilons nothing is carried any more."]
    return "\n".join(lines) + "\n"


def model_table(found: dict[str, Any]) -> str:
    """How right private models are, what answers about them are like, and what it costs to make them."""
    sets = found["sets"]
    lines = [
        "Right about people whom the model has not seen; means of "
        f"{found['draws']} trainings (`benchmarks/studies/private_model.py`). Answers: Dist_rec / Plaus_prox /",
        "columns changed, of people whom the private model refuses; epsilon 1 for it and 1 for the answers.",
        "",
        _line("", [f"{n} ({s['n_train']:,})" for n, s in sets.items()]),
        f"|---|{'---|' * len(sets)}",
    ]
    for label in next(iter(sets.values()))["accuracy"]:
        said = [s["accuracy"][label] for s in sets.values()]
        lines.append(_line(label, [f"{v['mean'] if isinstance(v, dict) else v:.1%}" for v in said]))
    for label in next(iter(sets.values()))["answers"]:
        cells = [_cell(s["answers"][label]) if label in s["answers"] else "" for s in sets.values()]
        lines.append(_line(f"{label}, about the private model", cells))
    third, rows = sets["adult"]["decision_as_third_column"], found["million_rows_cpu_seconds"]
    near = [f"{third[n]['plaus_prox']['value']:.3f} and {third[n]['two_way']:.3f}" for n in ("with", "without")]
    lines += [
        "",
        "Cliques of three under the same budget: PrivateSynthetic counts each pair by decision where there are people",
        f"enough. On Adult, Plaus_prox (typical) and the total variation of pairs are {near[0]} with the decision as a",
        f"third column, {near[1]} without.",
        f"A million rows take {rows['PrivateSynthetic']:.1f} CPU seconds to fit beyond the model, and "
        f"{rows['train_private_logistic']:.1f} to train on.",
    ]
    return "\n".join(lines) + "\n"


def peer_table(found: dict[str, Any]) -> str:
    """What others make of the same people, and how long that takes them."""
    sets = found["sets"]
    labels = dict.fromkeys(label for s in sets.values() for label in s["found"])
    draws = "; ".join(f"{n}: {s['draws']}" for n, s in sets.items())
    lines = [
        "Dist_rec / Plaus_prox / columns changed; epsilon 1 unless told, delta 1e-6 (DPGAN: 1e-5, no promise), the",
        f"same grid, people and search (`benchmarks/studies/synthetic_peers.py`; draws: {draws}).",
        "",
        _line("", list(sets)),
        f"|---|{'---|' * len(sets)}",
    ]
    lines += [_line(m, [_cell(s["found"][m]) if m in s["found"] else "" for s in sets.values()]) for m in labels]
    for m in [m for m in labels if m.endswith("typical")]:
        less = [s["plausibility_less_that_of_ours"].get(m) for s in sets.values()]
        if any(less):
            lines.append(_line(f"*Plaus_prox, {m} less ours (95%)*", [_interval(e) if e else "" for e in less]))
    made = dict.fromkeys(m for s in sets.values() for m in s["synthetic_table"])
    for m in made:
        apart = [s["synthetic_table"].get(m) for s in sets.values()]
        words = [f"{w['one_way']:.3f} / {w['two_way']:.3f}" if w else "" for w in apart]
        lines.append(_line(f"{m}: total variation of columns / of pairs", words))
    for m in [m for m in labels if m == "DPGAN" or m.endswith("typical")]:
        spent = [f"{s['found'][m]['fit_seconds']:.1f}" if m in s["found"] else "" for s in sets.values()]
        lines.append(_line(f"{m.partition(',')[0]}: CPU seconds of a draw, the model's included", spent))
        if any(s["found"].get(m, {}).get("model_seconds") for s in sets.values()):
            alone = [s["found"].get(m, {}) for s in sets.values()]
            beyond = [f"{f['fit_seconds'] - f['model_seconds']:.1f}" if "model_seconds" in f else "" for f in alone]
            lines.append(_line(f"{m.partition(',')[0]}: beyond the model", beyond))
    late = [(n, s["not_ended"]) for n, s in sets.items() if s.get("not_ended", {}).get("peers")]
    if late:
        said = "; ".join(f"{n}: {', '.join(w['peers'])} ({w['cpu_seconds']:,} CPU s)" for n, w in late)
        lines += ["", f"Not ended in the time given: {said}."]
    failed = [f"{n}: {peer} ({why})" for n, s in sets.items() for peer, why in s.get("failed", {}).items()]
    if failed:
        lines += ["", f"Failed: {'; '.join(failed)}."]
    return "\n".join(lines) + "\n"


def form_table(found: dict[str, Any]) -> str:
    """What two trees, or cliques of three, would gain."""
    sets = found["sets"]
    draws = max(s["draws"] for s in sets.values())
    lines = [
        "Plaus_prox (typical) less that of the tree with 95% interval, paired by person, and the total variation of",
        f"pairs; {draws} draws each (`benchmarks/studies/synthetic_forms.py`). Epsilon 1,000: the form alone.",
        "",
        _line("", list(sets)),
        f"|---|{'---|' * len(sets)}",
    ]
    for label in next(iter(sets.values()))["found"]:
        held = [s["found"][label] for s in sets.values()]
        less = [_interval(f["plausibility_less_that_of_the_tree"]) for f in held]
        if label.startswith("tree"):
            less = [f"{f['plaus_prox']['value']:.3f}" for f in held]
        lines.append(_line(label, [f"{p}; {f['synthetic_table']['two_way']:.3f}" for p, f in zip(less, held)]))
    return "\n".join(lines) + "\n"


def level_table(found: dict[str, Any]) -> str:
    """What it is worth to count more, or less, of few people."""
    sets = found["sets"]
    draws, people = (max(s[n] for s in sets.values()) for n in ("draws", "n_people"))
    lines = [
        "Plaus_prox less that of columns alone, sparsity; typical (95%, paired by person), and the total variation of",
        f"pairs; {draws} draws, up to {people} people (`benchmarks/studies/synthetic_levels.py`). In brackets: people",
        "per unit of noise on a pair, and on a column. The rule was chosen by the sets without a star.",
        "",
        "| set, epsilon | nothing | columns by decision | columns | pairs |",
        "|---|---|---|---|---|",
    ]
    for name, s in sets.items():
        for epsilon, e in s["epsilons"].items():
            noise, cells = e["people_per_noise"], []
            for level in ("nothing", "columns by decision", "columns", "pairs"):
                held = e["levels"][level]
                less = [_interval(held[r]["plausibility_less_that_of_columns"]) for r in ("sparsity", "typical")]
                if level == "columns":
                    less = [f"{held[r]['plaus_prox']['value']:.3f}" for r in ("sparsity", "typical")]
                cells.append(f"{less[0]}; {less[1]}; {held['two_way']:.2f}")
            star = "" if name in CHOSEN_BY else "*"
            lines.append(_line(f"{name}{star}, {epsilon} ({noise['pairs']:.0f}; {noise['columns']:.0f})", cells))
    return "\n".join(lines) + "\n"


def hits_table(found: dict[str, Any]) -> str:
    """How often synthetic rows are those of people who were counted, and of others."""
    lines = [
        f"Share of synthetic rows that equal somebody's, epsilon {found['epsilon']:g}; means and 95% intervals over",
        "random halves of the people, of which one is counted (`benchmarks/studies/synthetic_hits.py`).",
        "",
        _line(
            "", ["people", "halves", "counted", "others", "more, in points", "times (allowed)", "one split is off by"]
        ),
        f"|---|{'---|' * 7}",
    ]
    for name, s in found["sets"].items():
        more = s["more_points"]
        cells = [f"{s['people']:,}", str(s["splits"]), f"{s['counted_percent']:.2f}%", f"{s['others_percent']:.2f}%"]
        cells.append(f"{more['value']:+.2f} ({more['low']:+.2f} to {more['high']:+.2f})")
        cells += [f"{s['ratio']:.2f} ({s['ratio_allowed']:.2f})", f"{s['deviation_of_one_split']:.2f}"]
        lines.append(_line(name, cells))
    return "\n".join(lines) + "\n"


def power_table(found: dict[str, Any]) -> str:
    """What a one-run audit catches."""
    parts = list(found["cases"][0]["by_part"])
    words = ["all of the noise" if p == "1" else f"noise / {p}" for p in parts]
    lines = [
        "Runs that refute the rho of epsilon 1 and delta 1e-6 (`benchmarks/studies/one_run_power.py`).",
        "",
        _line("canaries, delta (its epsilon; CPU seconds of a run)", words),
        f"|---|{'---|' * len(parts)}",
    ]
    for case in found["cases"]:
        held = case["by_part"]
        cost = max(h["cpu_seconds"] for h in held.values())
        label = f"{case['canaries']:,}, {case['delta']:g} ({held['1']['claim']:.2f}; {cost:.2g})"
        lines.append(_line(label, [f"{h['caught']} of {h['runs']}" for h in held.values()]))
    return "\n".join(lines) + "\n"


def place(text: str, start: str = START, end: str = END, page: str | None = None) -> str:
    """The page with this table."""
    page = PAGE.read_text(encoding="utf-8") if page is None else page
    before, _, rest = page.partition(start)
    return before + start + text + end + rest.partition(end)[2]


def whole_page() -> str:
    """The page with all its tables."""
    page = place(table(_read(RESULTS)))
    page = place(model_table(_read(MODELS)), MODEL_START, MODEL_END, page)
    page = place(form_table(_read(FORMS)), FORM_START, FORM_END, page)
    for made, path, start, end in (
        (level_table, FEW, FEW_START, FEW_END),
        (power_table, POWER, POWER_START, POWER_END),
        (hits_table, HITS, HITS_START, HITS_END),
    ):
        page = place(made(_read(path)), start, end, page) if path.exists() else page
    return place(peer_table(_read(PEERS)), PEER_START, PEER_END, page) if PEERS.exists() else page


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _line(label: str, cells: list[str]) -> str:
    return f"| {label} | {' | '.join(cells)} |"


def _cell(figures: dict[str, Any]) -> str:
    dist, near, many = (figures[n]["value"] for n in ("dist_rec", "plaus_prox", "changes"))
    return f"{dist:.2f} / {near:.3f} / {many:.1f}"


def _interval(estimate: dict[str, Any]) -> str:
    return f"{estimate['value']:+.3f} ({estimate['low']:+.3f} to {estimate['high']:+.3f})"


def main() -> None:
    """Write the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.write_text(whole_page(), encoding="utf-8")
    print(f"Written: {PAGE.name}")


if __name__ == "__main__":
    main()
