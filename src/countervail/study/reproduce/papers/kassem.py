"""Kassem, Ács, Castelluccia: differential inference testing."""

from __future__ import annotations

from functools import partial

from countervail.study.reproduce.values import Beside, Exhibit, Ours, Piece, Publication, Size, printed

KS, LS = (1, 2, 5, 7, 20, 64, 80), (1, 2, 3, 4, 5, 6, 7)
READINGS = {"labels in pairs": "hierarchies", "no hierarchies": "no hierarchies"}
ROWS: dict[Size, int | None] = {"tiny": 300, "quick": 10_000, "full": 10_000}
SAMPLES: dict[Size, int] = {"tiny": 1, "quick": 3, "full": 10}
GRID = (-5.0, -4.5, -4.0, -3.5, -3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0)
CONTINUOUS = ("scaling", "bounds", "binary", "quantiles-before", "quantiles-after", "tf")
CATEGORICAL = ("hot", "binary", "hot-after", "tf")
_EXAMPLES = Piece.of("inference_examples")
_NEEDS = {"Adult": ("adult",), "Internet": ("internet_usage",)}
_NOTES = {
    "Adult": (
        "Adult: 10,000 complete rows drawn at random; which ones the paper drew is not known. The figure is the mean "
        "over our samples; in brackets, of the largest d_pp the least and the greatest of the samples'.",
    ),
    "Internet": (
        "Internet usage: the paper names no hierarchies. Both readings stand here: labels paired in alphabetical "
        "order, and none, where a category is cut into single values at once.",
    ),
}
_REASONS = {
    "largest": "the largest of 10,000 distances belongs to one person: it varies by a factor of two between samples",
    "": "another sample, and hierarchies that the paper does not name",
}
_INTERNET = {
    "l=": "no reading gives all of the printed figures: which hierarchies, and which l-diversity, is not said",
    "largest": "neither reading gives both: the maxima are those without hierarchies, the share is that of pairs",
    "": "the paper names no hierarchies: a release's labels decide as much as its k",
}
_SIZES = {"quick": "Three samples of 10,000 rows of Adult.", "full": "Ten samples of 10,000 rows of Adult."}


def _ours(data: str, kind: str, value: int, key: str, size: Size, how: str = "mean") -> dict[str, Ours]:
    """Adult over its samples; Internet usage in both readings, all rows."""
    if data == "Adult":
        given = {"set": "adult", "kind": kind, "value": value, "reading": "hierarchies", "rows": ROWS[size]}
        pieces = tuple(Piece.of("differential", sample=i, **given) for i in range(SAMPLES[size]))
        return {"ours": Ours(pieces, key, how if len(pieces) > 1 else "one")}
    rows = 300 if size == "tiny" else None
    given = {"set": "internet_usage", "kind": kind, "value": value, "rows": rows}
    return {c: Ours((Piece.of("differential", reading=r, **given),), key) for c, r in READINGS.items()}


def _grid(size: Size) -> list[tuple[str, int]]:
    if size == "tiny":
        return [("k", 1), ("k", 5), ("l", 1), ("l", 5)]
    return [("k", k) for k in KS] + [("l", x) for x in LS]


def _largest(table: str, data: str, kind: str, size: Size) -> list[Beside]:
    """Tables 1 to 4, with the share above the line of the text beside the maximum."""
    known = printed("kassem")[table]
    shares = printed("kassem")["fig5" if data == "Adult" else "fig6"]
    out = []
    for _, value in (g for g in _grid(size) if g[0] == kind):
        row = f"{kind}={value}"
        out.append(
            Beside(
                row,
                "largest d_pp",
                known[row, "largest d_pp"],
                _ours(data, kind, value, "largest d_pp", size, "largest"),
            )
        )
        share = shares.get((f"{row}, 10^-2.5", "people above %"))
        out.append(Beside(row, "people above 10^-2.5 %", share, _ours(data, kind, value, "people above %", size)))
    return out


def _curve(data: str, figure: str, key: str, said: dict[str, str], size: Size) -> list[Beside]:
    """A figure over k and over l."""
    out: list[Beside] = []
    for kind in ("k", "l"):
        some = [v for k, v in _grid(size) if k == kind]
        out += [Beside(f"{data} by {kind}, {v}", figure, None, _ours(data, kind, v, key, size), float(v)) for v in some]
        if kind in said:
            pieces = [_ours(data, kind, v, key, size) for v in some]
            trends = {c: Ours(tuple(p[c].pieces[0] for p in pieces), key, "trend") for c in pieces[0]}
            out.append(Beside(f"{data}, {kind} grows", "trend", said[kind], trends))
    return out


