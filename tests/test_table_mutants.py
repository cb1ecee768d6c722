"""Do the contract checks of table protectors bite? Each mutant must fail at least one of them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from countervail import KAnonymity, LDiversity, Mondrian, NoGuarantee
from countervail.core.errors import RefusedError
from countervail.core.schema import Schema
from countervail.protect._classes import Classes
from countervail.testing import protector_checks, small_table


class Mutant(Mondrian):
    def __init__(self, k=5, *, random_state=None):
        super().__init__(k, random_state=random_state)


class PromisesTooMuch(Mutant):
    def guarantee(self):
        return KAnonymity(9)


class PromisesDiversity(Mutant):
    def guarantee(self):
        return LDiversity(3, "distinct", "ill")


class PromiseFromData(Mutant):
    def guarantee(self):
        return KAnonymity(2 + int(self.table_.frame["age"].sum()) % 4) if hasattr(self, "table_") else KAnonymity(2)


class KeepsOrder(Mutant):
    def _shuffled(self, release):
        r = super()._shuffled(release)
        order = np.argsort(self.table_.frame["income"].rank(method="first").to_numpy())
        back = r.others["income"].rank(method="first").astype(int).to_numpy() - 1
        at = np.empty(len(r), int)
        at[order[back]] = np.arange(len(r))
        return replace(r, groups=r.groups[at], others=r.others.iloc[at].reset_index(drop=True))


class OrdersByClass(Mutant):
    def _shuffled(self, release):
        r = super()._shuffled(release)
        at = np.argsort(r.groups, kind="stable")
        return replace(r, groups=r.groups[at], others=r.others.iloc[at].reset_index(drop=True))


class KeepsIndex(Mutant):
    def _shuffled(self, release):
        r = super()._shuffled(release)
        return replace(r, others=r.others.set_axis(range(7, 7 + len(r))))


class LeaksIdentifier(Mutant):
    def _shuffled(self, release):
        r = super()._shuffled(release)
        return replace(r, caveats=(f"like {self.table_.frame['id'].iloc[0]}",))


class PublishesIdentifiers(Mutant):
    def _shuffled(self, release):
        r = super()._shuffled(release)
        return replace(r, others=r.others.assign(id=self.table_.frame["id"].to_numpy()), schema=self.table_.schema)


class NamesIdentifiers(Mutant):
    def _shuffled(self, release):
        r = super()._shuffled(release)
        return replace(r, schema=Schema(self.table_.schema.columns))


class ChangesTable(Mutant):
    def fit(self, table):
        table.frame["age"] += 1
        return super().fit(table)


class KeepsSeedSecret(Mutant):
    def _publish(self, frame, classes):
        return replace(super()._publish(frame, classes), caveats=())


class TellsSeed(Mutant):
    def _publish(self, frame, classes):
        release = super()._publish(frame, classes)
        release.provenance["parameters"]["random_state"] = self.random_state
        return release


class AlwaysSeeded(Mutant):
    def _shuffled(self, release):
        kept, self.random_state = self.random_state, 1
        r = super()._shuffled(release)
        self.random_state = kept
        return r


class DropsRows(Mutant):
    def _learn(self, table):
        found = super()._learn(table)
        of = found.of.copy()
        of[of == 0] = -1
        return Classes(of, found.regions)

    def _publish(self, frame, classes):
        return replace(super()._publish(frame, classes), suppressed=0)


class LiesInCells(Mutant):
    def _learn(self, table):
        found = super()._learn(table)
        return Classes(found.of, found.regions[::-1])


class RemembersLastFit(Mutant):
    def fit(self, table):
        self.times_ = getattr(self, "times_", 0) + 1
        return super().fit(table)

    def _publish(self, frame, classes):
        r = super()._publish(frame, classes)
        return replace(r, provenance={**r.provenance, "fits": self.times_})


class CarriesTable(Mutant):
    def _shuffled(self, release):
        r = super()._shuffled(release)
        return replace(r, provenance={**r.provenance, "rows": self.table_.frame["id"].tolist()})


MUTANTS = list(Mutant.__subclasses__())


def caught_by(protector):
    caught = []
    for check in protector_checks(protector):
        try:
            check(clone(protector))
        except (AssertionError, RefusedError, KeyError) as error:
            caught.append((check.__name__, error))
    return caught


def test_the_unchanged_protector_is_not_caught():
    assert not caught_by(Mutant())


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_caught(mutant):
    assert caught_by(mutant())


class SmallClasses(Mutant):
    """Cuts without looking at k, as a wrong kernel would."""

    def _learn(self, table):
        kept, self.k = self.k, 1
        found = super()._learn(table)
        self.k = kept
        return found


def test_a_release_that_breaks_its_promise_never_leaves():
    table = small_table()
    with pytest.raises(RefusedError, match=r"classes break 5-anonymity. Nothing has left"):
        SmallClasses().fit(table).protect(table)


def test_without_a_promise_there_is_nothing_to_refuse():
    class Open(SmallClasses):
        def guarantee(self):
            return NoGuarantee("it is a test")

    table = small_table()
    assert len(Open().fit(table).protect(table)) == len(table)
