"""The papers' worked examples, small enough to be equal word for word."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from countervail.core.explanation import Explanations
from countervail.core.release import Release
from countervail.core.table import Table
from countervail.data.load import load
from countervail.data.toys import toy_credit_model, toy_credit_query
from countervail.measure import classification_metric, degree_of_privacy, discernibility, ncp, pureness, release_risk
from countervail.measure._combinations import Combinations
from countervail.protect import CFK, GraspSearch, Mondrian
from countervail.protect.patterns.compose import PatternParts, choose, compose
from countervail.rules.induce import Inducer
from countervail.rules.inputs import build_value_table
from countervail.rules.values import ValueTable
from countervail.study.reproduce.together import figure

_COLUMNS = {"Age": "age", "Gender": "gender", "City": "city", "Salary": "salary", "Relationship status": "relationship"}
_INPUTS = {"table": "Dataset", "model": "Machine learning model", "rows": "Factual instance"}
# Where the paper's rules I1 to I6 stand among ours, which come class by class.
_RULES = {"I1": 4, "I2": 5, "I3": 0, "I4": 1, "I5": 3, "I6": 2}


def toy(seed: int, set: str) -> dict[str, Any]:
    """Lisa, Fiona and the others: Tables 1 to 4, and the figures of the worked example."""
    table, lisa = load(set), toy_credit_query()
    found: dict[str, Any] = dict(_people(lisa.assign(name="Lisa")))
    found |= _people(table.frame)
    made = CFK(k=3, search=GraspSearch(alpha=1, iterations=1), reward="none").fit(table, toy_credit_model)
    answer = made.explain(lisa)
    found |= _combinations(answer, table) | _example(answer, table) | _settings()
    return {"figures": {k: figure(v) for k, v in found.items()}}


def _people(frame: pd.DataFrame) -> dict[str, str]:
    """Each person's values as they are printed, and the model's decision."""
    said = toy_credit_model(frame)
    out = {}
    for i, row in enumerate(frame.to_dict("records")):
        for shown, name in _COLUMNS.items():
            out[f"{row['name']}|{shown}"] = f"${row[name]}K" if name == "salary" else str(row[name])
        out[f"{row['name']}|Credit decision"] = str(said.iloc[i])
    return out


def _combinations(answer: Explanations, table: Table) -> dict[str, str]:
    """Every value combination of the answer, and what the model says of it."""
    combinations = Combinations(answer, table)
    frame = combinations.encoder.decode(combinations.every(0)).sort_values("age", ignore_index=True)
    said = toy_credit_model(frame)
    return {f"{int(frame['age'].iloc[i])}|Model prediction": str(said.iloc[i]) for i in range(len(frame))}


def _example(answer: Explanations, table: Table) -> dict[str, Any]:
    """The figures that the text works out."""
    shown = answer.counterfactuals.iloc[0]
    age = table.frame["age"]
    cell = shown["age"]
    return {
        "age": f"{cell.left:g}-{cell.right:g}",
        "gender": str(shown["gender"]),
        "city": str(shown["city"]),
        "salary": f"${shown['salary']}K",
        "degree of privacy": int(degree_of_privacy(answer)[0]),
        "NCP of age": float((cell.right - cell.left) / (age.max() - age.min())),
        "NCP": float(ncp(answer)[0]),
        "pureness %": 100 * float(pureness(answer, toy_credit_model)[0]),
        "C_DM": discernibility(answer),
        "CM": classification_metric(answer, toy_credit_model),
    }


def _settings() -> dict[str, str]:
    """What each side of Table 3 takes, speaks of and is measured by, read off the classes."""
    data = _takes(Mondrian.fit, Mondrian.protect)
    explained = _takes(CFK.fit, CFK.explain)
    kinds = {"Dataset": Release, "Counterfactual explanation": Explanations}
    gives = {k: name for name, kind in kinds.items() for k in (Mondrian, CFK) if _returns(k) == kind.__name__}
    return {
        "Input|Dataset": data,
        "Input|Counterfactual explanation": explained,
        "Defined over|Dataset": gives[Mondrian],
        "Defined over|Counterfactual explanation": gives[CFK],
        "Evaluation metrics|Dataset": _metrics("Release"),
        "Evaluation metrics|Counterfactual explanation": _metrics("Explanations"),
    }


def _takes(*functions: Any) -> str:
    names = [n for f in functions for n in inspect.signature(f).parameters if n in _INPUTS]
    wanted = [_INPUTS[n] for n in dict.fromkeys(names)]
    return ", ".join(wanted[:1] if "Machine learning model" not in wanted else [*wanted[:1], wanted[2], wanted[1]])


def _returns(kind: type[Any]) -> str:
    name = "explain" if hasattr(kind, "explain") else "protect"
    return str(inspect.signature(getattr(kind, name)).return_annotation)


def _metrics(kind: str) -> str:
    """The measures that take a release, or explanations."""
    found = {
        "Degree of privacy": (release_risk, degree_of_privacy),
        "Information loss": (ncp,),
        "Counterfactual validity": (pureness,),
    }
    takes = {n: {str(inspect.signature(f).parameters[_first(f)].annotation) for f in fs} for n, fs in found.items()}
    return ", ".join(n for n, types in takes.items() if types & {kind, "Released"})


def _first(function: Any) -> str:
    return next(iter(inspect.signature(function).parameters))


def rules_toy(seed: int, set: str, choices: Any) -> dict[str, Any]:
    """The decision table of six: its rules, the choice of rules and people, the patterns, and their rules."""
    table = load(set)
    values = build_value_table(table.features, table.target, table.schema, "rules_toy")
    found: dict[str, Any] = {}
    for i, row in enumerate(table.frame.astype(str).to_dict("records")):
        found |= {f"o{i + 1}|{n}": v for n, v in row.items()}
    rules = Inducer(values, target="evaluation").unions(2)
    found |= {f"{name}|rule": rules[at].sentence for name, at in _RULES.items()}
    for name, objects in (("cT1", "max"), ("cT3", "min")):
        found |= _chosen(name, choose(values, rules, 2, objects), values)  # type: ignore[arg-type]
        found |= _patterns(name, values, choices[0 if name == "cT1" else 1])
    return {"figures": {k: figure(v) for k, v in found.items()}}


def _chosen(name: str, parts: Sequence[PatternParts | None], values: ValueTable) -> dict[str, str]:
    """Which rules, and which other person for each of them, ours takes."""
    named = {at: rule for rule, at in _RULES.items()}
    out = {}
    for i, part in enumerate(parts):
        if part is not None:
            pairs = sorted(
                (named[r], " ".join(f"o{p + 1}" for p in who if p != i)) for r, who in zip(part.rules, part.people)
            )
            out[f"{name}, o{i + 1}|rules and objects"] = "; ".join(f"{r}: {who}" for r, who in pairs)
    return out


def _patterns(name: str, values: ValueTable, chosen: Any) -> dict[str, str]:
    """The patterns that the paper's own choices give, and whether its rules hold in them."""
    rules = Inducer(values).unions(2)
    parts = [
        PatternParts(tuple(_RULES[r] for r in picked), tuple((u, other - 1) for other in others))
        for u, (picked, others) in enumerate(chosen)
    ]
    shown = compose(values, rules, parts, False, "evaluation").to_frame()
    out: dict[str, str] = {}
    for i, row in enumerate(shown.to_dict("records")):
        out |= {f"{name}, pt{i + 1}|{n}": words(v) for n, v in row.items()}
    for label, conditions, conclusion in TABLE_6:
        out[f"{name}, {label}|rule"] = _holds(shown, conditions, conclusion)
    return out


