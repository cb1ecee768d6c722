"""Do the contract checks of table protectors bite? Each mutant must fail at least one of them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from countervail import KAnonymity, LDiversity, Mondrian, NoGuarantee
from countervail.core.errors import RefusedError
from countervail.core.schema import Schema
from countervail.protect._classes import Classes
from countervail.testing import protector_checks, protectors, small_table


class Changing:
    """Another thing in every pickle and in every text."""

    def __init__(self, n=0):
        self.n = n

    def __str__(self):
        return f"changed {self.n} times"

    __repr__ = __str__

    def __reduce__(self):
        return Changing, (self.n + 1,)


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


class ForgetsParameters(Mutant):
    def __init__(self, k=5, *, random_state=None):
        super().__init__(k + 1, random_state=random_state)


class AnswersUnfitted(Mutant):
    def protect(self, table):
        return super().protect(table) if hasattr(self, "fitted_as_") else None


class UncountedPromise(KAnonymity):
    """One that nobody counts before a release leaves."""

    def recount(self, release):
        return None


class PromisesUncounted(Mutant):
    def guarantee(self):
        return UncountedPromise(30)


class NeverTheSame(Mutant):
    def _shuffled(self, release):
        r = super()._shuffled(release)
        return replace(r, caveats=(*r.caveats, str(np.random.default_rng().random())))


class LooksAtTheOrder(Mutant):
    def _learn(self, table):
        found = super()._learn(table)
        first, last = table.frame["age"].iloc[[0, -1]]
        return Classes(np.zeros_like(found.of), found.regions[[0]]) if first > last else found

    def guarantee(self):
        return NoGuarantee("it is a mutant")


class LosesItsPickle(Mutant):
    def _shuffled(self, release):
        r = super()._shuffled(release)
        return replace(r, provenance={**r.provenance, "made": Changing()})


class ForgetsItsTable(Mutant):
    def protect(self, table):
        return replace(super().protect(table), audit=None)


class SaysItDrawsNoise(Mutant):
    draws_noise = True


MUTANTS = list(Mutant.__subclasses__())
# The mutant that each check is there for.
CHECKED = {
    "check_clone_keeps_parameters": ForgetsParameters,
    "check_unfitted_raises": AnswersUnfitted,
    "check_input_is_untouched": ChangesTable,
    "check_refit_leaves_no_trace": RemembersLastFit,
    "check_every_row_leaves_once": DropsRows,
    "check_rows_are_shuffled": OrdersByClass,
    "check_cells_hold_their_rows": LiesInCells,
    "check_no_seed_differs": AlwaysSeeded,
    "check_no_identifier_leaves": NamesIdentifiers,
    "check_index_tells_nothing": KeepsIndex,
    "check_guarantee_ignores_the_data": PromiseFromData,
    "check_guarantee_survives_refutation": PromisesUncounted,
    "check_same_seed_same_release": NeverTheSame,
    "check_seeded_says_so": KeepsSeedSecret,
    "check_noise_differs_without_a_seed": SaysItDrawsNoise,
    "check_only_randomised_columns_leave": SaysItDrawsNoise,
    "check_row_order_does_not_matter": LooksAtTheOrder,
    "check_pickle_and_json_round_trip": LosesItsPickle,
    "check_table_does_not_travel": ForgetsItsTable,
}


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


@pytest.mark.parametrize("name", CHECKED)
def test_each_check_catches_its_mutant_and_says_why(name):
    mutant = CHECKED[name]()
    check = next(c for c in protector_checks(mutant) if c.__name__ == name)
    with pytest.raises(AssertionError) as caught:
        check(mutant)
    assert str(caught.value)


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m not in CHECKED.values()])
def test_mutant_is_caught(mutant):
    assert caught_by(mutant())


def test_every_check_has_a_mutant():
    assert {name for name in vars(protectors) if name.startswith("check_")} == set(CHECKED)


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
