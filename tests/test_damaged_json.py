"""Every reader of JSON says in one line of its own what is wrong with a damaged file, or reads it whole."""

import copy
import json
import random

import pandas as pd
import pytest

import countervail as cv
from countervail.core.errors import CountervailError
from countervail.core.explanation import Explanations
from countervail.core.guarantee import guarantee_from_dict
from countervail.core.release import Release
from countervail.core.schema import Schema
from countervail.core.sealed import canonical_table
from countervail.protect.cfk.groups.roster import Roster
from countervail.protect.mondrian.cut_tree import CutTree

# A value of the small table: no error may show it.
SECRET = "Xanthippe"
JUNK = [None, True, -1, 0, 3, 2**31, 2**63, 10**30, -0.5, 1e308, "", "x", "1", [], {}, [[]], [None], {"a": 1}]


def rows():
    frame = pd.DataFrame(
        {
            "name": [f"{SECRET} {i}" for i in range(40)],
            "age": [20.5 + i % 10 for i in range(39)] + [None],
            "born": range(1950, 1990),
            "town": ["Ghent", SECRET, None, "Ypres"] * 10,
            "grade": pd.Categorical(["low", "mid", "high", "mid"] * 10, ["low", "mid", "high"], ordered=True),
            "ill": ["flu", "cold"] * 20,
            "ok": ["yes", "no", "no", "yes"] * 10,
        }
    )
    return cv.Table.from_frame(
        frame,
        target="ok",
        favourable="yes",
        identifiers=["name"],
        quasi_identifiers=["age", "born", "town", "grade"],
        sensitive=["ill"],
    )


@pytest.fixture(scope="module")
def written():
    """A valid text of every kind, and what is done with it once it is read."""
    table = rows()
    towns = cv.Hierarchy((("Ghent", "east", "*"), (SECRET, "west", "*"), ("Ypres", "west", "*")), "town")
    plain = cv.Mondrian(4, hierarchies={"town": towns}, labels="hierarchy").fit(table)
    parted = cv.Mondrian(4, by_class=True).fit(table)
    whole = cv.Table.from_frame(
        table.frame.dropna(), target="ok", favourable="yes", quasi_identifiers=["born", "town"], identifiers=["name"]
    )
    explained = cv.CFK(k=3).fit(whole, lambda frame: ["yes" if b > 1970 else "no" for b in frame["born"]])
    answers = explained.explain(whole.features.head(4))
    promises = [
        cv.KAnonymity(3),
        cv.AllOf((cv.KAnonymity(3), cv.LDiversity(2, "recursive", "ill", 3.0))),
        cv.TCloseness(0.5, "hierarchical", "ill", tree=(("flu", "*"), ("cold", "*"))),
        cv.DifferentialPrivacy(0.5, budget=cv.Ledger("people", epsilon=4, delta=1e-6, plan={0.1: 20}).budget),
        cv.DifferentialPrivacy(0.5, None, delta=1e-6, given="private model", model_epsilon=1.0, model_delta=1e-6),
        cv.NoGuarantee("a file"),
        cv.KCommonality(4),
    ]
    return {
        "schema": ([json.dumps(table.schema.to_dict())], _schema),
        "promise": ([json.dumps(p.to_dict()) for p in promises], _promise),
        "release": ([plain.protect(table).to_json(), parted.protect(table).to_json()], _release),
        "explanations": ([answers.to_json()], _explanations),
        "roster": ([explained.roster_.to_json()], lambda text: _roster(text, whole)),
        "cut tree": ([plain.tree_.to_json(), parted.tree_.to_json()], lambda text: _tree(text, table)),
    }


def _schema(text):
    schema = Schema.from_dict(json.loads(text))
    schema.digest()
    assert Schema.from_dict(schema.to_dict()) == schema


def _promise(text):
    promise = guarantee_from_dict(json.loads(text))
    str(promise)
    json.dumps(promise.over(2).to_dict(), allow_nan=False)


