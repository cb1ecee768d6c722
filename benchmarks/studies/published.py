"""The published mechanisms as their authors ran them, beside the reported figures and beside the ones with a promise.

Four parts, each recorded: what every mechanism's epsilon of 1 is from outside; Adult and ACS income with forests beside
Tables 25-29 and 2-7; PrivateNeighbours against the published Inline_DP at equal nominal epsilon on Adult and German
credit; the accuracy of all models beside Table 11. Finished cells are kept in a folder, so an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "speed"), str(Path(__file__).parent)]

from _record import parse, write, writes  # noqa: E402
from _reported_private_counterfactuals import EPSILONS, FIGURES, NEIGHBOURS, REPORTED  # noqa: E402

import countervail as cv  # noqa: E402
from _private import load_declared, provenance  # noqa: E402
from countervail.model import PAPER_MODELS, train_paper_model  # noqa: E402
from countervail.study import READINGS, Study, StudyPlan, as_published, described, mechanisms, run  # noqa: E402
from countervail.study.audit import pair_evidence  # noqa: E402
from countervail.study.result import SHARES, Moments  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "published.json"
PICTURES = ROOT / "docs" / "figures"
OURS, THEIRS = "private-neighbours", "published-inline"
_DRAWN = ("Dist_rec", "Correctness", "M1")


def audited() -> tuple[str, ...]:
    """Whom audits look at: all published ones that need no extra, and two of ours that pay for every answer."""
    return (*as_published(), OURS, "noisy-counterfactual")


def audits(draws: int, names: Sequence[str]) -> dict[str, Any]:
    """Each mechanism at a claim of 1."""
    found = {}
    for name in names:
        few = draws // 8 if mechanisms()[name].proven else draws
        pairs = {label: asdict(e) for label, e in pair_evidence(name, 1.0, draws=few, training=few // 4).items()}
        found[name] = {"claim": 1.0, "worst": max(e["epsilon"] for e in pairs.values()), "pairs": pairs}
        print(f"{name:<24} claim 1, at least {found[name]['worst']:.2f}", flush=True)
    return found


def beside_the_paper(name: str, size: dict[str, Any], store: Path, *, pictures: bool) -> dict[str, Any]:
    """One data set with forests, long columns of labels as numbers, and once more with labels throughout."""
    coded = cv.data.paper_table(name, coded=True)
    settings = {"epsilons": EPSILONS, "neighbours": NEIGHBOURS, **size}
    every = ("nice", *of_the_paper(name), *READINGS)
    study = measured(StudyPlan({name: coded}, every, **settings), store, f"{name}, long columns as numbers")
    labels = StudyPlan({name: cv.data.paper_table(name)}, every, **{**settings, **_few(size)})
    typed = measured(labels, store, f"{name}, labels")
    rows = [
        {
            **r.to_dict(),
            "reported": REPORTED[name].get((described(r.mechanism), r.epsilon, r.neighbours)),
        }
        for r in study.rows()
    ]
    if pictures:
        draw(name, study)
    return {
        "plan": study.plan.to_dict(),
        "rows": rows,
        "agreement": {
            "described": agreement([r for r in rows if r["mechanism"] not in READINGS]),
            "reported": agreement([r for r in rows if r["mechanism"] not in {of for of, _ in READINGS.values()}]),
        },
        "labels": {"plan": typed.plan.to_dict(), "rows": [r.to_dict() for r in typed.rows()]},
        "others_ask": others_ask(name, coded, size, store),
    }


def of_the_paper(name: str) -> tuple[str, ...]:
    """The mechanisms with reported figures on this set; private recourse of others has none, and asks for domains."""
    reported = {mechanism for mechanism, _, _ in REPORTED[name]}
    return tuple(n for n in as_published() if n in reported)


def others_ask(name: str, table: cv.Table, size: dict[str, Any], store: Path) -> dict[str, Any]:
    """The same with the people whom the paper does not ask: those who have what its people want."""
    labels = {v for v in table.target.unique().tolist() if v not in table.schema.favourable}
    turned = cv.Table(table.frame, cv.Schema(table.schema.columns, tuple(labels)))
    plan = StudyPlan({name: turned}, ("nice", "published-laplace"), epsilons=EPSILONS, **size)
    study = measured(plan, store, f"{name}, the others ask")
    return {"plan": study.plan.to_dict(), "rows": [r.to_dict() for r in study.rows()]}


def beside(name: str, study: Study) -> list[dict[str, Any]]:
    """Our rows with the reported figures of the same mechanism."""
    return [
        {
            **r.to_dict(),
            "reported": REPORTED[name].get((described(r.mechanism), r.epsilon, r.neighbours)),
        }
        for r in study.rows()
    ]


def _few(size: dict[str, Any]) -> dict[str, Any]:
    return {"epsilons": (1.0,), "neighbours": (20,), "seeds": size["seeds"][:2]}


def agreement(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How far our figures lie from the reported ones, and whether both put the mechanisms in the same order."""
    from scipy.stats import spearmanr

    known = [r for r in rows if r["reported"] is not None]
    within = {}
    for n in ("m0", "m1"):
        gaps = [abs(r["figures"][n]["value"] - r["reported"][n]) for r in known]
        within[n] = {"rows": len(gaps), "within_5_points": sum(g <= 0.05 for g in gaps), "largest": max(gaps)}
    order = {
        n: float(spearmanr([r["figures"][n]["value"] for r in known], [r["reported"][n] for r in known]).statistic)
        for n in FIGURES
    }
    return {"shares": within, "rank_correlation": order}


