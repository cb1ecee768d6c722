"""Attacks that ask: noise that goes away, members whom a model knows by heart, and the model itself."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import countervail as cv
from countervail.attack import Averaging, Extraction, RecourseMembership
from countervail.attack.asking import recourse_membership
from countervail.attack.asking.averaging import Heard, _average, _same
from countervail.attack.base import answers_of
from countervail.attack.shared.planted import MemorisingOracle, NoisyOracle, StripedOracle, VerbatimOracle
from countervail.core.stats import excess_interval
from countervail.testing import small_model, small_table

TABLE, CONTROL = small_table(120), small_table(120, seed=1)


def laplace(epsilon=5.0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.PrivacyWarning)
        return cv.published.LaplaceNoise(epsilon).fit(TABLE, small_model)


def test_published_noise_goes_away():
    found = Averaging(200, n_targets=60).run(laplace(2.0), TABLE, CONTROL)
    assert found.excess.low > 0.3
    assert found.detail["after 1 answers"].value + 0.2 < found.detail["after 200 answers"].value


def test_groups_and_one_draw_stay_as_they_are():
    attack = Averaging(40, n_targets=15)
    for protector in (cv.CFK(k=5), cv.CFK(k=5, reward="none")):
        found = attack.run(protector.fit(TABLE, small_model), TABLE, CONTROL)
        assert found.members.value == 0
        assert found.detail["after 1 answers"].value == found.detail["after 40 answers"].value


def test_what_is_not_read_is_not_asked_for_and_explain_is_asked_wherever_it_was_written_anew():
    asked = []

    class Plain(cv.CFK):
        def unadvised(self, rows):
            raise AssertionError("written by somebody else")

    class Anew(cv.CFK):
        def explain(self, rows, **more):
            asked.append(len(rows))
            return super().explain(rows, **more)

    rows = CONTROL.features.head(7)
    limits = {"immutable": TABLE.schema.features[1:]}
    plain, anew = (kind(k=5, **limits).fit(TABLE, small_model) for kind in (Plain, Anew))
    assert any(plain.explain(rows).notes) and not any(answers_of(plain, rows).notes or ())
    assert any(answers_of(anew, rows).notes) and asked == [7]
    answers_of(anew, rows, behind=True)
    plain.explain = lambda rows: anew.explain(rows)
    answers_of(plain, rows)
    assert asked == [7, 7, 7]


def test_averages_are_those_of_a_slow_twin():
    answers = pd.DataFrame({"age": [30, 31, 35, 90, 31], "city": ["b", "b", "a", "c", "b"], "income": [9.0] * 5})
    heard = Heard({"age": 50, "city": "a", "income": 9.0}, answers.astype(object), np.ones(5, dtype=bool))
    assert _average(heard, 5, "median", TABLE.schema) == {"age": 31.0, "city": "b"}
    assert _average(heard, 5, "mean", TABLE.schema)["age"] == pytest.approx(43.4)
    assert _average(heard, 5, "mode", TABLE.schema)["age"] == 31
    assert _average(heard, 1, "median", TABLE.schema)["age"] == 30
    silent = Heard(heard.asked, heard.cells, np.array([True, False, True, True, True]))  # as if 50 or more, and more
    assert _average(silent, 5, "median", TABLE.schema)["age"] == 35


def test_ranges_and_sets_find_nothing():
    assert not _same(pd.Interval(1, 3, closed="both"), 2, 0.1)
    assert not _same(frozenset("ab"), "a", 0.1)
    assert _same(105.0, 100, 0.1) and not _same(111.0, 100, 0.1)
    assert _same(None, np.nan, 0.1) and not _same(None, 3, 0.1)


def test_each_leak_is_found_by_its_attack_and_not_by_the_unrelated_ones():
    attacks = {
        "averaging": Averaging(30, n_targets=25),
        "membership": RecourseMembership(),
        "extraction": Extraction(n_targets=40),
    }
    leaks = {
        "averaging": NoisyOracle(TABLE),
        "membership": MemorisingOracle(TABLE),
        "extraction": StripedOracle(TABLE),
    }
    for leak, oracle in leaks.items():
        low = {name: attack.run(oracle, TABLE, CONTROL).excess.low for name, attack in attacks.items()}
        assert low[leak] > 0.1, (leak, low)
        unrelated = "extraction" if leak == "averaging" else "averaging"
        assert low[unrelated] < 0.1, (leak, low)


def test_a_model_that_knows_people_by_heart_gives_them_away():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 12)), columns=[f"x{i}" for i in range(12)])
    frame["ok"] = rng.choice(["no", "yes"], 400)  # nothing to learn, so only members can be known
    table = cv.Table.from_frame(frame, target="ok", favourable="yes")
    train, test = table.split(test_size=0.5, random_state=0)
    model = RandomForestClassifier(50, bootstrap=False, random_state=0).fit(train.features, train.target)
    again = lambda t: cv.NICE("none", target="other").fit(t, model)  # noqa: E731
    found = RecourseMembership("likelihood-ratio", again=again, shadows=2).run(again(train), train, test)
    assert "AUC of planted records" in found.detail
    assert found.detail["AUC"].n == 300


def test_a_copy_from_counterfactuals_is_better_than_one_from_labels():
    oracle = StripedOracle(TABLE)
    for version in ("pairs", "dual", "one-sided"):
        found = Extraction(version, n_targets=40).run(oracle, TABLE, CONTROL)
        assert found.members.value > 0.9
        assert found.members.value > found.controls.value
        assert found.members.value > found.detail["labels of twice as many queries"].value


def test_extraction_works_on_ranges_and_private_answers():
    for oracle in (cv.CFK(k=5, reward="none"), cv.CFK(k=5), cv.NICE(target="other")):
        found = Extraction(n_targets=30).run(oracle.fit(TABLE, small_model), TABLE, CONTROL)
        assert found.members.n == found.controls.n > 0
        assert found.members.value > 0.5
        apart = excess_interval(*found.counts)
        assert found.excess.value == apart.value and found.both_failed is not None
        assert found.excess.high - found.excess.low < apart.high - apart.low  # both copies were tried on the same rows


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (Averaging(0), "'answers' parameter of Averaging"),
        (Averaging(average="most"), "'average' parameter of Averaging"),
        (Averaging(tolerance=1), "'tolerance' parameter of Averaging"),
        (Averaging(n_targets=0), "'n_targets' parameter of Averaging"),
        (RecourseMembership("shadow"), "'version' parameter of RecourseMembership"),
        (RecourseMembership(shadows=0), "'shadows' parameter of RecourseMembership"),
        (RecourseMembership(fpr=2), "'fpr' parameter"),
        (Extraction("theft"), "'version' parameter of Extraction"),
    ],
)
def test_bad_parameters_are_named(attack, message):
    with pytest.raises(ValueError, match=message):
        attack.run(VerbatimOracle(TABLE), TABLE, CONTROL)


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(ValueError, match="'oracle' parameter of Averaging"):
        Averaging().run(TABLE, TABLE, CONTROL)
    labels = cv.Table.from_frame(pd.DataFrame({"a": ["x", "y"]}), quasi_identifiers=["a"])
    with pytest.raises(ValueError, match="numeric column"):
        Extraction().planted(labels, labels)


def test_nobody_who_gets_an_answer_is_said():
    everybody = lambda frame: np.tile([0.0, 1.0], (len(frame), 1))  # noqa: E731
    oracle = cv.NICE(target="favourable").fit(TABLE, everybody)
    assert Averaging().run(oracle, TABLE, CONTROL).remarks == ("No query was answered.",)
    with pytest.raises(ValueError, match="hardly anybody"):
        RecourseMembership().run(oracle, TABLE, CONTROL)


class Counting:
    """Passes questions on, and counts the rows that are asked about."""

    def __init__(self, oracle):
        self.oracle, self.asked = oracle, []

    def explain(self, rows):
        self.asked.append(len(rows))
        return self.oracle.explain(rows)


def test_what_is_usual_is_asked_once_and_of_some_strangers_only(monkeypatch):
    monkeypatch.setattr(recourse_membership, "_KNOWN", 30)
    oracle = Counting(MemorisingOracle(TABLE))
    found = RecourseMembership("likelihood-ratio", n_targets=20).run(oracle, TABLE, CONTROL)
    assert sorted(oracle.asked) == [20, 20, 30]
    assert found.members.n
