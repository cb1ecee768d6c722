"""Whatever a result holds, its JSON is valid: no NaN, no Infinity, nothing of numpy's."""

import importlib
import inspect
import json
import pkgutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.attack.differential.result import DifferentialResult, Kind
from countervail.attack.result import AttackResult
from countervail.auditing import Appetite, Audit, Finding, SideBySide
from countervail.auditing.claims import Claim
from countervail.auditing.finding import Counts, WorstGroup
from countervail.auditing.side_by_side import Contender
from countervail.core.explanation import Explanations
from countervail.core.files.release_file import Verdict
from countervail.core.guarantee import (
    AllOf,
    DifferentialPrivacy,
    Guarantee,
    KAnonymity,
    KCommonality,
    LDiversity,
    NoGuarantee,
    TCloseness,
)
from countervail.core.guarantee.budget import Budget
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.core.schema import Schema
from countervail.core.sealed import SealedTable
from countervail.core.stats import Estimate
from countervail.ledger import Ledger
from countervail.ledger.history import Statement
from countervail.measure.fairness import Fairness, Group
from countervail.measure.population import KMap, Uniques
from countervail.measure.private import FigureSpread, PrivateQuality
from countervail.measure.queries import QueryError
from countervail.measure.risk import Offender, Risk
from countervail.measure.sweep import Sweep, SweepPoint
from countervail.measure.table import ReleaseRisk
from countervail.measure.utility import ModelUtility
from countervail.protect._scanned import WrittenRelease
from countervail.report.demo_page import DemoSummary, Variant
from countervail.study import Study, StudyPlan
from countervail.study.choose import Recommendation
from countervail.study.plan import Cell
from countervail.study.reproduce.result import Line, Reproduction
from countervail.study.result import FIGURES, CellResult, Moments, Row
from countervail.testing import small_table

NAN, INF = float("nan"), float("inf")
OPEN = Estimate(NAN, -INF, INF, np.int64(0))
SPREAD = FigureSpread(OPEN, NAN)
TABLE = small_table()
PLAN = StudyPlan({"t": TABLE}, ("nice",), seeds=np.arange(2), epsilons=np.array([1.0]))
CELL = CellResult({n: Moments(1, NAN, INF, 1, NAN, -INF) for n in FIGURES}, np.int64(3), NAN, np.float64(1))
NOBODY = CellResult({n: Moments(0, 0.0, 0.0, 0, 0.0, 0.0) for n in FIGURES}, 3, NAN, 1.0)
ROW = Row("t", "m", "nice", None, None, True, "none", {"m0": SPREAD}, np.int64(1), 1, 1, 1, NAN, INF)
VARIANT = Variant("x", OPEN, 1, 1, (np.int64(1),), (1,), OPEN, OPEN, OPEN, "none")
MODEL = ModelUtility("tf", OPEN, OPEN, NAN)
FRAME = pd.DataFrame({"age": [1.0, np.nan], "score": [np.inf, -np.inf]})
MADE = {"protector": "x", "parameters": {"most": INF, "least": np.int64(2), "odd": NAN}}


def explanations():
    status, label = pd.Series(["found"] * 2), pd.Series(["no", "yes"], dtype=object)
    return Explanations(
        FRAME[["age"]], FRAME[["age"]], status, label, label, Schema((cv.Column("age", "numeric"),)),
        NoGuarantee("test"), MADE, pureness=np.array([NAN, 1.0]), scores=FRAME[["score"]],
    )  # fmt: skip


def release():
    schema = Schema((cv.Column("age", "numeric"), cv.Column("score", "numeric")))
    return Release(Regions((), 2), np.arange(2), FRAME, schema, KAnonymity(np.int64(2)), MADE, suppressed=np.int64(1))


FINDING = Finding(
    "linkage", "singling out", False, "", "run", counts=Counts(10, 10, 10, 10), baseline=OPEN, planted=Counts(),
    detail={"AUC": OPEN}, curve=((0.0, NAN),), worst=WorstGroup("a", Counts()),
)  # fmt: skip
AUDIT = Audit.settle(
    {"name": "x"}, {"others": []}, {"text": "none"}, Appetite.default(), findings=(FINDING,),
    claims=(Claim(1.0, True, True, NAN),), provenance={"seconds": NAN},
)  # fmt: skip
SEALED = SealedTable(TABLE.schema, Regions((), 2), np.arange(2), FRAME[["age"]])

