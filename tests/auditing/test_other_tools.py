"""What other tools answered, audited at the shipped appetite."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.attack.shared.planted import explained, open_release
from countervail.core.errors import SchemaError

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "foreign"
QUICK = ["singling-out"]


def words(made):
    return {d.criterion: d.word for d in made.decisions}


@pytest.fixture(scope="module")
def tree():
    """What DiCE's search tree answered to people of German credit, as DiCE wrote it."""
    everybody = cv.load("german_credit")
    members, others = everybody.take(range(600)), everybody.take(range(600, len(everybody)))
    output = json.loads((FOLDER / "dice_tree.json").read_text(encoding="utf-8"))["outputs"]["kdtree"]
    return members, others, output


def test_dices_search_tree_is_rejected_by_singling_out(tree, tmp_path):
    members, others, output = tree
    (tmp_path / "dice.json").write_text(output, encoding="utf-8")
    made = cv.audit(tmp_path / "dice.json", members, control=others, attacks=QUICK, jobs=1, budget=None)
    assert made.verdict == "reject" and words(made)["singling out"] == "reject"
    # Where unchanged cells are taken for the asker's, less is somebody else's: the fewest people still decide.
    spared = cv.read_explanations(output, members, labels=["bad", "good"], own="unchanged")
    assert (
        words(cv.audit(spared, members, control=others, attacks=QUICK, jobs=1, budget=None))["maximum risk"] == "reject"
    )


def test_whole_records_are_found_where_quasi_identifiers_alone_single_nobody_out():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], 400),
            **{f"x{j}": rng.integers(0, 30, 400) for j in range(4)},
            "ok": rng.choice(["no", "yes"], 400),
        }
    )
    table = cv.Table.from_frame(frame, target="ok", quasi_identifiers=["sex"], favourable=["yes"])
    members, others = table.split(test_size=0.5, random_state=0)
    rows = explained(members.features, members.features, members)
    made = cv.audit(rows, members, control=others, attacks=["singling-out"], jobs=1, budget=None)
    found = {f.attack: f for f in made.findings}
    assert found["singling-out (multivariate)"].counts.hits == 0
    assert found["singling-out (whole records)"].counts.excess().low > 0.9
    assert found["singling-out (whole records)"].sets is None
    assert words(made)["singling out"] == "reject" and words(made)["maximum risk"] != "reject"


def test_an_answer_that_is_blurred_or_holds_own_values_is_no_whole_record(halves):
    members, others = halves
    attack = cv.attack.SinglingOut("whole")
    blurred = members.features.assign(age=[pd.Interval(20, 80, closed="both")] * len(members))
    assert attack.run(explained(members.features, blurred, members), members, others).members.value == 0
    taken = members.features.iloc[: len(others)].reset_index(drop=True)
    asked = others.features.iloc[: len(members)].reset_index(drop=True).assign(age=taken["age"])  # theirs is the same
    mixed = explained(asked, taken, members)
    own = np.zeros(mixed.counterfactuals.shape, dtype=bool)
    own[:, 0] = True
    assert attack.run(replace(mixed, own=own), members, others).members.value == 0
    assert attack.run(mixed, members, others).members.value > 0.5


def mixtures(members, others, taken):
    """Answers that take some columns of one member each and leave the others to the asker, without saying which."""
    cells = others.features.iloc[: len(members)].reset_index(drop=True)
    rows = members.features.iloc[: len(cells)].reset_index(drop=True)
    return explained(others.features.iloc[: len(cells)], cells.assign(**{n: rows[n] for n in taken}), members)


def test_values_taken_from_one_person_are_found_though_the_answer_is_nobodys_record():
    table = cv.load("german_credit")
    members, others = table.split(test_size=0.5, random_state=0)
    mixed = mixtures(members, others, ["credit_amount", "duration", "purpose", "savings_status"])
    found = {kind: cv.attack.SinglingOut(kind).run(mixed, members, others) for kind in ("whole", "changed")}
    assert found["whole"].members.value == 0
    assert found["changed"].excess.low > 0.5


