"""`countervail attack`: one attack on every kind of file, and errors that name flags."""

import json

import pytest

import countervail as cv
from countervail import registry
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.model import save_model, train_forest
from countervail.testing import small_model, small_table


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attack")
    table, control = small_table(150), small_table(120, seed=1)
    write_frame(table.frame, folder / "people.csv")
    write_frame(control.frame.assign(id=[f"other-{i}" for i in range(120)]), folder / "others.csv")
    write_schema(table.schema, folder / "people.toml")
    asked = small_table(60, seed=2)
    plain = cv.NICE(target="favourable").fit(table, small_model).explain(asked)
    (folder / "plain.json").write_text(plain.to_json(), encoding="utf-8")
    groups = cv.CFK(k=5).fit(table, small_model).explain(asked)
    (folder / "groups.json").write_text(groups.to_json(), encoding="utf-8")
    cv.Mondrian(k=5).fit(table).protect(table).write(folder / "public.csv")
    found = plain.found
    write_frame(plain.factuals[found], folder / "asked.csv")
    write_frame(plain.counterfactuals[found], folder / "foreign.csv")
    model = train_forest(table)
    save_model(model, folder / "m.skops")
    cv.CFK(k=5).fit(table, model).save(folder / "cfk.json")
    return folder


def given(files, name, what, *more):
    people = ("--schema", files / "people.toml", "--against", files / "people.csv")
    return ("attack", name, files / what, *people, *more)


def others(files):
    return ("--control", files / "others.csv")


def test_plain_answers_single_people_out_and_groups_do_not(run, files):
    code, out, _ = run(*given(files, "singling-out", "plain.json", *others(files)), "--json")
    said = json.loads(out)
    assert code == 0
    assert said["criterion"] == "singling out" and said["planted_found"]
    assert said["excess"]["low"] > 0.3
    code, out, _ = run(*given(files, "singling-out", "groups.json", *others(files)), "--json")
    assert code == 0 and json.loads(out)["members"]["value"] == 0


@pytest.mark.parametrize("name", ["linkage", "attribute-inference", "linkability", "membership", "reidentification"])
def test_published_tables_are_attacked(run, files, name):
    code, out, _ = run(*given(files, name, "public.csv", *others(files)), "--targets", 50)
    assert code == 0
    assert "excess over people never in it" in out
    assert "is found." in out


@pytest.mark.parametrize("name", ["averaging", "extraction", "recourse-membership", "intersection"])
def test_saved_protectors_are_asked(run, files, name):
    more = ("--set", "answers=10") if name == "averaging" else ()
    code, out, err = run(*given(files, name, "cfk.json", *others(files)), "--model", files / "m.skops", "--json", *more)
    assert code == 0, err
    assert json.loads(out)["attack"].startswith(name)


def test_a_saved_protector_cannot_be_rerun(run, files):
    words = given(files, "inversion", "cfk.json", *others(files))
    code, _, err = run(*words, "--model", files / "m.skops")
    assert code == 2 and "one that was saved holds no rows" in err


def test_answers_of_other_tools_are_attacked(run, files):
    words = given(files, "linkage", "foreign.csv", *others(files))
    code, out, err = run(*words, "--asked", files / "asked.csv", "--json")
    assert code == 0, err
    assert json.loads(out)["members"]["value"] > 0


def test_a_split_stands_for_controls(run, files):
    code, out, _ = run(*given(files, "membership", "plain.json"), "--split", 0.4, "--seed", 3, "--json")
    said = json.loads(out)
    assert code == 0 and said["members"]["n"] == 90
    assert any("not measurable" in text for text in said["remarks"])


def test_settings_reach_the_attack(run, files):
    words = given(files, "singling-out", "plain.json", *others(files))
    code, out, _ = run(*words, "--set", "conditions=univariate", "--set", "columns=features", "--json")
    assert code == 0 and json.loads(out)["attack"] == "singling-out (univariate)"
    words = given(files, "attribute-inference", "plain.json", *others(files))
    code, out, _ = run(*words, "--set", "secret=ill,income", "--set", "tolerance=0.2", "--json")
    assert code == 0 and "income: members" in json.loads(out)["detail"]


def test_the_help_lists_every_attack(run):
    code, out, _ = run("attack", "--help")
    assert code == 0
    assert all(name in out for name in registry.attacks())
    assert "Example" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("burglary", "plain.json"), "NAME must be one of"),
        (("linkage", "plain.json", "--split", 2), "--split must be a share"),
        (("linkage", "plain.json"), "--control"),
        (("linkage", "nothing.json", "--split", 0.5), "No file"),
        (("linkage", "people.toml", "--split", 0.5), "neither JSON nor a table"),
        (("averaging", "plain.json", "--split", 0.5), "Give a saved protector"),
        (("linkage", "plain.json", "--split", 0.5, "--set", "k=3"), "--set takes NAME=VALUE"),
        (("linkage", "plain.json", "--split", 0.5, "--set", "adversary"), "--set takes NAME=VALUE"),
        (("linkage", "plain.json", "--split", 0.5, "--set", "adversary=police"), "--set adversary must be"),
        (("membership", "plain.json", "--split", 0.5, "--set", "fpr=7"), "--set fpr must be"),
        (("linkage", "asked.csv", "--split", 0.5, "--set", "random_state=1"), "--set takes NAME=VALUE"),
    ],
)
def test_errors_name_flags(run, files, words, said):
    name, what, *more = words
    code, _, err = run(*given(files, name, what, *more))
    assert code == 2 and said in err, err
    assert "Traceback" not in err


def test_controls_who_are_members_are_refused(run, files):
    code, _, err = run(*given(files, "linkage", "plain.json"), "--control", files / "people.csv")
    assert code == 2 and err.startswith("countervail: --control must hold people who are not in the table")


def test_no_damaged_file_makes_it_crash(run, files, tmp_path):
    whole = json.loads((files / "plain.json").read_text(encoding="utf-8"))
    damaged = [
        {**whole, "counterfactuals": {n: [None] * len(v) for n, v in whole["counterfactuals"].items()}},
        {**whole, "counterfactuals": {**whole["counterfactuals"], "city": [1] * len(whole["status"])}},
        {**whole, "status": ["no_counterfactual"] * len(whole["status"])},
        {**whole, "own": [[True] * len(whole["counterfactuals"])] * len(whole["status"])},
        {"kind": "explanations"},
        [],
    ]
    for i, data in enumerate(damaged):
        path = tmp_path / f"{i}.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        for name in ("singling-out", "attribute-inference", "membership", "reidentification"):
            people = ("--schema", files / "people.toml", "--against", files / "people.csv")
            code, _, err = run("attack", name, path, *people, *others(files), "--json")
            assert code in (0, 2), (i, name, err)
            assert "Traceback" not in err