def _release(text):
    release = Release.from_json(text)
    release.to_text_frame()
    release.to_frame()
    release.classes()
    release._repr_html_()
    Release.from_json(release.to_json())


def _explanations(text):
    answers = Explanations.from_json(text)
    answers.to_text()
    answers.to_frame()
    answers._repr_html_()
    Explanations.from_json(answers.to_json())


def _roster(text, table):
    roster = Roster.from_json(text)
    roster.match(table, canonical_table(table))
    Roster.from_json(roster.to_json())


def _tree(text, table):
    tree = CutTree.from_json(text)
    repr(tree)
    cells = tree.cells(table.frame)
    assert cells.max() < len(tree)
    CutTree.from_json(tree.to_json())


def damaged(text, rng):
    """The text with one or two things wrong: a key or item gone, doubled or replaced, or the end cut off."""
    data = json.loads(text)
    for _ in range(rng.choice([1, 1, 2])):
        places = list(_places(data))
        if not places:
            break
        # Half of the time near the top: long lists would take nearly all the hits otherwise.
        parent, key = rng.choice(places[:40] if rng.random() < 0.3 else places)
        _change(parent, key, rng)
    return json.dumps(data)


def _places(node):
    """All places of a tree, level by level."""
    todo = [node]
    while todo:
        node = todo.pop(0)
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            yield node, key
            todo.append(node[key])


def _change(parent, key, rng):
    kind = rng.random()
    if kind < 0.2:
        del parent[key]
    elif kind < 0.3 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    elif kind < 0.35 and isinstance(parent, dict):
        parent[rng.choice(["x", "k", "version"])] = parent.pop(key)
    elif kind < 0.5 and isinstance(parent[key], (int, float)):
        parent[key] = rng.choice([parent[key] + 1, -parent[key], parent[key] * 10**6, str(parent[key]), [parent[key]]])
    else:
        parent[key] = copy.deepcopy(rng.choice(JUNK))


@pytest.mark.parametrize("kind", ["schema", "promise", "release", "explanations", "roster", "cut tree"])
def test_whatever_is_wrong_with_a_file_only_our_own_errors_come_out(kind, written, seeds):
    texts, read = written[kind]
    for text in texts:
        read(text)
    refused = 0
    for seed in seeds(600, 20_000):
        rng = random.Random(seed)
        text = damaged(rng.choice(texts), rng)
        try:
            read(text)
        except CountervailError as error:
            refused += 1
            assert "\n" not in str(error) and SECRET not in str(error) and len(str(error)) < 700
    assert refused > 100


@pytest.mark.parametrize("kind", ["release", "explanations", "roster", "cut tree"])
def test_a_text_that_was_cut_off_is_named(kind, written, seeds):
    texts, read = written[kind]
    for seed in seeds(20, 500):
        rng = random.Random(seed)
        text = rng.choice(texts)
        with pytest.raises(CountervailError, match="is no JSON object"):
            read(text[: rng.randrange(len(text) - 1)])


@pytest.mark.parametrize("change", [{"left": [0]}, {"right": [10**6]}, {"attribute": [99]}, {"cell": [10**6]}])
def test_a_cut_tree_that_would_lead_out_of_its_arrays_is_refused(change, written):
    data = json.loads(written["cut tree"][0][1])
    nodes = data["branches"][0]["nodes"]
    for name, values in change.items():
        nodes[name] = values * len(nodes["cut"])
    with pytest.raises(CountervailError, match="damaged"):
        CutTree.from_json(json.dumps(data))


def test_rows_without_a_column_of_the_cut_tree_are_refused(written):
    tree = CutTree.from_json(written["cut tree"][0][0])
    with pytest.raises(CountervailError, match=r"lack columns that the cut tree reads: \['town'\]"):
        tree.cells(rows().frame.drop(columns="town"))
