"""Reciprocal groups: what k against the algorithm costs, and what inversion leaves of each search.

python benchmarks/studies/groups.py [--sets heart_c cmc ...] [--million]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "speed"))
from _cfk_sets import RECIPES, Setting, setting, table
from _record import parse, provenance, write

import countervail as cv
from countervail.core.encode import Encoder
from countervail.core.loss import ncp as region_ncp
from countervail.core.stats import mean_interval
from countervail.protect.cfk.exact import Limits, solve
from countervail.protect.cfk.groups.grouping import boxes_of, form_groups
from countervail.protect.cfk.space import Space

K = 10
RESULT = Path(__file__).parents[1] / "results" / "groups.json"
GOALS = {"heart_c": 6.5, "cmc": 5.0, "german_credit": 25.0}
SPEC = {"heart_c": (63, 2), "cmc": (74, 5), "german_credit": (90, 46), "adult": (8, 1)}


def delivered(s: Setting) -> dict[str, Any]:
    """NCP, pureness and distance of the answers, with and without the reach of regions in the distance."""
    start = time.perf_counter()
    protector = cv.CFK(k=K, reward="none").fit(s.train, s.model)
    fitted = time.perf_counter() - start
    start = time.process_time()
    e = protector.explain(s.refused)
    spent = time.process_time() - start
    out = {"with_reach": _figures(e), "fit_s": fitted, "ms_per_explanation": 1000 * spent / len(e)}
    reach = protector.search_.candidates_.blur
    protector.search_.candidates_.blur = np.zeros_like(reach)
    out["without_reach"] = _figures(protector.explain(s.refused))
    protector.search_.candidates_.blur = reach
    return out


def _figures(e: cv.Explanations) -> dict[str, Any]:
    return {
        "n": len(e),
        "found": int(e.found.sum()),
        "ncp": mean_interval(100 * cv.measure.ncp(e)).to_dict(),
        "pureness": mean_interval(100 * np.asarray(e.pureness)).to_dict(),
        "recourse_cost": mean_interval(cv.measure.recourse_cost(e)).to_dict(),
        "fewest_people": int(np.nanmin(cv.measure.degree_of_privacy(e))),
    }


def inverted(s: Setting, queries: int, **parameters: Any) -> dict[str, Any]:
    """Shares of explanations with fewer than k, or one person left, after each part of the inversion."""
    control = table(s.name).split(test_size=0.4, random_state=0)[1]
    protector = cv.CFK(k=K, reward="none", **parameters).fit(s.train, s.model)
    result = cv.attack.Inversion().run(protector, s.train, control.take(range(min(queries, len(control)))))
    detail = {name: figure.to_dict() for name, figure in result.detail.items()}
    return {"fewest_left": int(result.set_sizes.min()), "n": len(result.set_sizes), **detail}


def rerun(name: str, splits: int) -> dict[str, Any]:
    """How many people the rerun alone leaves of exact regions, over several splits of one data set.

    `pure` is the search as it is; `minimal` leaves the model out of it, so that regions are the smallest around their
    owner whatever they lead to.
    """
    shares: dict[str, list[list[float]]] = {"pure": [], "minimal": []}
    for split in range(splits):
        s = setting(name, split=split)
        protector = cv.CFK(k=K, search="exact", reward="none", min_pureness=0.0).fit(s.train, s.model)
        shares["pure"].append(_shares(cv.attack.Inversion().left(protector, s.refused.features, s.train)["rerun"]))
        shares["minimal"].append(_shares(_minimal_left(protector, s)))
    return {
        kind: {
            what: {"mean": float(np.mean(v)), "deviation": float(np.std(v, ddof=1)), "splits": list(v)}
            for what, v in zip(("below_k_percent", "alone_percent"), zip(*found))
        }
        for kind, found in shares.items()
    }


def _shares(left: np.ndarray) -> list[float]:
    return [100 * float((left < K).mean()), 100 * float((left == 1).mean())]


def _minimal_left(protector: cv.CFK, s: Setting) -> np.ndarray:
    """People whose own minimal region is the one released, for each refused query's nearest counterfactual."""
    space, explainer = protector.search_.space_, protector.search_.explainer_
    _, first = np.unique(space.row_tuple, return_index=True)
    centres = np.ascontiguousarray(space.tuples, dtype=np.int32)
    everything = lambda rows: np.ones(len(rows), dtype=bool)  # noqa: E731
    solved = solve(space, centres, explainer.rows_[first], everything, Limits(K, 200_000, 20_000, 1.0))
    texts = np.array(space.regions(solved.boxes).text(), dtype=object)
    owners = space.row_tuple[explainer.nearest(s.refused.features, 1)[:, 0]]
    # Whoever shares the owner's region text lies inside it: their own region holds them.
    people = {text: int(space.counts[texts == text].sum()) for text in set(texts[owners])}
    return np.array([people[text] for text in texts[owners]])