def _cdf(data: str, size: Size) -> list[Beside]:
    """Figures 5 and 6: the share of people whose distance is at most 10^x; the text prints two points each."""
    known = printed("kassem")["fig5" if data == "Adult" else "fig6"]
    out: list[Beside] = []
    for kind, value in _grid(size):
        for e in GRID:
            ours = _ours(data, kind, value, f"at most 10^{e:g} %", size)
            out.append(Beside(f"{kind}={value}, 10^{e:g}", "people with at most this d_pp %", None, ours, e))
        row = f"{kind}={value}, 10^-2.5"
        if (row, "people above %") in known:
            ours = _ours(data, kind, value, "people above %", size)
            out.append(Beside(f"{kind}={value}", "people above 10^-2.5 %", known[row, "people above %"], ours))
    return out


def _fig7(size: Size) -> list[Beside]:
    falls = {"k": "falls", "l": "falls"}
    out = [b for data in _NEEDS for b in _curve(data, "mean d_pp", "mean d_pp", falls, size)]
    for data in _NEEDS:
        for kind, value in _grid(size):
            ours = _ours(data, kind, value, "standard deviation", size)
            out.append(Beside(f"{data} by {kind}, {value}", "standard deviation", None, ours, value))
    return out


def _example(name: str, said: str, key: str) -> Beside:
    return Beside(name, "value", said, {"ours": Ours((_EXAMPLES,), key)})


def _fig2(_: Size) -> list[Beside]:
    rows = (("Engineer to Artist", "3"), ("Dancer to Writer", "2"))
    return [_example(n, v, n) for n, v in rows]


def _examples(_: Size) -> list[Beside]:
    rows = (
        ("EMD of (0.49, 0.01, 0.5) and (0.01, 0.49, 0.5), a quarter", "0.24", "EMD, a quarter"),
        ("the same, a half of the L1 distance", "0.24", "EMD, a half"),
        ("TF of r1 for r_t", "1 0 1", "TF, r1"),
        ("TF of r2 for r_t", "0 1 0", "TF, r2"),
        ("scaling of 30", "0.200", "scaling, 30"),
        ("scaling of [35,55]", "0.400", "scaling, [35,55]"),
        ("bounds of [35,55]", "0.267 0.534", "bounds, [35,55]"),
        ("binary of 30", "0 0 0 1 1 0 1", "binary, 30"),
        ("binary of [35,55]", "0 0 1 1 1 0 0", "binary, [35,55]"),
    )
    return [_example(n, v, k) for n, v, k in rows]


def _encoded(figure: str, table: str, size: Size) -> list[Beside]:
    """Figures 8 to 10: 24 encodings on both sets."""
    ks: tuple[int, ...] = {"tiny": (5,), "quick": (1, 5, 32), "full": (1, 3, 5, 8, 16, 32, 64, 128)}[size]
    rows = {"tiny": 200, "quick": 3000, "full": 10_000}[size]
    people = {"tiny": 5, "quick": 40, "full": 500}[size]
    wanted = CONTINUOUS if size != "tiny" else ("scaling", "tf")
    known = printed("kassem")[table]
    out = []
    for data, (name,) in _NEEDS.items():
        pieces = []
        for i, a in enumerate(CONTINUOUS):
            for j, b in enumerate(CATEGORICAL):
                if a not in wanted:
                    continue
                piece = Piece.of("encodings", set=name, encoding=f"{a}-{b}", ks=ks, rows=rows, people=people)
                pieces.append(piece)
                row = f"{data}, e{i + 1}{j + 1} ({a}-{b})"
                out.append(Beside(row, figure, known.get((row, figure)), {"ours": Ours((piece,), figure)}))
        if figure == "accuracy %":
            out.append(Beside(f"{data}, the best", "encoding", "tf-tf", {"ours": Ours(tuple(pieces), figure, "best")}))
    return out


