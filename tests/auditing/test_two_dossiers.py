"""What two dossiers tell about the one person by whom their tables differ, and that each of them says so."""

import numpy as np
import pandas as pd

import countervail as cv
from countervail.attack.attribute_inference import AttributeInference
from countervail.core.rng import generator

PEOPLE, TRIED = 120, 12


def draw(seed):
    """People whose illness goes by their age, mostly."""
    rng = generator(seed)
    age = rng.integers(20, 70, PEOPLE)
    ill = np.where(rng.random(PEOPLE) < 0.8, age // 10 % 3, rng.integers(0, 3, PEOPLE))
    cities = rng.choice(["a", "b", "c", "d"], PEOPLE)
    return pd.DataFrame({"age": age, "city": cities, "ill": np.array(["flu", "cold", "gout"])[ill]})


def people(frame):
    rows = frame.reset_index(drop=True)
    return cv.Table.from_frame(rows, quasi_identifiers=["age", "city"], sensitive=["ill"])


def dossier(release, table, others):
    audit = cv.audit(release, table, control=others, attacks=["attribute-inference"], jobs=1, budget=None)
    return audit.to_dict()


def test_the_difference_of_two_dossiers_is_one_persons_outcome_and_each_dossier_warns_of_it():
    frame, others = draw(3), people(draw(4))
    table = people(frame)
    release = cv.Mondrian(k=5).fit(table).protect(table)
    whole = dossier(release, table, others)
    outcomes = []
    for i in range(TRIED):
        without = dossier(release, people(frame.drop(index=i)), others)
        outcomes.append(whole["findings"][0]["counts"]["hits"] - without["findings"][0]["counts"]["hits"])
        assert any("two dossiers" in text for text in without["limits"])
    alone = [people(frame.iloc[[i] * 20]) for i in range(TRIED)]  # everybody of this table is that one person
    achieved = [AttributeInference().run(release, one, others).members.value for one in alone]
    assert outcomes == achieved
    assert {0, 1} == set(outcomes)


def test_the_page_warns_of_a_second_dossier():
    frame, others = draw(3), people(draw(4))
    table = people(frame)
    release = cv.Mondrian(k=5).fit(table).protect(table)
    audit = cv.audit(release, table, control=others, attacks=["attribute-inference"], jobs=1, budget=None)
    assert "two dossiers whose tables differ by one person" in audit.to_html()


def test_no_dossier_says_how_few_things_have_a_size():
    table = people(draw(3))
    release = cv.Mondrian(k=5).fit(table).protect(table)
    audit = cv.audit(release, table, control=people(draw(4)), attacks=["singling-out"], jobs=1, budget=None)
    sized = [f["sets"] for f in audit.to_dict()["findings"] if f["sets"]]
    assert sized
    for sets in sized:
        few = [s * sets["things"] for s in sets["shares"].values() if s > 0]
        assert all(count > 4.99 for count in few) or sets["things"] <= 5