def synthetic(size: dict[str, Any], store: Path) -> dict[str, Any]:
    """DPGAN on ACS income beside Table 3."""
    name = "acs_income_ca_2018"
    table = cv.data.paper_table(name, coded=True)
    declared = cv.Table.from_frame(table.frame, schema=table.schema, domains=_codebook(table))
    plan = StudyPlan({name: declared}, ("nice", "published-dpgan"), epsilons=(1.0, 10.0), **size)
    study = measured(replace(plan, seeds=plan.seeds[:2]), store, "DPGAN")
    return {"plan": study.plan.to_dict(), "rows": beside(name, study)}


def _codebook(table: cv.Table) -> dict[str, Any]:
    """The codes of ACS are public; with this many rows, those of the codebook are those that occur."""
    return {
        c.name: tuple(sorted(table.frame[c.name].unique()))
        if c.type == "categorical"
        else (int(table.frame[c.name].min()), int(table.frame[c.name].max()))
        for c in table.schema
        if c.role != "target"
    }


def head_to_head(name: str, size: dict[str, Any], store: Path) -> dict[str, Any]:
    """Ours against theirs, at the same nominal epsilon; negative differences of distances are in our favour."""
    table, missing = load_declared(name)
    plan = StudyPlan(
        {name: table},
        ("nice", OURS, THEIRS),
        epsilons=(0.1, 1.0, 5.0, 10.0),
        missing={name: missing},
        **size,
    )
    study = measured(plan, store, f"{name}, ours against theirs")
    differences = {
        f"{e:g}": {n: difference(pooled(study, OURS, e, n), pooled(study, THEIRS, e, n), n) for n in FIGURES[:3]}
        for e in plan.epsilons
    }
    return {
        "plan": study.plan.to_dict(),
        "rows": [r.to_dict() for r in study.rows()],
        "ours_minus_theirs": differences,
    }


def pooled(study: Study, mechanism: str, epsilon: float, figure: str) -> Moments:
    """The sums of all seeds together."""
    parts = [r.moments[figure] for c, r in study.results.items() if (c.mechanism, c.epsilon) == (mechanism, epsilon)]
    return sum(parts[1:], start=parts[0])


def difference(a: Moments, b: Moments, name: str) -> dict[str, Any]:
    """The gap between two means with a 95% interval over people; shares that never vary keep their binomial ones."""
    from scipy.stats import norm

    means = [m.total / m.people for m in (a, b)]
    spread = sum((m.squares - m.total**2 / m.people) / (m.people - 1) / m.people for m in (a, b))
    half = float(norm.ppf(0.975)) * math.sqrt(max(spread, 0.0))
    gap = means[0] - means[1]
    if name in SHARES and spread <= 0:
        one, other = (m.estimate(share=True) for m in (a, b))
        half = max(one.high - one.low, other.high - other.low)
    return {"value": gap, "low": gap - half, "high": gap + half, "people": [a.people, b.people]}


