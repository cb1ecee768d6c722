"""Do the contract checks bite? Each mutant is caught by the check that is there for it, and each check has a mutant."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import countervail.testing
from countervail import CFK, NICE, KAnonymity, PrivateHistograms, PrivateNeighbours
from countervail.attack import Intersection, Linkage, Membership
from countervail.protect.published import GraspCFK
from countervail.testing import attack_checks, explainer_checks
from countervail.testing import attacks as attack_contracts
from countervail.testing import explainers as explainer_contracts


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


class ForgetsParameters(NICE):
    def __init__(self, reward="none", target="other"):
        super().__init__("sparsity" if reward == "none" else "none", target=target)


class AnswersUnfitted(NICE):
    def explain(self, rows, *, progress=None, constraints=None):
        return super().explain(rows, progress=progress) if hasattr(self, "table_") else None


class RemembersLastFit(NICE):
    def fit(self, table, model):
        self.times_ = getattr(self, "times_", 0) + 1
        return super().fit(table, model)

    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        return replace(e, provenance={**e.provenance, "fits": self.times_})


class Echo(NICE):
    """The asker's own row, handed back as an answer."""

    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        return replace(e, counterfactuals=e.factuals.copy())


class SaysOtherwise(NICE):
    """Any row of the asker's own decision, with the wished-for decision written beside it."""

    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        same = {
            d: self.table_.features[self.decision_.labels(self.decision_.train) == d].iloc[[0]] for d in ("no", "yes")
        }
        wrong = pd.concat([same[d] for d in e.before], ignore_index=True)
        return replace(e, counterfactuals=wrong)


class SwapsAskers(NICE):
    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        return replace(e, factuals=e.factuals.iloc[::-1].reset_index(drop=True))


class IgnoresConstraints(NICE):
    def fit(self, table, model):
        super().fit(table, model)
        self.constraints_ = replace(self.constraints_, ways={}, allowed={})
        return self


class IgnoresTheSchema(NICE):
    def fit(self, table, model):
        free = {n: {"actionable": "any", "range": None} for n in table.schema.features}
        schema = table.schema
        for n, without in free.items():
            schema = schema.with_column(n, **without)
        return super().fit(type(table)(table.frame, schema), model)


class RepeatsItself(NICE):
    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        twice = np.repeat(np.arange(len(e)), 2)
        return replace(
            e,
            factuals=e.factuals.iloc[twice].reset_index(drop=True),
            counterfactuals=e.counterfactuals.iloc[twice].reset_index(drop=True),
            status=e.status.iloc[twice].reset_index(drop=True),
            before=e.before.iloc[twice].reset_index(drop=True),
            after=e.after.iloc[twice].reset_index(drop=True),
            query=e.query[twice],
            notes=None,
            scores=None,
        )


class LooksAtTheBatch(NICE):
    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        return replace(e, notes=tuple([f"one of {len(e)}"] * len(e)))


class LosesItsPickle(NICE):
    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        return replace(e, provenance={**e.provenance, "made": Changing()})


class Changing:
    """Another thing in every pickle and in every text."""

    def __init__(self, n=0):
        self.n = n

    def __repr__(self):
        return f"changed {self.n} times"

    __str__ = __repr__

    def __reduce__(self):
        return Changing, (self.n + 1,)


class KeepsTheTableInside(NICE):
    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        values = self.table_.frame["income"].tolist() * 40
        return replace(e, provenance={**e.provenance, "numbers": values})


class GivesRegionsInSecret(GraspCFK):
    gives_regions = False


class SaysItKeepsTheDraw(PrivateNeighbours):
    keeps_draw = True


class SaysItDrawsAnew(PrivateHistograms):
    keeps_draw = False


class NoNoise(NICE):
    """Says that it draws noise, and draws none."""

    draws_noise = True

    def __init__(self, target="favourable", random_state=None):
        super().__init__(target=target)
        self.random_state = random_state


class NeverSeeded(NoNoise):
    def explain(self, rows, *, progress=None):
        e = super().explain(rows, progress=progress)
        return replace(e, caveats=(str(np.random.default_rng().random()),))


class KeepsSeedSecret(PrivateHistograms):
    def explain(self, rows, *, progress=None, constraints=None):
        e = super().explain(rows, progress=progress)
        return replace(e, caveats=tuple(c for c in e.caveats if "seed" not in c))


# Each mutant, and the check that is there for it; others may catch it too.
MUTANTS = {
    PromisesTooMuch: "check_guarantee_survives_refutation",
    PromiseFromData: "check_guarantee_ignores_the_data",
    KeepsIndex: "check_order_and_index_tell_nothing",
    LeaksIdentifier: "check_no_identifier_leaves",
    ChangesTable: "check_input_is_untouched",
    Chancy: "check_same_table_same_answers",
    Shuffles: "check_order_and_index_tell_nothing",
    AnswersNothing: "check_answers_have_a_wanted_decision",
    CarriesTable: "check_no_identifier_leaves",
    ForgetsParameters: "check_clone_keeps_parameters",
    AnswersUnfitted: "check_unfitted_raises",
    RemembersLastFit: "check_refit_leaves_no_trace",
    Echo: "check_answers_have_a_wanted_decision",
    SaysOtherwise: "check_answers_have_a_wanted_decision",
    SwapsAskers: "check_askers_come_back_as_they_were",
    IgnoresConstraints: "check_constraints_hold_for_every_value",
    IgnoresTheSchema: "check_what_the_schema_declares_holds",
    RepeatsItself: "check_several_answers_differ",
    LooksAtTheBatch: "check_batch_equals_single",
    LosesItsPickle: "check_pickle_and_json_round_trip",
    KeepsTheTableInside: "check_table_does_not_travel",
    GivesRegionsInSecret: "check_plain_answers_unless_it_says_regions",
    SaysItKeepsTheDraw: "check_a_kept_draw_answers_alike",
    SaysItDrawsAnew: "check_a_kept_draw_answers_alike",
    NeverSeeded: "check_same_seed_same_answers",
    NoNoise: "check_no_seed_differs",
    KeepsSeedSecret: "check_seeded_says_so",
}