def words(cell: Any) -> str:
    """A cell as the paper writes it, its values in alphabetical order."""
    return " or ".join(sorted(cell)) if isinstance(cell, frozenset) else str(cell)


def _holds(shown: pd.DataFrame, conditions: Mapping[str, str], conclusion: str) -> str:
    """Whether the patterns whose sets lie within the conditions have the rule's conclusion in common."""
    within = np.ones(len(shown), dtype=bool)
    for name, allowed in conditions.items():
        within &= shown[name].map(lambda v, a=allowed: _parts(v) <= _parts(a)).to_numpy()
    if not within.any():
        return "no pattern"
    common = frozenset.intersection(*(_parts(v) for v in shown["evaluation"][within]))
    return "holds" if common == _parts(conclusion) else "does not hold"


def _parts(cell: Any) -> frozenset[str]:
    return cell if isinstance(cell, frozenset) else frozenset(str(cell).split(" or "))


TABLE_6: tuple[tuple[str, dict[str, str], str], ...] = (
    ("I1'", {"sex": "female"}, "low or medium"),
    ("I2'", {"occupation": "engineer"}, "low or medium"),
    ("I3'", {"sex": "male", "domicile": "Tokyo or Osaka"}, "low or high"),
    ("I4'", {"domicile": "Tokyo"}, "low or high"),
    ("I5'", {"domicile": "Fukuoka"}, "medium or high"),
    ("I6'", {"occupation": "salesman", "domicile": "Tokyo or Osaka"}, "low or high"),
    ("I7'", {"sex": "male", "domicile": "Tokyo or Fukuoka"}, "medium or high"),
    ("I8'", {"occupation": "salesman", "domicile": "Osaka or Fukuoka"}, "high"),
    ("I8''", {"occupation": "salesman", "domicile": "Osaka or Fukuoka"}, "medium or high"),
)
