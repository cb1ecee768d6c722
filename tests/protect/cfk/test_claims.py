"""Where the papers claim too much, and where we must not."""

import numpy as np

import countervail as cv
from countervail.protect import GraspSearch


def test_the_papers_toy_leaves_fiona_alone_to_someone_who_asks_the_model():
    """Goethals et al. call the region 3-anonymous; with the released private values the model accepts Fiona only."""
    table = cv.load("toy_credit")
    protector = cv.CFK(k=3, search=GraspSearch(alpha=1, iterations=1), reward="none").fit(
        table, cv.data.toy_credit_model
    )
    e = protector.explain(cv.data.toy_credit_query())
    inside = table.frame[e.regions.covers(table)[0]]
    assert len(inside) == 3
    asked = inside[table.schema.features].assign(salary=60, relationship="Single")
    accepted = cv.data.toy_credit_model(asked) == "Accept"
    assert inside["name"][accepted].tolist() == ["Fiona"]


def test_a_minimal_region_gives_its_owner_away_to_whoever_reruns_the_search():
    """So the promise of the exact search names the register, and not the algorithm, as its adversary."""
    rng = np.random.default_rng(0)
    import pandas as pd

    frame = pd.DataFrame({"age": rng.permutation(60), "pay": rng.integers(0, 9, 60)})
    frame["ok"] = np.where(frame["pay"] > 4, "yes", "no")
    table = cv.Table.from_frame(frame, target="ok", favourable="yes", quasi_identifiers=["age"])
    protector = cv.CFK(k=5, search="exact", reward="none").fit(table, lambda f: np.where(f["pay"] > 4, "yes", "no"))
    e = protector.explain(table.features[frame["pay"] <= 4])
    assert e.guarantee == cv.KAnonymity(5, against="register")
    left = []
    for shown in np.flatnonzero(e.found):
        suspects = np.flatnonzero(e.regions.covers(table)[shown])
        rows = protector.search_.explainer_.rows_[suspects].copy()
        rows[:, 1] = e.counterfactuals["pay"].iloc[shown]
        again = protector.search_.space_.regions(protector.search_.solve_rows(rows).boxes)
        left.append(sum(str(r) == str(e.regions[shown]) for r in again))
    assert min(left) < 5