def words_of(subject, checks, name):
    """What the check of a name says of a subject; nothing where it passes."""
    check = next(c for c in checks(subject) if c.__name__ == name)
    try:
        check(subject)
    except AssertionError as error:
        return str(error)
    return ""


def caught_by(subject, checks):
    """The checks that a subject fails."""
    names = [check.__name__ for check in checks(subject)]
    return [name for name in names if words_of(clone(subject), checks, name)]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__name__)
def test_mutant_is_caught_by_its_check(mutant):
    assert words_of(mutant(), explainer_checks, MUTANTS[mutant])


def test_the_unchanged_ones_are_not_caught():
    assert not caught_by(NICE(), explainer_checks)
    assert not caught_by(Linkage(), attack_checks)


def test_a_protector_that_hands_the_askers_row_back_is_caught():
    class Mirror(CFK):
        name = "mirror"

        def __init__(self, k=3):
            super().__init__(k)

        def explain(self, rows, *, constraints=None, progress=None):
            e = super().explain(rows, progress=progress)
            return replace(e, counterfactuals=e.factuals.copy(), own=np.ones(e.counterfactuals.shape, dtype=bool))

    said = words_of(Mirror(), explainer_checks, "check_answers_have_a_wanted_decision")
    assert said == "a found answer changes nothing: it is the asker's own row"


# ---------------------------------------------------------------- attacks


class AllOnes(Linkage):
    """Says that every answer fits one person."""

    def sizes(self, release, register):
        return np.ones_like(super().sizes(release, register))


class AllMany(Linkage):
    def sizes(self, release, register):
        return np.full_like(super().sizes(release, register), len(register))


class SeesNothing(Linkage):
    def guess(self, release, known):
        return pd.DataFrame(None, index=range(len(known.targets)), columns=list(known.secret), dtype=object)


class Boasts(Membership):
    """Claims members, whoever was released."""

    def figures(self, release, table, control):
        found = super().figures(release, table, control)
        sure = replace(found.members, value=1.0, low=0.9, high=1.0)
        none = replace(found.controls, value=0.0, low=0.0, high=0.1)
        return replace(found, members=sure, controls=none, baseline=none)


class FindsInNothing(Linkage):
    def run(self, release, table, control):
        found = super().run(release, table, control)
        return replace(found, set_sizes=found.set_sizes if len(found.set_sizes) else np.ones(1, dtype=np.int64))


class Peeks(Linkage):
    def run(self, release, table, control):
        self.guess(replace(release, audit=table), self._known(table))
        return super().run(release, table, control)

    def _known(self, table):
        from countervail.attack.base import Knowledge

        return Knowledge(table.select("quasi"), table.select("quasi"), tuple(self.secrets(table)))


class Moody(Linkage):
    def run(self, release, table, control):
        found = super().run(release, table, control)
        return replace(found, set_sizes=np.append(found.set_sizes, np.random.default_rng().integers(2, 10**9)))


class Vague(Linkage):
    criterion = "harm"


class Forgets(Linkage):
    def __init__(self, adversary="prosecutor", *, n_targets=None, random_state=0):
        super().__init__("journalist", n_targets=n_targets, random_state=random_state)
        self.n_targets = 3 if n_targets is None else n_targets + 1


class LeavesOne(Intersection):
    """One person left, whatever is asked."""

    def figures(self, oracle, table, control):
        sizes = np.ones_like(super().figures(oracle, table, control).set_sizes)
        return self._left(sizes, sizes, table)


class LeavesMany(Intersection):
    def figures(self, oracle, table, control):
        sizes = np.full_like(super().figures(oracle, table, control).set_sizes, 50)
        return self._left(sizes, sizes, table)


ATTACKS = {
    AllOnes: "check_sizes_count_people",
    AllMany: "check_sizes_count_people",
    SeesNothing: "check_finds_the_leak_planted_for_it",
    Boasts: "check_is_silent_on_strangers",
    FindsInNothing: "check_is_silent_on_an_empty_release",
    Peeks: "check_sees_no_table",
    Moody: "check_attack_is_reproducible",
    Vague: "check_names_its_criterion",
    Forgets: "check_attack_clone_keeps_parameters",
    LeavesOne: "check_groups_keep_their_people",
    LeavesMany: "check_finds_plain_explanations",
}


@pytest.mark.parametrize("mutant", ATTACKS, ids=lambda m: m.__name__)
def test_attack_mutant_is_caught_by_its_check(mutant):
    assert words_of(mutant(), attack_checks, ATTACKS[mutant])


# ---------------------------------------------------------------- no check without a mutant, no assertion without words


@pytest.mark.parametrize(("module", "mutants"), [(explainer_contracts, MUTANTS), (attack_contracts, ATTACKS)])
def test_every_check_has_a_mutant(module, mutants):
    checks = {name for name in vars(module) if name.startswith("check_")}
    assert checks == set(mutants.values())


def test_every_assertion_says_what_was_broken():
    silent = []
    for path in sorted(Path(countervail.testing.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assert) and node.msg is None:
                silent.append(f"{path.name}:{node.lineno}")
            if isinstance(node, ast.Attribute) and node.attr == "assert_frame_equal":
                silent.append(f"{path.name}:{node.lineno}")
    assert not silent
