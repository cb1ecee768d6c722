"""What gives people away where no attack looks: beside the values, in disguise, to whoever asks alone, by silence."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.attack.shared.planted import NoisyOracle, explained, open_release
from countervail.auditing.battery import Setting, fitting_attacks, run_battery
from countervail.auditing.result import digest, verify
from countervail.auditing.subject import read_subject
from countervail.core.errors import RefusedError
from countervail.core.guarantee import DifferentialPrivacy, NoGuarantee
from countervail.core.region import Regions
from countervail.core.release import Release
from countervail.testing import small_table

READ = ["linkage", "singling-out", "reidentification"]
WISHES = {"singling_out": 0.2, "linkability": 0.2, "inference": 0.2, "membership": 0.2, "max_risk": 0.1}
READER = {"version": 1, "recipients": {"reader": {**WISHES, "asks": False}}}
ASKER = {"version": 1, "recipients": {"asker": WISHES}}


@pytest.fixture(scope="module")
def people():
    return small_table(800).split(test_size=0.5, random_state=0)


def tried(what, people, **more):
    return cv.audit(what, people[0], control=people[1], **{"jobs": 1, "budget": None, "appetite": READER, **more})


class Honest:
    """Answers everybody with their own row; `spoil` is what a subclass does to that."""

    def __init__(self, table):
        self.table, self.calls = table, 0

    def explain(self, rows):
        self.calls += 1
        rows = pd.DataFrame(rows).reset_index(drop=True)
        return self.spoil(replace(explained(rows, rows.copy(), self.table), own=np.ones(rows.shape, bool)), rows)

    def spoil(self, e, rows):
        return e

    def incomes(self, rows):
        return self.table.frame["income"].to_numpy()[rows["age"].to_numpy() % len(self.table)]

    def inside(self, rows):
        held = set(map(tuple, self.table.features.astype(str).to_numpy()))
        return np.array([tuple(row) in held for row in rows.astype(str).to_numpy()])


def showing(e, cells):
    same = cells.astype(object).to_numpy() == e.factuals.astype(object).to_numpy()
    return replace(e, counterfactuals=cells, own=same)


def refusing(e, rows):
    cells = e.counterfactuals.astype(object)
    cells.iloc[np.flatnonzero(rows)] = None
    status = e.status.where(~rows, "no_counterfactual")
    return replace(e, counterfactuals=cells, status=status, own=e.own & ~rows[:, None])


class TellsWhoeverAsksAlone(Honest):
    def spoil(self, e, rows):
        return showing(e, self.table.features.iloc[[7]].reset_index(drop=True)) if len(rows) == 1 else e


class TellsInDecimals(Honest):
    def spoil(self, e, rows):
        income = np.floor(rows["income"].to_numpy()) + self.incomes(rows) / 1000
        return showing(e, e.counterfactuals.assign(income=income))


class TellsInLabels(Honest):
    def spoil(self, e, rows):
        marked = [f"{v}\u200b" if rich else v for v, rich in zip(rows["city"], self.incomes(rows) > 40)]
        return showing(e, e.counterfactuals.assign(city=marked))


class TellsInShares(Honest):
    def spoil(self, e, rows):
        return replace(e, pureness=self.incomes(rows) / 1000)


class TellsInScores(Honest):
    def spoil(self, e, rows):
        return replace(e, scores=pd.DataFrame({"yes": self.incomes(rows)}))


class TellsWhoItIs(Honest):
    def spoil(self, e, rows):
        return replace(e, ids=pd.Series([f"{v}" for v in self.incomes(rows)], name="who"))


class TellsInDecisions(Honest):
    def spoil(self, e, rows):
        return replace(e, before=pd.Series([f"no {v}" for v in self.incomes(rows)], dtype=object))


class TellsInSettings(Honest):
    def spoil(self, e, rows):
        return replace(e, provenance={"protector": "x", "parameters": {"held": self.table.frame["income"].tolist()}})


class TellsInANumberOfAnswers(Honest):
    def spoil(self, e, rows):
        return replace(e, notes=tuple(f"1 of {int(v * 10)} different answers were found." for v in self.incomes(rows)))


class TellsInTheIndex(Honest):
    def spoil(self, e, rows):
        cells = e.counterfactuals.copy()
        cells.index = pd.Index(self.table.frame["id"].to_numpy()[: len(rows)])
        return replace(e, counterfactuals=cells)


class CallsItNoise(TellsWhoeverAsksAlone):
    draws_noise = True


class AnswersAuditsOtherwise(NoisyOracle):
    """Has other methods for those who audit than for those who ask."""

    def explain(self, rows):
        return super().explain(rows)

    def unadvised(self, rows):
        return Honest(self.table).explain(rows)

    disclosed = behind = unadvised


class TellsTheIllness(Honest):
    """Puts a member's illness in the answer to whoever asks with what else is known of that member."""

    def spoil(self, e, rows):
        known = [n for n in rows.columns if n != "ill"]
        held = {tuple(r): ill for *r, ill in self.table.frame[[*known, "ill"]].itertuples(index=False)}
        ills = [held.get(tuple(r), ill) for *r, ill in rows[[*known, "ill"]].itertuples(index=False)]
        return showing(e, e.counterfactuals.assign(ill=ills))