def grouping(big: cv.Table) -> dict[str, Any]:
    """Time to form groups, and their NCP over everybody."""
    encoder = Encoder.fit(big)
    space = Space.fit(big, encoder, encoder.encode(big.features), None, "groups")
    start = time.perf_counter()
    group = form_groups(space, K)
    spent = time.perf_counter() - start
    cost, sizes = region_ncp(space.regions(boxes_of(space, group)), big), np.bincount(group)
    return {
        "rows": len(big),
        "tuples": len(space.tuples),
        "groups": len(sizes),
        "seconds": spent,
        "smallest": int(sizes.min()),
        "mean_ncp": 100 * float((cost * sizes).sum() / sizes.sum()),
    }


def million(rows: int = 1_000_000, mutation: float = 0.15) -> cv.Table:
    """German credit's quasi-identifiers resampled to a million rows, with mutation."""
    rng = np.random.default_rng(0)
    german = table("german_credit")
    frame = german.frame.iloc[rng.integers(0, len(german), rows)].reset_index(drop=True)
    for q in german.schema.names("quasi"):
        moved = rng.random(rows) < mutation
        frame.loc[moved, q] = frame[q].to_numpy()[rng.permutation(rows)][moved]
    return cv.Table.from_frame(frame, schema=german.schema)


def run(name: str, queries: int, splits: int) -> dict[str, Any]:
    """All figures of one data set."""
    s = setting(name)
    out = {
        "groups": grouping(s.train),
        "delivered": delivered(s),
        "inversion_groups": inverted(s, queries),
        "inversion_exact": inverted(s, queries, search="exact", min_pureness=0.0),
        "rerun_of_exact": rerun(name, splits),
        "goal_ncp": GOALS.get(name),
        "spec_below_k_and_alone_percent": SPEC.get(name),
    }
    d, x = out["delivered"], out["rerun_of_exact"]["minimal"]
    below, alone = x["below_k_percent"]["mean"], x["alone_percent"]["mean"]
    print(
        f"{name}: NCP {d['with_reach']['ncp']['value']:.2f}% (goal {GOALS.get(name)}), without reach "
        f"{d['without_reach']['ncp']['value']:.2f}%; groups formed in {out['groups']['seconds']:.1f} s; "
        f"inversion leaves at least {out['inversion_groups']['fewest_left']}; of minimal regions over "
        f"{splits} splits, below k {below:.0f}%, alone {alone:.0f}% (specification {SPEC.get(name)})",
        flush=True,
    )
    return out


def main() -> None:
    """Run the study and write its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--queries", type=int, default=1000, help="questions of the inversion attack")
    parser.add_argument("--splits", type=int, default=10, help="splits over which the rerun of exact is averaged")
    parser.add_argument("--million", action="store_true", help="also group a million rows")
    options = parse(parser, RESULT)
    about = provenance(options.sets, seed=0)
    result: dict[str, Any] = {
        "k": K,
        "sets": {name: run(name, options.queries, options.splits) for name in options.sets},
    }
    if options.million:
        result["million"] = grouping(million())
        print(result["million"])
    write(options, {**about, **result})


if __name__ == "__main__":
    main()
