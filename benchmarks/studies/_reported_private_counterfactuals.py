"""Figures that "Differentially-private and plausible counterfactuals" (under review) reports for forests, as printed.

Keys: (mechanism, epsilon or None, neighbours or None). Values: Dist_rec, Plaus_prox, Correctness, M0, M1, d_min; shares
in parts of one. They are read from what `countervail reproduce anonymous` holds.
"""

from __future__ import annotations

from countervail.study.reproduce.papers.anonymous import EPSILONS as EPSILONS
from countervail.study.reproduce.papers.anonymous import FIGURES as _COLUMNS
from countervail.study.reproduce.papers.anonymous import NEIGHBOURS as NEIGHBOURS
from countervail.study.reproduce.values import printed

Key = tuple[str, float | None, int | None]
FIGURES = tuple(_COLUMNS.values())
_ACS = {"2": "ldp", "3": "dpgan", "4": "inline", "5": "laplace", "6": "noisy-max", "7": "exponential"}
_ADULT = {"25": "ldp", "26": "inline", "27": "laplace", "28": "noisy-max", "29": "exponential"}


def _read(tables: dict[str, str]) -> dict[Key, dict[str, float]]:
    found: dict[Key, dict[str, float]] = {}
    for table, name in tables.items():
        for (row, figure), value in printed("anonymous")[table].items():
            epsilon, _, near = row.removeprefix("epsilon ").partition(", K ")
            plain = row == "NICE"
            key: Key = (
                ("nice", None, None) if plain else (f"published-{name}", float(epsilon), int(near) if near else None)
            )
            scale = 100 if figure.endswith("%") else 1
            found.setdefault(key, {})[_COLUMNS[figure]] = float(value) / scale
    return found


REPORTED = {"adult": _read(_ADULT), "acs_income_ca_2018": _read(_ACS)}