class RefusesMembers(Honest):
    def spoil(self, e, rows):
        return refusing(e, self.inside(rows))


class AnswersMembersAlone(Honest):
    def spoil(self, e, rows):
        return refusing(e, ~self.inside(rows))


def test_who_gives_nothing_away_passes_everything_that_is_tried_here(people):
    assert tried(Honest(people[0]), people).verdict == "release"
    words = {d.criterion: d.word for d in tried(Honest(people[0]), people, appetite=ASKER).decisions}
    assert words["inference"] == words["membership"] == "release"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (TellsInDecimals, "'income' shows numbers with more decimals"),
        (TellsInLabels, "'city' shows 3 labels that nobody has"),
        (TellsInShares, "come with shares"),
        (TellsInScores, "come with scores"),
        (TellsWhoItIs, "come with identifiers"),
        (TellsInDecisions, "different decisions"),
        (TellsInSettings, "more of how they were made"),
        (TellsInANumberOfAnswers, "notes in words of their own"),
    ],
)
def test_what_leaves_beside_the_values_is_no_pass(people, kind, says):
    made = tried(kind(people[0]), people, attacks=READ)
    assert made.verdict in ("not shown", "void")
    assert says in made["beside the values"].why
    income = str(people[0].frame["income"].iloc[3])
    assert f" {income}" not in made["beside the values"].why


def test_an_index_of_its_own_is_refused(people):
    with pytest.raises(RefusedError, match="an index of its own"):
        tried(TellsInTheIndex(people[0]), people, attacks=READ)


def test_a_leak_to_whoever_asks_alone_is_seen_and_noise_is_no_excuse(people):
    assert tried(TellsWhoeverAsksAlone(people[0]), people, attacks=READ).verdict == "void"
    made = tried(CallsItNoise(people[0]), people, attacks=READ)
    assert made.verdict == "not shown" and "declares noise of its own" in made["beside the values"].why


def test_methods_for_audits_are_asked_of_our_own_code_only(people):
    attack = cv.attack.Averaging(20, n_targets=25)
    found = attack.run(AnswersAuditsOtherwise(people[0]), *people)
    assert found.members.n == 25 and found.controls.n == 25
    assert attack.run(Honest(people[0]), *people).members.n == 1


def test_an_illness_told_to_whoever_asks_as_somebody_is_found_by_asking_so_and_by_nothing_else(people):
    made = tried(TellsTheIllness(people[0]), people, appetite=ASKER)
    assert made["asked-inference"].counts.excess().low > 0.5
    inference = next(d for d in made.decisions if d.criterion == "inference")
    assert inference.word == "reject" and len(inference.reasons) == 1


@pytest.mark.parametrize("kind", [RefusesMembers, AnswersMembersAlone])
def test_silence_that_tells_members_is_found(people, kind):
    made = tried(kind(people[0]), people, appetite=ASKER, attacks=["answered-membership", "linkage"])
    assert {d.criterion: d.word for d in made.decisions}["membership"] == "reject"
    assert made["answered-membership"].counts.excess().low > 0.9


