"""Words follow from intervals: reject above, release below, neither in between, no pass for what was not tested."""

from dataclasses import replace

import numpy as np
import pytest

from countervail.auditing.appetite import Appetite, Recipient
from countervail.auditing.claims import Claim
from countervail.auditing.finding import ANSWERS_ALONE, Counts, Finding, SetSizes
from countervail.auditing.verdict import decide, open_steps, overall, people_needed
from countervail.core.rng import generator

OPEN = Counts(90, 100, 0, 100)
ASKING = Appetite((Recipient("public", thresholds={"singling out": 0.1}),))


def finding(counts, name="linkage", **facts):
    given = {"status": "run", "counts": counts, "planted": OPEN, **facts}
    return Finding(name, "singling out", facts.pop("asks", False), "", **given)


def word(*findings, appetite=ASKING, claims=()):
    decisions = decide(findings, claims, appetite)
    return overall(decisions, findings), decisions


@pytest.mark.parametrize(
    "counts, expected",
    [
        (Counts(90, 100, 5, 100), "reject"),
        (Counts(0, 500, 0, 500), "release"),
        (Counts(10, 100, 0, 100), "not shown"),
        (Counts(0, 5, 0, 5), "not shown"),
        (Counts(3000, 5000, 3000, 5000), "release"),
        (Counts(0, 0, 0, 0), "not shown"),
    ],
)
def test_a_word_follows_from_where_the_interval_lies(counts, expected):
    assert word(finding(counts))[0] == expected


def test_too_few_people_are_told_how_many_it_takes():
    _, decisions = word(finding(Counts(0, 5, 0, 5)))
    needed = people_needed(0.1, 0.05, 1)
    assert (
        f"too few cases to show anything below 0.1, for which it takes {needed}: linkage (5)" in decisions[0].reasons[0]
    )
    assert word(finding(Counts(0, needed, 0, needed)))[0] == "release"


def test_an_attack_that_misses_its_planted_leak_makes_the_audit_void():
    assert word(finding(Counts(0, 500, 0, 500), planted=Counts(0, 100, 0, 100)))[0] == "void"
    assert word(finding(Counts(0, 500, 0, 500), planted=None))[0] == "void"


@pytest.mark.parametrize("status", ["not run", "failed"])
def test_what_was_not_run_is_no_pass(status):
    held = finding(Counts(0, 500, 0, 500))
    late = finding(Counts(), name="inversion", status=status, why="the time was up")
    verdict, decisions = word(held, late)
    assert verdict == "not shown"
    assert "the time was up" in " ".join(decisions[0].reasons)
    assert word(late)[0] == "void"


def test_what_does_not_apply_neither_passes_nor_keeps_others_from_passing():
    held = finding(Counts(0, 500, 0, 500))
    elsewhere = finding(Counts(), name="deep", status="does not apply", why="too few cases")
    assert word(held, elsewhere)[0] == "release"
    assert word(elsewhere)[0] == "void"


def test_a_recipient_who_does_not_ask_is_not_judged_by_attacks_that_do():
    asked = replace(finding(Counts(90, 100, 0, 100), name="inversion"), asks=True)
    quiet = Appetite((Recipient("reader", asks=False, thresholds={"singling out": 0.1}),))
    read = finding(Counts(0, 500, 0, 500))
    assert word(asked, read)[0] == "reject"
    assert word(asked, read, appetite=quiet)[0] == "release"


def test_one_rejection_decides_and_nothing_to_decide_on_is_not_shown():
    assert word(finding(Counts(0, 500, 0, 500)), finding(Counts(90, 100, 0, 100), name="other"))[0] == "reject"
    elsewhere = Appetite((Recipient("public", thresholds={"membership": 0.1}),))
    verdict, decisions = word(finding(Counts(0, 500, 0, 500)), appetite=elsewhere)
    assert verdict == "not shown" and "no attack of this kind" in decisions[0].reasons[0]


def test_the_fewest_people_decide_on_the_largest_risk_but_not_where_noise_protects():
    wishes = Appetite((Recipient("public", max_risk=0.1),))
    sizes = [SetSizes.of(np.array(s)) for s in ([10, 12, 0], [10, 9])]
    words = [word(finding(Counts(0, 9, 0, 9), sets=s), appetite=wishes)[0] for s in sizes]
    assert words == ["release", "reject"]
    noisy = decide([finding(Counts(0, 9, 0, 9), sets=sizes[1])], [Claim(1.0, True, True)], wishes)
    assert noisy == ()


@pytest.mark.parametrize(
    "claim, expected",
    [
        (Claim(1.0, True, True, audited=0.4, draws=9), "release"),
        (Claim(1.0, True, True, audited=1.4, draws=9), "reject"),
        (Claim(20.0, True, True, audited=0.4, draws=9), "reject"),
        (Claim(1.0, False, False, audited=0.4, draws=9), "not shown"),
        (Claim(1.0, True, True), "not shown"),
    ],
)
def test_a_claimed_epsilon_is_held_against_draws_and_against_what_is_accepted(claim, expected):
    decisions = decide([], [claim], Appetite((Recipient("public", epsilon=10.0),)))
    assert [d.word for d in decisions] == [expected]


def test_harmless_batteries_are_rejected_no_more_often_than_the_confidence_allows():
    rng, runs, attacks = generator(7), 1000, 6
    rejected = 0
    for _ in range(runs):
        # Just at the threshold: the hardest harmless case. An excess of 0.1 over controls of 0.2 is 0.28.
        found = [
            finding(Counts(int(a), 200, int(b), 200), name=str(i))
            for i, (a, b) in enumerate(zip(rng.binomial(200, 0.28, attacks), rng.binomial(200, 0.2, attacks)))
        ]
        rejected += overall(decide(found, (), ASKING), found) == "reject"
    assert rejected <= 0.05 * runs


def test_what_is_open_says_what_would_settle_it():
    alone = Finding("intersection", "singling out", True, "", why=ANSWERS_ALONE)
    late = Finding("averaging", "singling out", True, "", why="the time was up")
    few, enough = finding(Counts(0, 5, 0, 5)), finding(Counts(0, 900, 0, 900), "singling-out")
    least = people_needed(0.1, 1 - ASKING.confidence, 2)
    ask, more, longer = open_steps([alone, few, enough, late], ASKING)
    assert "in the place of its answers: intersection can only be tried by asking it" in ask
    assert f"some attacks had 5 cases, and it takes {least} members and as many controls" in more
    assert longer == "Let the audit run longer: the time was up for averaging."
    assert open_steps([enough], ASKING) == ()
    # Whoever cannot ask is not concerned.
    reader = Appetite((Recipient("reader", asks=False, thresholds={"singling out": 0.1}),))
    assert open_steps([alone, enough], reader) == ()