def test_a_stranger_whose_values_are_taken_is_not_found_among_the_members():
    table = cv.load("german_credit")
    members, rest = table.split(test_size=0.6, random_state=0)
    others, strangers = rest.split(test_size=0.5, random_state=0)
    mixed = mixtures(strangers, others, ["credit_amount", "duration", "purpose", "savings_status"])
    assert cv.attack.SinglingOut("changed").run(mixed, members, others).excess.low < 0.02


def test_an_answer_that_blurs_what_it_changes_is_a_try_that_failed_and_its_private_values_are_told_beside():
    table = cv.load("german_credit")
    members, others = table.split(test_size=0.5, random_state=0)
    mixed = mixtures(members, others, ["credit_amount", "duration", "purpose", "savings_status"])
    blurred = mixed.counterfactuals.assign(age=[pd.Interval(18, 80, closed="both")] * len(mixed.counterfactuals))
    found = cv.attack.SinglingOut("changed").run(replace(mixed, counterfactuals=blurred), members, others)
    assert found.members.value == 0
    assert found.detail["fits one with what is beside blurred values"].value > 0.5


def test_rows_of_a_table_change_nothing_and_answers_that_change_nothing_fit_everybody(halves):
    members, others = halves
    attack = cv.attack.SinglingOut("changed")
    with pytest.raises(SchemaError, match="change nothing"):
        attack.run(open_release(members), members, others)
    assert attack.run(explained(members.features, members.features, members), members, others).members.value == 0
    assert attack.run(attack.planted(members, others), members, others).excess.low > 0.5
    silent = mixtures(members, others, [])
    none = pd.Series(["no_counterfactual"] * len(silent), dtype=object)
    nothing = replace(silent, status=none, counterfactuals=silent.counterfactuals.map(lambda _: None))
    assert attack.run(nothing, members, others).members.n == 0
    assert attack.run(replace(silent, status=none), members, others).members.n == len(silent)  # it shows values


def test_columns_shuffled_each_by_itself_hold_nobodys_record_but_single_values():
    table = cv.load("german_credit")
    members, others = table.split(test_size=0.5, random_state=0)
    rng = np.random.default_rng(0)
    order = {n: rng.permutation(members.frame[n].to_numpy()) for n in members.schema.features}
    shuffled = cv.Table(members.frame.assign(**order), members.schema)
    rates = {
        kind: cv.attack.SinglingOut(kind, columns="features").run(open_release(shuffled), members, others).excess
        for kind in ("multivariate", "whole", "univariate")
    }
    assert rates["multivariate"].high < 0.09 and rates["whole"].high < 0.09
    assert rates["univariate"].low > 0.09  # the only one who asked for this amount is still the only one


def test_what_a_strict_reading_would_count_is_said_where_answers_blur_and_only_there():
    table = cv.load("german_credit")
    members, others = table.split(test_size=0.5, random_state=0)
    rows = members.features.iloc[:100].reset_index(drop=True)
    asked = others.features.iloc[:100].reset_index(drop=True)
    blurred = rows.assign(age=[pd.Interval(18, 90, closed="both")] * len(rows))
    attack = cv.attack.SinglingOut("changed")
    found = attack.run(explained(asked, blurred, members), members, others)
    assert found.members.value == 0  # decided is on answers that blur nothing
    assert len(found.remarks) == 1 and found.remarks[0].startswith("read strictly, ")
    strict = found.detail["fits one with what is beside blurred values"]
    assert strict.value > 0.9 and f"{strict.value:.1%} of 100 answers" in found.remarks[0]
    assert attack.run(explained(asked, rows, members), members, others).remarks == ()
    wide = rows.assign(**{n: [pd.Interval(-1e9, 1e9, closed="both")] * 100 for n in rows if table.schema[n].numeric})
    wide = asked.assign(**{n: wide[n] for n in rows if table.schema[n].numeric})
    assert attack.run(explained(asked, wide, members), members, others).remarks == ()