_ENCODED = {
    "quick": "3,000 rows, k = 1, 5, 32, and 40 people per k are predicted.",
    "full": "10,000 rows, every k of the paper, and 500 people per k are predicted.",
}
_ENCODED_NOTES = (
    "Mondrian is ours (strict, both halves checked): the appendix uses a third code. Averages over k.",
    "Minutes are our CPU time per model and prediction, times the number of rows, as the paper trains one for each.",
)
_ENCODED_REASONS = {
    "minutes": "another machine, and equal rows are counted instead of repeated",
    "features": "hot-after and binary count the generalisations that a release shows: another Mondrian shows others",
    "encoding": "fewer people are predicted than the gap between the encodings needs: see the intervals",
    "": "another sample and another Mondrian",
}
PAPER = Publication(
    "kassem",
    "Differential inference testing: a practical approach to evaluate anonymized data",
    "Kassem, Ács, Castelluccia (2018)",
    ("dit", "differential-inference", "inria"),
    (
        Exhibit("fig1", "Differential inference testing", why_not="a drawing of the procedure, without figures"),
        Exhibit(
            "fig2", "Ground distances in a hierarchy", _fig2, notes=("Given to the test as a matrix of path lengths.",)
        ),
        Exhibit(
            "examples",
            "Distances and encodings that the text works out",
            _examples,
            reasons={
                "a half": "the paper divides the L1 distance by four; the earth mover's distance is its half",
                "bounds": "40/75 is 0.533: a slip in the last digit",
                "binary of 30": "15 in seven bits is 0001111: a slip",
                "binary of [35,55]": "45 shifted by 15 is 30, which is 0011110: a slip",
            },
        ),
        Exhibit(
            "fig3",
            "Different predictions on Adult",
            partial(
                _curve, "Adult", "different predictions %", "different predictions %", {"k": "falls", "l": "falls"}
            ),
            ("adult",),
            (*_NOTES["Adult"], "No numbers are printed; the text says that smaller parameters give more."),
            _REASONS,
            _SIZES,
        ),
        Exhibit(
            "fig4",
            "Different predictions on Internet usage",
            partial(
                _curve, "Internet", "different predictions %", "different predictions %", {"k": "falls", "l": "falls"}
            ),
            ("internet_usage",),
            (*_NOTES["Internet"], "No numbers are printed; the text says that smaller parameters give more."),
            _INTERNET,
        ),
        Exhibit(
            "fig5",
            "Distribution of d_pp on Adult",
            partial(_cdf, "Adult"),
            ("adult",),
            _NOTES["Adult"],
            _REASONS,
            _SIZES,
        ),
        Exhibit(
            "fig6",
            "Distribution of d_pp on Internet usage",
            partial(_cdf, "Internet"),
            ("internet_usage",),
            _NOTES["Internet"],
            _INTERNET,
        ),
        Exhibit(
            "1",
            "Largest d_pp on Adult by k",
            partial(_largest, "1", "Adult", "k"),
            ("adult",),
            _NOTES["Adult"],
            _REASONS,
            _SIZES,
        ),
        Exhibit(
            "2",
            "Largest d_pp on Adult by l",
            partial(_largest, "2", "Adult", "l"),
            ("adult",),
            _NOTES["Adult"],
            _REASONS,
            _SIZES,
        ),
        Exhibit(
            "3",
            "Largest d_pp on Internet usage by k",
            partial(_largest, "3", "Internet", "k"),
            ("internet_usage",),
            _NOTES["Internet"],
            _INTERNET,
        ),
        Exhibit(
            "4",
            "Largest d_pp on Internet usage by l",
            partial(_largest, "4", "Internet", "l"),
            ("internet_usage",),
            (
                *_NOTES["Internet"],
                "At l = 6 and 7 the table as a whole is not l-diverse: everybody is in one class, as the text says.",
            ),
            _INTERNET,
        ),
        Exhibit(
            "fig7",
            "Average d_pp and its standard deviation",
            _fig7,
            ("adult", "internet_usage"),
            (*_NOTES["Adult"], *_NOTES["Internet"], "No numbers are printed; the trends are the text's."),
            _REASONS,
            _SIZES,
        ),
        Exhibit(
            "fig8",
            "Accuracy of the encodings",
            partial(_encoded, "accuracy %", "fig8"),
            ("adult", "internet_usage"),
            _ENCODED_NOTES,
            _ENCODED_REASONS,
            _ENCODED,
        ),
        Exhibit(
            "fig9",
            "Number of features of the encodings",
            partial(_encoded, "features", "fig9"),
            ("adult", "internet_usage"),
            _ENCODED_NOTES,
            _ENCODED_REASONS,
            _ENCODED,
        ),
        Exhibit(
            "fig10",
            "Time of the encodings",
            partial(_encoded, "minutes", "fig10"),
            ("adult", "internet_usage"),
            _ENCODED_NOTES,
            _ENCODED_REASONS,
            _ENCODED,
        ),
    ),
)
