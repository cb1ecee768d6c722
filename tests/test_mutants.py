"""Do the contract checks bite? Each mutant must fail at least one of them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from countervail import NICE, KAnonymity, PrivateHistograms, PrivateNeighbours
from countervail.protect.published import GraspCFK
from countervail.testing import explainer_checks


class PromisesTooMuch(NICE):
    def guarantee(self):
        return KAnonymity(5)


class PromiseFromData(NICE):
    def guarantee(self):
        return KAnonymity(int(self.table_.frame["age"].mean())) if hasattr(self, "table_") else super().guarantee()


class KeepsIndex(NICE):
    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        return replace(e, counterfactuals=e.counterfactuals.set_axis(range(7, 7 + len(e))))


class LeaksIdentifier(NICE):
    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        return replace(e, caveats=(f"nearest to {self.table_.frame['id'].iloc[0]}",))


class ChangesTable(NICE):
    def fit(self, table, model):
        table.frame["age"] += 1
        return super().fit(table, model)


class Chancy(NICE):
    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        return replace(e, caveats=(str(np.random.default_rng().random()),))


class Shuffles(NICE):
    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        return replace(e, query=e.query[::-1])


class AnswersNothing(NICE):
    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        return replace(e, status=pd.Series(["no_counterfactual"] * len(e)))


class CarriesTable(NICE):
    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        return replace(e, provenance={**e.provenance, "rows": self.table_.frame["id"].tolist()})


class GivesRegionsInSecret(GraspCFK):
    gives_regions = False


class SaysItKeepsTheDraw(PrivateNeighbours):
    keeps_draw = True


class SaysItDrawsAnew(PrivateHistograms):
    keeps_draw = False


MUTANTS = [
    PromisesTooMuch,
    PromiseFromData,
    KeepsIndex,
    LeaksIdentifier,
    ChangesTable,
    Chancy,
    Shuffles,
    AnswersNothing,
    CarriesTable,
    GivesRegionsInSecret,
    SaysItKeepsTheDraw,
    SaysItDrawsAnew,
]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_caught(mutant):
    caught = []
    for check in explainer_checks(mutant()):
        try:
            check(clone(mutant()))
        except AssertionError as error:
            caught.append((check.__name__, error))
    assert caught
