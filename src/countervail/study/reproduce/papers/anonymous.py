"""Anonymous authors: differentially-private and plausible counterfactuals (under review)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from countervail.study.reproduce.values import Beside, Exhibit, Ours, Piece, Publication, Size, printed

EPSILONS, NEIGHBOURS = (0.01, 0.1, 1.0, 5.0, 10.0), (3, 5, 10, 20)
FIGURES = {
    "Dist_rec": "dist_rec",
    "Plaus_prox": "plaus_prox",
    "Correctness %": "correctness",
    "M0 %": "m0",
    "M1 %": "m1",
    "d_min": "d_min",
}
SETS = (
    "acs_income_ca_2018",
    "adult",
    "compas",
    "default_credit",
    "heloc",
    "acs_public_coverage_ca_2018",
    "give_me_some_credit",
)
MECHANISMS = {
    "LDP": {"as described": "published-ldp", "probabilities swapped": "published-ldp-swapped"},
    "DPGAN": {"as described": "published-dpgan"},
    "Inline_DP": {"as described": "published-inline"},
    "Laplace noise": {"as described": "published-laplace"},
    "noisy max": {"as described": "published-noisy-max"},
    "exponential": {"as described": "published-exponential", "by nearness": "published-exponential-nearness"},
}
KINDS = {"LDP": "DP-Pre", "DPGAN": "DP-Pre", "Inline_DP": "Inline_DP"}
PEOPLE: dict[Size, int] = {"tiny": 5, "quick": 20, "full": 1000}
RUNS: dict[Size, int] = {"tiny": 1, "quick": 1, "full": 20}
SPLITS: dict[Size, int] = {"tiny": 1, "quick": 1, "full": 5}
ROWS: dict[Size, int | None] = {"tiny": 1500, "quick": 20_000, "full": None}
_TABLES = {
    "2": ("acs_income_ca_2018", "forest", "LDP"),
    "3": ("acs_income_ca_2018", "forest", "DPGAN"),
    "4": ("acs_income_ca_2018", "forest", "Inline_DP"),
    "5": ("acs_income_ca_2018", "forest", "Laplace noise"),
    "6": ("acs_income_ca_2018", "forest", "noisy max"),
    "7": ("acs_income_ca_2018", "forest", "exponential"),
    **{str(13 + i): ("acs_income_ca_2018", "network", m) for i, m in enumerate(MECHANISMS)},
    **{str(19 + i): ("acs_income_ca_2018", "lightgbm", m) for i, m in enumerate(MECHANISMS)},
    **{str(25 + i): ("adult", "forest", m) for i, m in enumerate(m for m in MECHANISMS if m != "DPGAN")},
}
_NAMES = {"acs_income_ca_2018": "ACS income", "adult": "Adult"}
_WORDS = {"forest": "forest", "network": "network", "lightgbm": "LightGBM"}
_NOTES = (
    "Who asks, which columns are numbers and what makes a value most rewarding are readings that were chosen because "
    "they give the reported figures (docs/guide/published-mechanisms.md): agreement is no independent confirmation.",
    "The ACS set at hand is a sample of less than half of the rows that the paper has.",
)
_REASONS = {
    "Plaus_prox": "ours averages five neighbours; the paper does not say how many it takes",
    "M0": "fewer records: an answer meets an equal one less often, and who is unique changes",
    "M1": "fewer records: an answer meets an equal one less often, and who is unique changes",
    "d_min": "fewer records lie further apart",
    "": "another sample and other people; what the text leaves open is read from the figures",
}
_SIZES = {
    "quick": "20 people ask once, one split, at most 20,000 rows; the paper has 1,000 people, 20 times, five models.",
    "full": "1,000 people ask 20 times, five splits and models, all rows at hand.",
}


def _pieces(data: str, model: str, mechanism: str, size: Size) -> tuple[Piece, ...]:
    """One piece per split."""
    few = size == "tiny"
    given = {
        "set": data,
        "model": model,
        "mechanism": mechanism,
        "epsilons": (1.0,) if few else EPSILONS,
        "neighbours": (20,) if few else NEIGHBOURS,
        "people": PEOPLE[size],
        "runs": RUNS[size],
        "rows": ROWS[size],
    }
    return tuple(Piece.of("private", split=i, **given) for i in range(SPLITS[size]))


def _key(row: str, figure: str) -> str:
    if row == "NICE":
        return f"{FIGURES[figure]}|None|None"
    epsilon, _, near = row.removeprefix("epsilon ").partition(", K ")
    return f"{FIGURES[figure]}|{float(epsilon)}|{near or None}"


def _trade_off(table: str, size: Size) -> list[Beside]:
    """Tables 2 to 7 and 13 to 29."""
    data, model, mechanism = _TABLES[table]
    out = []
    for (row, figure), v in printed("anonymous")[table].items():
        if size == "tiny" and row not in ("NICE", "epsilon 1", "epsilon 1, K 20"):
            continue
        named: Mapping[str, str] = {"as described": "nice"} if row == "NICE" else MECHANISMS[mechanism]
        key = _key(row, figure)
        ours = {c: Ours(_pieces(data, model, m, size), key, "pooled") for c, m in named.items()}
        x = None if row == "NICE" else float(row.removeprefix("epsilon ").partition(",")[0])
        out.append(Beside(row, figure, v, ours, None if x is None else x))
    return out


def _table_8(size: Size) -> list[Beside]:
    """Which mechanism is best at epsilon 1, by each figure."""
    pieces = tuple(
        p
        for m in (
            "published-ldp",
            "published-inline",
            "published-laplace",
            "published-noisy-max",
            "published-exponential",
        )
        for p in _pieces("acs_income_ca_2018", "forest", m, size)
    )
    said = (
        ("Correctness", "DP-Pre", "correctness", "most"),
        ("Rec_cost", "Inline_DP", "dist_rec", "least"),
        ("Plaus_prox", "Inline_DP", "plaus_prox", "least"),
        ("Privacy (M0)", "DP-Pre", "m0", "most"),
        ("Privacy (d_min)", "DP-Pre", "d_min", "most"),
    )
    return [Beside(row, "mechanism", who, {"epsilon 1": Ours(pieces, f"{f}|1.0", how)}) for row, who, f, how in said]


_SETTINGS = {
    ("acs_income_ca_2018", "forest"): {"max_depth": "20", "min_samples_split": "10", "n_estimators": "100"},
    ("compas", "forest"): {"max_depth": "10", "min_samples_split": "2", "n_estimators": "100"},
    ("default_credit", "network"): {
        "activation": "relu",
        "alpha": "0.001",
        "hidden_layer_sizes": "50 50",
        "solver": "sgd",
    },
    ("adult", "network"): {"activation": "tanh", "alpha": "0.01", "hidden_layer_sizes": "50", "solver": "adam"},
    ("heloc", "forest"): {"max_depth": "20", "min_samples_split": "10", "n_estimators": "100"},
    ("acs_public_coverage_ca_2018", "network"): {
        "activation": "tanh",
        "alpha": "0.01",
        "hidden_layer_sizes": "50",
        "solver": "adam",
    },
}


def _model(data: str, kind: str, size: Size) -> Piece:
    rows = {"tiny": 1500, "quick": 5000, "full": 200_000}[size]
    return Piece.of("models", set=data, kind=kind, rows=rows)


def _table_10(size: Size) -> list[Beside]:
    return [
        Beside(f"{data}, {kind}", name, v, {"ours": Ours((_model(data, kind, size),), f"setting {name}")})
        for (data, kind), settings in _SETTINGS.items()
        for name, v in settings.items()
    ]


def _table_11(size: Size) -> list[Beside]:
    known = printed("anonymous")["11"]
    return [
        Beside(r, f, v, {"ours": Ours((_model(r, f, size),), "accuracy")})
        for (r, f), v in known.items()
        if size != "tiny" or f == "forest"
    ]


def _fig3(size: Size) -> list[Beside]:
    rows = {"tiny": 1500, "quick": 20_000, "full": 80_000}[size]
    pieces = [Piece.of("distributions", set="acs_income_ca_2018", epsilon=e, rows=rows) for e in EPSILONS]
    out = [
        Beside(f"LDP, {e:g}", "mean shift of a column", None, {"ours": Ours((p,), "mean shift")}, e)
        for e, p in zip(EPSILONS, pieces)
    ]
    return [*out, Beside("epsilon grows", "trend", "falls", {"ours": Ours(tuple(pieces), "mean shift", "trend")})]


def _fig4(size: Size) -> list[Beside]:
    """Changes of every figure against NICE, at epsilon 1 (and 20 neighbours), on every set at hand."""
    sets = SETS if size != "tiny" else ("compas",)
    kinds = ("forest", "network", "lightgbm") if size == "full" else ("forest",)
    out = []
    for data in sets:
        for kind in kinds:
            plain = _pieces(data, kind, "nice", size)
            for name in (m for m in MECHANISMS if m != "DPGAN"):
                made = _pieces(data, kind, MECHANISMS[name]["as described"], size)
                for figure, key in FIGURES.items():
                    ours = {"change to NICE": Ours((*made, *plain), f"{key}|1.0", "change")}
                    out.append(Beside(f"{data}, {kind}, {name}", figure.removesuffix(" %"), None, ours))
    return out


def _exhibits() -> tuple[Exhibit, ...]:
    out = []
    for table, (data, model, mechanism) in _TABLES.items():
        extra = "gan" if mechanism == "DPGAN" else "lightgbm" if model == "lightgbm" else None
        title = f"{mechanism} on {_NAMES[data]}, {_WORDS[model]}"
        entries = partial(_trade_off, table)
        notes = _NOTES if data.startswith("acs") else _NOTES[:1]
        out.append(Exhibit(table, title, entries, (data,), notes, _REASONS, _SIZES, extra))
    return tuple(out)


_REST = (
    Exhibit(
        "8",
        "The best mechanism by priority, measured",
        _table_8,
        ("acs_income_ca_2018",),
        (
            "Measured on ACS income with forests at epsilon 1 among the five mechanisms as described; DP-Pre: LDP, "
            "DP-Post: noise after the search. The priorities 'trade-off' and 'model-agnostic' are no figures of the "
            "paper: `countervail recommend --priority trade-off` adds places by epsilon and by quality, and "
            "`model-agnostic` looks at what leaves the explainer as it is (DP-Pre, DP-Post).",
        ),
        {"": "the paper's own Tables 2 to 7 put noisy max before Inline_DP in distance and plausibility"},
        _SIZES,
    ),
    Exhibit(
        "10",
        "Settings of the models",
        _table_10,
        ("acs_income_ca_2018", "compas", "default_credit", "adult", "heloc", "acs_public_coverage_ca_2018"),
        ("GiveMeSomeCredit has no settings in the paper: it gets those of the other credit data.",),
    ),
    Exhibit(
        "11",
        "Accuracy of the models",
        _table_11,
        SETS,
        ("For compas, the target whose accuracy fits is two-year recidivism, not the paper's 'Low_risk'.",),
        {"": "another sample, other columns left out: the paper does not name them"},
        {
            "quick": "At most 5,000 rows of each set.",
            "full": "All rows at hand.",
        },
        "lightgbm",
    ),
    Exhibit(
        "fig3",
        "Noisy and original distributions, ACS income",
        _fig3,
        ("acs_income_ca_2018",),
        ("The paper shows histograms; here is half the L1 distance between each column's, and its mean.",),
        {},
        {"quick": "20,000 rows.", "full": "All rows at hand."},
    ),
    Exhibit(
        "fig4",
        "Change of every figure against NICE, all sets",
        _fig4,
        SETS,
        (
            "In percent of NICE's figure, at epsilon 1 and 20 neighbours. The paper shows bars without numbers.",
            *_NOTES[1:],
        ),
        {},
        _SIZES,
    ),
    Exhibit("fig1", "Where noise is added", why_not="a drawing, without figures"),
    Exhibit("fig2", "An illustration of Inline_DP", why_not="a drawing, without figures"),
    Exhibit("1", "Existing mechanisms", why_not="a review of others' work, in words"),
    Exhibit(
        "9", "Data sets", why_not="names of columns; which of them were used is not said (see Table 5 of goethals)"
    ),
    Exhibit("12", "Related work", why_not="a text"),
)


def _ordered() -> tuple[Exhibit, ...]:
    every = (*_exhibits(), *_REST)
    return tuple(sorted(every, key=lambda e: (e.drawn, int(e.id.removeprefix("fig")))))


PAPER = Publication(
    "anonymous",
    "Differentially-private and plausible counterfactuals",
    "anonymous authors (under review)",
    ("dp", "dp-counterfactuals", "private-counterfactuals"),
    _ordered(),
)
