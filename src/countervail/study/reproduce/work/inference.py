"""Differential inference on the tables of Kassem et al.: their samples, quasi-identifiers and hierarchies."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from countervail.attack import DifferentialInferenceTest
from countervail.core.divergence import Distance
from countervail.core.errors import CountervailError
from countervail.core.hierarchy import Hierarchy, read_hierarchies
from countervail.core.schema import Column
from countervail.core.stats import Estimate, mean_interval
from countervail.core.table import Table
from countervail.data.load import load
from countervail.data.registry import find
from countervail.protect.published import BasicMondrian
from countervail.study.reproduce.together import figure

LINE = 10**-2.5
GRID = tuple(np.round(np.arange(-5, 0.01, 0.5), 1).tolist())
ADULT = ["age", "education", "marital-status", "hours-per-week", "native-country"]
INTERNET = ["Age", "Country", "Education_Attainment", "Major_Occupation", "Marital_Status", "Race"]
GROUPED = ["education", "marital-status", "native-country"]
SENSITIVE = {"adult": "occupation", "internet_usage": "Household_Income"}


@lru_cache(maxsize=4)
def inference_table(name: str, rows: int | None, sample: int) -> Table:
    """Adult: complete rows, some drawn at random; Internet usage: whoever says their age. One sensitive column."""
    secret = SENSITIVE[name]
    if name == "adult":
        frame = load("adult").frame.dropna()
        frame = frame if rows is None else frame.sample(min(rows, len(frame)), random_state=sample)
        frame = frame[[*ADULT, secret]].astype(dict.fromkeys([*GROUPED, secret], "str"))
        return Table.from_frame(frame.reset_index(drop=True), quasi_identifiers=ADULT, sensitive=[secret])
    frame = load("internet_usage").frame
    frame = frame[frame["Age"].notna()]
    frame = frame if rows is None else frame.sample(min(rows, len(frame)), random_state=sample)
    frame = frame[[*INTERNET, secret]].reset_index(drop=True)
    for column in frame.columns:
        if column != "Age":
            frame[column] = frame[column].astype(str)
    return Table.from_frame(frame, quasi_identifiers=INTERNET, sensitive=[secret])


def trees_for(table: Table, name: str, reading: str) -> dict[str, Any]:
    """Hierarchies: those that come with Adult; for Internet usage none, or labels in pairs by name (none is named)."""
    if reading == "no hierarchies":
        return {"sensitive": SENSITIVE[name]}
    if name == "adult":
        trees: Any = read_hierarchies(find("adult").parent / "hierarchies" / "adult", GROUPED, "reproduce")
    else:
        labels = {n: sorted(table.frame[n].unique()) for n in INTERNET if n != "Age"}
        trees = {n: Hierarchy.order(v, name=n) for n, v in labels.items()}
    return {"hierarchies": trees, "labels": "hierarchy", "sensitive": SENSITIVE[name]}


def differential(
    seed: int,
    set: str,
    kind: str,
    value: int,
    reading: str,
    rows: int | None,
    sample: int = 0,
) -> dict[str, Any]:
    """Distances of one table under k or l; an l that the whole table does not have leaves it in one class."""
    table = inference_table(set, rows, seed + sample)
    given: dict[str, Any] = {"k": value} if kind == "k" else {"k": 1, "l": value, "diversity": "frequency"}
    if kind == "l" and value == 1:
        given = {"k": 1}  # anything is 1-diverse
    common = trees_for(table, set, reading)
    whole = ""
    try:
        found = DifferentialInferenceTest(BasicMondrian(**given, **common), beside=0).run(table)
    except CountervailError:
        if kind == "k":
            raise
        found = DifferentialInferenceTest(BasicMondrian(k=len(table) - 1, **common), beside=0).run(table)
        whole = "the table as a whole is not l-diverse: one class of everybody"
    _, share = found.cdf([10**e for e in GRID])
    n = len(found.d_pp)
    above = found.share_above(LINE).value
    out: dict[str, Any] = {
        "largest d_pp": Estimate(float(f"{found.epsilon:.2g}"), *2 * (float(f"{found.epsilon:.2g}"),), n),
        "mean d_pp": mean_interval(found.d_pp),
        "standard deviation": float(np.std(found.d_pp, ddof=1)),
        "people above %": Estimate(100 * above, 100 * above, 100 * above, n),
        "different predictions %": Estimate(*3 * (100 * found.changed.value,), n),
        **{f"at most 10^{e:g} %": 100 * float(s) for e, s in zip(GRID, share)},
    }
    return {"figures": {m: figure(v) for m, v in out.items()}, "remark": whole, "rows": len(table)}


# Figure 2: each node and what stands above it.
_ABOVE = {
    "Engineer": "Professional",
    "Lawyer": "Professional",
    "Dancer": "Artist",
    "Writer": "Artist",
    "Professional": "ANY",
    "Artist": "ANY",
}


def inference_examples(seed: int) -> dict[str, Any]:
    """The distances and encodings that the text works out."""
    p, q = np.array([[0.49, 0.01, 0.5]]), np.array([[0.01, 0.49, 0.5]])
    column = Column("s", role="sensitive")
    half = Distance("emd", "equal", "half", ("a", "b", "c"), column, "reproduce")(p, q)[0]
    quarter = Distance("emd", "equal", "quarter", ("a", "b", "c"), column, "reproduce")(p, q)[0]
    nodes = sorted({*_ABOVE, *_ABOVE.values()})
    ground = np.array([[_path(a, b) for b in nodes] for a in nodes], dtype=float)
    tree = Distance("emd", ground, "half", tuple(nodes), column, "reproduce")
    point = np.eye(len(nodes))
    at = {n: i for i, n in enumerate(nodes)}

    def apart(a: str, b: str) -> float:
        return float(tree(point[[at[a]]], point[[at[b]]])[0])

    out: dict[str, Any] = {
        "EMD, a quarter": float(quarter),
        "EMD, a half": float(half),
        "Engineer to Artist": apart("Engineer", "Artist"),
        "Dancer to Writer": apart("Dancer", "Writer"),
        **_worked_encodings(),
    }
    return {"figures": {m: figure(v) for m, v in out.items()}}


def _path(a: str, b: str) -> int:
    """Edges between two nodes of Figure 2."""
    up, over = _upwards(a), _upwards(b)
    shared = next(n for n in up if n in over)
    return up.index(shared) + over.index(shared)


def _upwards(node: str) -> list[str]:
    out = [node]
    while out[-1] in _ABOVE:
        out.append(_ABOVE[out[-1]])
    return out


def _worked_encodings() -> dict[str, str]:
    """Section 3.1's two records, and the ages of the appendix, by our encodings."""
    import pandas as pd

    from countervail.attack.differential.encodings import encode_axis, make_specs
    from countervail.core.region import Regions

    people = pd.DataFrame({"age": [16], "sex": ["Male"], "country": ["France"], "s": ["x"]})
    table = Table.from_frame(people, quasi_identifiers=["age", "sex", "country"], sensitive=["s"])
    cells = [
        {"age": pd.Interval(15, 25, closed="both"), "sex": "Female", "country": frozenset({"France", "Germany"})},
        {"age": pd.Interval(17, 20, closed="both"), "sex": "Male", "country": frozenset({"Italy", "Germany"})},
    ]
    regions = Regions.from_cells(cells, table.schema)
    specs = {s.column.name: s for s in make_specs(table, ("tf", "tf"), 5)}
    blocks = [encode_axis(a, people[a.name], specs[a.name])[0] for a in regions.axes]
    by = {a.name: b for a, b in zip(regions.axes, blocks)}
    rows = np.concatenate([by[n] for n in ("age", "sex", "country")], axis=1).astype(int)
    out = {f"TF, r{i + 1}": " ".join(map(str, r)) for i, r in enumerate(rows.tolist())}
    ages = pd.DataFrame({"age": [15, 30, 45, 90], "s": list("wxyz")})
    table = Table.from_frame(ages, quasi_identifiers=["age"], sensitive=["s"])
    wide = Regions.from_cells([{"age": pd.Interval(35, 55, closed="both")}], table.schema)
    for how, digits in (("scaling", 3), ("bounds", 3), ("binary", 0)):
        spec = make_specs(table, (how, "tf"), 5)[0]
        cell, own = encode_axis(wide.axes[0], ages["age"].iloc[[1]], spec)
        out[f"{how}, [35,55]"] = " ".join(f"{v:.{digits}f}" for v in cell[0])
        out[f"{how}, 30"] = " ".join(f"{v:.{digits}f}" for v in own)
    return out