RESULTS = [
    OPEN,
    AttackResult("x", OPEN, OPEN, OPEN, np.array([1, 1, 5]), {"more": OPEN}),
    Kind("all", 10, OPEN),
    DifferentialResult("x", "y", "kl", "fast", 3, np.array([INF, 0.1]), np.arange(2), np.array([[INF], [NAN]]), OPEN),
    MODEL,
    PrivateQuality(SPREAD, SPREAD, OPEN, OPEN, OPEN, SPREAD),
    QueryError(1, 1, NAN, INF, NAN),
    Fairness("sex", (Group(np.int64(1), "majority", 3, OPEN, None),), OPEN, None),
    ReleaseRisk(NAN, INF, np.float64(0.5)),
    Sweep((SweepPoint(2, 1, 0, NAN, INF, NAN, NAN, MODEL),), None, "no knee"),
    Risk(1, 1, ("a",), np.int64(2), NAN, INF, 1, (Offender(("a",), NAN, INF),)),
    NoGuarantee("test"),
    KAnonymity(np.int64(5)),
    KCommonality(np.int64(5)),
    LDiversity(np.float64(2), "recursive", "ill", INF),
    TCloseness(NAN, tree=(("a", "b"),)),
    DifferentialPrivacy(np.float64(1), np.int64(3), budget=Budget("people", 1.0)),
    AllOf((KAnonymity(np.int64(5)), TCloseness(INF))),
    Budget("people", INF, NAN, plan=((np.float64(0.1), np.int64(3)),)),
    Verdict("k = 5", True, INF, 1, 0, 0),
    WrittenRelease(Path("out"), 1, 0, 1, 1, NAN, NoGuarantee("none"), ("said",), ("a",)),
    Uniques(np.int64(9), 3, NAN, 1, None, INF, -INF, "snb", NAN, NAN, INF, NAN, np.float64(1)),
    KMap(np.int64(9), 3, 5, 0, NAN, INF, NAN, -INF, np.int64(1)),
    AUDIT.appetite,
    AUDIT.decisions[0],
    AUDIT.claims[0],
    FINDING,
    AUDIT,
    SideBySide((Contender("x", AUDIT, OPEN, OPEN, OPEN), Contender("y", why="no")), 1, 1),
    Contender("x", AUDIT, OPEN, OPEN, OPEN),
    TABLE.schema,
    cv.Phrases("{} more", labels={"1": "one"}, languages={"de": cv.Phrases("{} mehr", unit="Euro")}),
    Ledger("people", epsilon=1.0).statement(),
    PLAN,
    Cell("t", "m", np.int64(0), "nice", np.float64(1.0), None),
    CELL,
    ROW,
    Study(PLAN, {PLAN.cells()[0]: NOBODY}),
    Reproduction("p", "1", "Table 1", "x", "quick", (Line("r", "f", "1", {"c": {"value": NAN}}, "differs"),), (), NAN),
    Recommendation("privacy", ROW, (ROW,), (), ROW, np.int64(10), "Take it."),
    DemoSummary(1, 1, 1, NAN, VARIANT, VARIANT, VARIANT, "a", "b", ("c",), "d"),
    explanations(),
    cv.FACE(neighbours=1).fit(cv.load("toy_credit"), cv.data.toy_credit_model).paths(cv.data.toy_credit_query()),
    release(),
    SEALED,
    cv.MLEM2().fit(TABLE.features, TABLE.target.to_numpy()).rules_,
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: type(r).__name__)
def test_every_result_gives_valid_json(result):
    if hasattr(result, "to_dict"):
        data = result.to_dict()
        assert json.loads(json.dumps(data, allow_nan=False)) is not None
    if hasattr(result, "to_json"):
        text = result.to_json()
        assert json.loads(text, parse_constant=pytest.fail) is not None


def test_no_result_is_forgotten():
    """Every class of the package that writes JSON stands in the list above; protectors keep their own files."""
    found = set()
    for module in pkgutil.walk_packages(cv.__path__, "countervail."):
        if ".protect" in module.name or module.name.endswith("__main__"):
            continue
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind.__module__ == module.name and {"to_dict", "to_json"} & set(vars(kind)):
                found.add(kind)
    covered = {c for r in RESULTS for c in type(r).__mro__}
    assert found <= covered
    # By name: a dataclass with slots is made twice, and its first self counts as a subclass too.
    assert {c.__name__ for c in (Statement, *Guarantee.__subclasses__())} <= {c.__name__ for c in covered}


def test_numbers_of_numpy_stay_numbers():
    assert release().to_json().count('"k": 2') == 1
    assert json.loads(release().to_json())["provenance"]["parameters"] == {"most": None, "least": 2, "odd": None}


def test_what_was_left_open_is_read_again():
    again = CellResult.from_dict(json.loads(json.dumps(CELL.to_dict(), allow_nan=False)))
    assert np.isnan(again.accuracy)
    assert np.isnan(again.moments["m0"].total)
    assert Explanations.from_json(explanations().to_json()).scores["score"].isna().all()
    assert len(Release.from_json(release().to_json())) == 2