def published(people, frame, guarantee=None):
    schema = people[0].schema.without_identifiers()
    rows = np.arange(len(frame), dtype=np.int64)
    why = NoGuarantee("a table of somebody else") if guarantee is None else guarantee
    return Release(Regions((), len(frame)), rows, frame[schema.names()].reset_index(drop=True), schema, why)


def mixed(people, share):
    """Values drawn column by column from strangers, and some members' rows as they are."""
    members, others = (t.frame for t in people)
    drawn = np.random.default_rng(0)
    frame = {n: others[n].iloc[drawn.integers(len(others), size=len(members))] for n in others}
    few = int(share * len(members))
    rows = {n: [*members[n].iloc[:few], *frame[n].iloc[few:]] for n in members}
    return pd.DataFrame(rows).astype(members.dtypes.to_dict())


@pytest.mark.parametrize("how", ["scaled", "mirrored", "renamed"])
def test_a_table_whose_columns_were_recoded_is_not_released(people, how):
    frame = people[0].frame.sample(frac=1, random_state=0)
    if how == "renamed":
        frame = frame.assign(**{n: [f"{v} " for v in frame[n]] for n in ("city", "level", "ill")}, age=50, income=9.0)
    else:
        sign = -1 if how == "mirrored" else 1000
        frame = frame.assign(age=sign * frame["age"], income=sign * frame["income"])
    made = tried(published(people, frame), people)
    assert made.verdict != "release"
    assert (
        "that nobody has" in made["beside the values"].why or "outside of what people" in made["beside the values"].why
    )


def test_tables_of_our_own_show_nothing_that_nobody_has(people):
    members = people[0]
    for protector in (cv.Mondrian(k=10), cv.Microaggregation(k=10), cv.DPTable.examples()[0]):
        made = tried(protector.fit(members), people, attacks=["linkage"])
        assert all(f.attack != "beside the values" for f in made.findings), protector


def test_noise_that_a_file_claims_does_not_lift_the_largest_risk(people):
    frame = mixed(people, 0.05)
    words = []
    for promise in (NoGuarantee("none"), DifferentialPrivacy(1.0)):
        made = tried(published(people, frame, promise), people)
        words.append(next(d.word for d in made.decisions if d.criterion == "maximum risk"))
        assert made.verdict != "release" and verify(made.to_json()) == []
    assert words == ["reject", "not shown"]


def test_own_values_of_rows_that_nobody_vouches_for_are_no_pass(people):
    members, others = people
    e = explained(others.features, others.features, members)
    honest = replace(e, own=np.ones(e.counterfactuals.shape, bool))
    assert tried(honest, people).verdict == "release"
    records = members.features.reset_index(drop=True)
    altered = replace(honest, factuals=records, counterfactuals=records)
    made = tried(altered, people)
    assert made.verdict == "not shown" and "none of the controls" in made["beside the values"].why


def test_an_appetite_that_accepts_everything_is_said_to_decide_nothing(people):
    blind = {"version": 1, "recipients": {"all": {"singling_out": 1.0, "max_risk": 1.0}}}
    made = tried(open_release(people[0]), people, appetite=blind, attacks=None)
    assert made.verdict == "release"
    said = "nothing was decided for all about singling out, linkability, inference, membership, maximum risk"
    assert said in made.steps[0] and said in made.to_html()


@pytest.mark.parametrize(
    ("where", "value"),
    [("sentence", "All is well."), ("limits", []), ("next", ["Release it."]), ("promise", "10-anonymous")],
)
def test_words_that_do_not_follow_are_found_whatever_the_digest(people, where, value):
    made = tried(open_release(people[0]), people, attacks=["linkage"])
    data = json.loads(made.to_json())
    data[where] = {**data[where], "text": value} if where == "promise" else value
    data["digest"] = digest(data)
    assert [p for p in verify(json.dumps(data)) if "words" in p]


@pytest.mark.parametrize("seed", range(4))
def test_a_battery_on_few_people_finds_the_copies_that_are_planted_for_it(seed):
    members, rest = small_table(1500, seed=seed).split(test_size=2 / 3, random_state=seed)
    others = rest.take(range(500))
    subject = read_subject(Honest(members), members, others)
    setting = Setting(subject, members, fitting_attacks(subject, ["extraction"]))
    (found,) = run_battery(setting)
    assert found.found_planted and found.planted.p_value(0.0, "above") < 1e-6