def accuracies(rows: int) -> dict[str, Any]:
    """Every model of Table 10 on every set, beside Table 11."""
    found: dict[str, Any] = {}
    for name, settings in PAPER_MODELS.items():
        table = cv.data.paper_table(name)
        if len(table) > rows:
            table, _ = table.split(test_size=len(table) - rows, random_state=0)
        train, test = table.split(test_size=0.2 / 0.9, random_state=0)
        found[name] = {"rows": len(table)}
        for kind in ("forest", "network", "lightgbm"):
            model = train_paper_model(train, kind, name)
            right = float((model.predict(test.features) == test.target.astype(object)).mean())
            found[name][kind] = {"accuracy": right, "n": len(test), "reported": settings.reported[kind]}
            print(f"{name:<30}{kind:<10} {right:.3f} (reported {settings.reported[kind]:.3f})", flush=True)
    return found


def measured(plan: StudyPlan, store: Path, what: str) -> Study:
    """Run a plan and print its rows."""
    start = time.perf_counter()
    study = run(plan, store=store)
    print(f"\n{what}: {time.perf_counter() - start:.0f} s", flush=True)
    for r in study.rows():
        f = {n: s.mean.value for n, s in r.figures.items()}
        text = " ".join(f"{n} {v:.3f}" for n, v in f.items())
        print(f"  {r.mechanism:<24}{r.epsilon or '':<6}{r.neighbours or '':<4} {text}", flush=True)
    return study


def draw(name: str, study: Study) -> None:
    """Trade-off pictures, with the inline mechanism at its largest number of neighbours."""
    from countervail.report.compared_page import pictures

    shown = [r for r in study.rows() if r.neighbours in (None, max(NEIGHBOURS)) and r.mechanism not in READINGS]
    for number, (label, svg) in enumerate(pictures(shown)):
        if label not in _DRAWN:
            continue
        short = f"published-{name.replace('_', '-')}-{label.lower().replace('_', '-')}-{number % 2 + 1}.svg"
        (PICTURES / short).write_text(svg + "\n", encoding="utf-8")


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=100, help="per seed and set (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="answers per person (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=80_000, help="of the audit (default: %(default)s)")
    parser.add_argument("--model-rows", type=int, default=20_000)
    parser.add_argument("--store", type=Path, help="folder of finished cells; default: a new one")
    parser.add_argument("--models-only", action="store_true", help="take the accuracies again, keep all else")
    parser.add_argument("--audits", nargs="+", choices=audited(), help="take these audits again, keep all else")
    given = parse(parser, RESULTS)
    about = provenance(0, "adult", "acs_income_ca_2018", "german_credit")
    if given.models_only or given.audits:
        kept = json.loads(given.output.read_text(encoding="utf-8"))
        if given.models_only:
            kept |= {"models": accuracies(given.model_rows), "models_taken": about}
        if given.audits:
            kept["audits"] |= audits(given.draws, given.audits)
            kept["audits_taken"] = {**kept.get("audits_taken", {}), **dict.fromkeys(given.audits, about)}
        write(given, kept)
        return
    size = {"people": given.people, "runs": given.runs, "seeds": tuple(range(given.seeds))}
    store = given.store or Path(tempfile.mkdtemp(prefix="published-"))
    found = {
        **about,
        "note": "seeds choose splits and models; the noise comes from the system's entropy. 95% intervals over people.",
        "audits": audits(given.draws, audited()),
        "beside_the_paper": {
            n: beside_the_paper(n, size, store, pictures=writes(given)) for n in ("adult", "acs_income_ca_2018")
        },
        "head_to_head": {n: head_to_head(n, size, store) for n in ("adult", "german_credit")},
        "dpgan": synthetic(size, store),
        "models": accuracies(given.model_rows),
    }
    write(given, found)


if __name__ == "__main__":
    main()
