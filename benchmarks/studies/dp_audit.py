"""The full audit: every mechanism of ours, every kind of neighbouring tables, three budgets; and the controls.

`make audit`. Lower bounds on epsilon from 50,000 + 200,000 draws on each side, wrong with probability 1e-6 each. A
bound above the claim is a broken promise, and the program then ends with an error. The histograms' noise is OpenDP's
and slow, so they get a tenth of the draws. PrivateSynthetic and private models are audited by their rho, the whole draw
with a fiftieth; and by single runs with many records that a coin puts in or leaves out.
`--parts` audits some of it; what stands in the record of the same commit stays there.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "speed"), str(ROOT / "tests" / "protect" / "dp")]

from _record import parse, write  # noqa: E402
from dp_controls import CONTROLS  # noqa: E402
from dp_mechanisms import histograms, ours, pairs  # noqa: E402
from noise_meter import SPENT, UnpaidTotal  # noqa: E402
from one_run_mechanisms import DELTA, EPSILON, ONE_RUN, ONE_RUN_BROKEN  # noqa: E402
from synthetic_mechanisms import BROKEN, OURS, QUICK, SLOW  # noqa: E402

from _private import provenance  # noqa: E402
from countervail.core.guarantee.composition import zcdp_epsilon, zcdp_rho  # noqa: E402
from countervail.protect.dp.synthetic.accounting import NoiseBudget  # noqa: E402
from countervail.testing import audit_epsilon, audit_one_run, audit_rho  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "dp_audit.json"


def run(epsilons: list[float], training: int, draws: int) -> dict[str, Any]:
    """Name -> epsilon -> kind of neighbours -> evidence."""
    found: dict[str, Any] = {}
    for epsilon in epsilons:
        for name, (make, unequal) in ours(epsilon).items():
            start = time.perf_counter()
            at = found.setdefault(name, {})[f"{epsilon:g}"] = {
                label: asdict(audit_epsilon(make(pair), *pair, training=training, draws=draws))
                for label, pair in pairs(unequal=unequal).items()
            }
            worst = max(e["epsilon"] for e in at.values())
            print(
                f"{name:<22} claim {epsilon:<4g} found {worst:6.3f}  {time.perf_counter() - start:5.1f} s", flush=True
            )
        at = found.setdefault("histograms", {})[f"{epsilon:g}"] = {
            label: asdict(audit_epsilon(mechanism, *pair, training=training // 10, draws=draws // 10))
            for label, (mechanism, pair) in histograms(epsilon).items()
        }
        print(f"{'histograms':<22} claim {epsilon:<4g} found {max(e['epsilon'] for e in at.values()):6.3f}", flush=True)
    return found


def controls(training: int, draws: int) -> dict[str, Any]:
    """What broken mechanisms show."""
    found = {}
    for name, (mechanism, table, neighbour, claim) in CONTROLS.items():
        evidence = audit_epsilon(mechanism, table, neighbour, training=training, draws=draws)
        found[name] = {"claim": claim, "caught": evidence.refutes(claim), **asdict(evidence)}
        print(f"{name:<32} claim {claim:<3} found {evidence.epsilon:6.3f}", flush=True)
    return found


def synthetic(training: int, draws: int) -> dict[str, Any]:
    """The rho that steps of PrivateSynthetic show, ours and broken ones."""
    found: dict[str, Any] = {}
    for kind, steps in (("ours", OURS), ("controls", BROKEN)):
        for name, (mechanism, table, neighbour, claim) in steps.items():
            part = 50 if name in SLOW else 1 if name in QUICK else 5
            e = audit_rho(mechanism, table, neighbour, training=training // part, draws=draws // part)
            found.setdefault(kind, {})[name] = {"claim": claim, "refuted": e.refutes(claim), **asdict(e)}
            print(f"{name:<46} claim rho {claim:.4f} found {e.rho:.4f}", flush=True)
    return found


def one_run(times: int = 5) -> dict[str, Any]:
    """A second opinion: the most that each of a few runs shows, each wrong with a chance of 1e-3."""
    found: dict[str, Any] = {}
    for kind, mechanisms in (("ours", ONE_RUN), ("controls", ONE_RUN_BROKEN)):
        for name, (mechanism, many, guesses, delta) in mechanisms.items():
            runs = [audit_one_run(mechanism, many, guesses=guesses, delta=delta, alpha=1e-3) for _ in range(times)]
            e, claim = max(runs, key=lambda r: r.epsilon), zcdp_epsilon(zcdp_rho(EPSILON, DELTA), delta)
            found.setdefault(kind, {})[name] = {"claim": claim, "refuted": e.refutes(claim), **asdict(e)}
            print(f"{name:<46} claim {claim:<5.3g} found {e.epsilon:6.3f}", flush=True)
    return found


def spending() -> dict[str, Any]:
    """The rho of all noise that is really drawn, beside the promise: ours, and with a total that nobody pays for."""
    found: dict[str, Any] = {}
    for kind, budget in (("ours", NoiseBudget), ("controls", UnpaidTotal)):
        for name, spend in SPENT.items():
            spent, promised = spend(budget)
            found.setdefault(kind, {})[name] = {"claim": promised, "spent": spent, "refuted": spent > promised}
            print(f"{name:<46} claim rho {promised:.4f} spent {spent:.4f}", flush=True)
    return found


PARTS = ("controls", "ours", "synthetic", "one_run", "spending")


def faults(found: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Promises that are broken, and controls that nobody noticed, in whatever was audited."""
    broken = [
        f"{name} at {epsilon}: {label}"
        for name, by_epsilon in found.get("ours", {}).items()
        for epsilon, by_pair in by_epsilon.items()
        for label, e in by_pair.items()
        if e["epsilon"] > float(epsilon)
    ]
    missed = [name for name, c in found.get("controls", {}).items() if not c["caught"]]
    for part in ("synthetic", "one_run", "spending"):
        held = found.get(part, {"ours": {}, "controls": {}})
        broken += [f"{part}: {name}" for name, e in held["ours"].items() if e["refuted"]]
        missed += [f"{part}: {name}" for name, e in held["controls"].items() if not e["refuted"]]
    return broken, missed


def main() -> None:
    """Audit, print, write; fail when a promise is broken or a control goes unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--training", type=int, default=50_000)
    parser.add_argument("--draws", type=int, default=200_000)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS, help="default: all of them")
    given = parse(parser, RESULTS)
    about, sizes = provenance(None), {"training": given.training, "draws": given.draws, "alpha": 1e-6}
    make: dict[str, Callable[[], dict[str, Any]]] = {
        "controls": lambda: controls(given.training, given.draws),
        "ours": lambda: run(given.epsilons, given.training, given.draws),
        "synthetic": lambda: synthetic(given.training, given.draws),
        "one_run": one_run,
        "spending": spending,
    }
    made = {part: make[part]() for part in PARTS if part in given.parts}
    found = {**kept(given.output, about["commit"], sizes), **made}
    broken, missed = faults(found)
    print(f"Broken promises: {broken or 'none'}. Controls missed: {missed or 'none'}.")
    held = {part: found[part] for part in PARTS if part in found}
    write(given, {**about, **sizes, "broken": broken, "missed": missed, **held})
    if broken or missed:
        raise SystemExit(1)


def kept(path: Path, commit: str, sizes: dict[str, Any]) -> dict[str, Any]:
    """Parts that were audited before, of the same commit and in the same sizes: a record is of one state."""
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    same = old.get("commit") == commit and all(old.get(n) == v for n, v in sizes.items())
    return {part: old[part] for part in PARTS if part in old} if same else {}


if __name__ == "__main__":
    main()
