"""countervail audit and verify, from files to an exit code."""

import json
from xml.etree import ElementTree

import pytest

import countervail as cv
from countervail.core.files.schema_file import write_schema
from countervail.testing import small_model


@pytest.fixture(scope="module")
def files(halves, plain, tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    members, others = halves
    members.frame.to_csv(folder / "people.csv", index=False)
    others.frame.to_csv(folder / "others.csv", index=False)
    write_schema(members.schema, folder / "people.toml")
    asked = others.features.iloc[:100]
    (folder / "plain.json").write_text(plain.explain(asked).to_json())
    (folder / "private.json").write_text(cv.CFK(k=10).fit(members, small_model).explain(asked).to_json())
    cv.Mondrian(k=10).fit(members).protect(members).write(folder / "public.csv")
    return folder


def words(files, what, *more):
    people = ["--schema", files / "people.toml", "--against", files / "people.csv", "--control", files / "others.csv"]
    return ["audit", files / what, *people, "--jobs", "1", *more]


def test_explanations_are_audited_into_every_form_of_dossier(run, files, tmp_path):
    outputs = [tmp_path / f"d.{ending}" for ending in ("json", "html", "pdf")]
    code, out, _ = run(*words(files, "plain.json", "--attack", "linkage", *(w for o in outputs for w in ("-o", o))))
    assert code == 0 and "Verdict: reject" in out
    assert all(o.stat().st_size > 1000 for o in outputs)
    code, out, _ = run("verify", outputs[0], "--schema", files / "people.toml")
    assert code == 0 and "The dossier holds: reject" in out
    data = json.loads(outputs[0].read_text())
    data["verdict"] = "release"
    outputs[0].write_text(json.dumps(data))
    code, out, _ = run("verify", outputs[0], "--json")
    assert code == 1 and json.loads(out)["holds"] is False


def test_a_dossier_is_about_one_file_and_says_so(run, files, tmp_path):
    dossier, other = tmp_path / "d.json", tmp_path / "other.csv"
    assert run(*words(files, "public.csv", "--attack", "linkage", "-o", dossier))[0] == 0
    assert json.loads(dossier.read_text())["provenance"]["file"]["name"] == "public.csv"
    assert run("verify", dossier, "--file", files / "public.csv")[0] == 0
    other.write_text((files / "public.csv").read_text() + "\n")
    code, out, _ = run("verify", dossier, "--file", other)
    assert code == 1 and "not about 'other.csv'" in out
    assert run("verify", dossier, "--file", tmp_path / "none.csv")[0] == 2


def test_a_saved_protector_is_named_and_not_digested(run, files, halves, tmp_path):
    saved, dossier = tmp_path / "mondrian.json", tmp_path / "d.json"
    cv.Mondrian(k=10).fit(halves[0]).save(saved)
    assert run(*words(files, saved, "--attack", "linkage", "-o", dossier))[0] == 0
    assert json.loads(dossier.read_text())["provenance"]["file"] == {"name": "mondrian.json"}
    code, out, _ = run("verify", dossier, "--file", saved)
    assert code == 1 and "permits no file" in out


def test_what_must_not_leave_is_named_and_not_digested(run, files, tmp_path):
    # Whoever knows all of a file but one value could try values until the digest is right.
    dossier = tmp_path / "d.json"
    assert run(*words(files, "plain.json", "--attack", "linkage", "-o", dossier))[0] == 0
    found = json.loads(dossier.read_text())
    assert found["verdict"] == "reject" and found["provenance"]["file"] == {"name": "plain.json"}
    code, out, _ = run("verify", dossier, "--file", files / "plain.json")
    assert code == 1 and "It permits no file to leave: its verdict is reject." in out


def test_gates_close_with_three_and_say_why(run, files, tmp_path):
    appetite, report = tmp_path / "appetite.toml", tmp_path / "gates.xml"
    appetite.write_text(cv.Appetite.example())
    more = ["--attack", "linkage", "--fail-if", "linkage.excess.upper > 0.05", "--junit", report]
    code, _, err = run(*words(files, "plain.json", *more, "--appetite", appetite))
    assert code == 3 and "Gate closed: linkage.excess.upper > 0.05" in err
    assert ElementTree.parse(report).getroot().attrib["failures"] == "2"
    code, out, _ = run(*words(files, "private.json", *more, "--json"))
    assert code == 0 and json.loads(out)["gates"] == [{"gate": more[3], "passed": True, "why": ""}]


def test_a_gate_closes_where_the_time_is_up(run, files, tmp_path):
    appetite, report = tmp_path / "appetite.toml", tmp_path / "gates.xml"
    appetite.write_text(cv.Appetite.example())
    code, _, err = run(*words(files, "private.json", "--appetite", appetite, "--budget", 0.01, "--junit", report))
    assert code == 3 and "Gate closed: the audit is valid" in err and "the time was up" in err
    assert ElementTree.parse(report).getroot().attrib["failures"] == "1"


def test_a_baseline_holds_later_audits_to_it(run, files, tmp_path):
    before = tmp_path / "before.json"
    assert run(*words(files, "private.json", "--attack", "linkage", "-o", before))[0] == 0
    assert run(*words(files, "private.json", "--attack", "linkage", "--baseline", before))[0] == 0
    assert run(*words(files, "plain.json", "--attack", "linkage", "--baseline", before))[0] == 3


def test_a_published_table_is_audited(run, files):
    code, out, _ = run(*words(files, "public.csv", "--attack", "linkage", "--attack", "singling-out"))
    assert code == 0 and "table" in out


@pytest.mark.parametrize(
    "more, says",
    [
        (["--fail-if", "nonsense"], "--fail-if"),
        (["--budget", "soon"], "'5 min'"),
        (["--attack", "tickle"], "linkage"),
        (["-o", "dossier.doc"], ".html"),
        (["--appetite", "none.toml"], "--example-appetite"),
        (["--baseline", "none.json"], "countervail audit"),
    ],
)
def test_wrong_wishes_are_refused_in_a_line(run, files, more, says):
    code, _, err = run(*words(files, "plain.json", *more))
    assert code == 2 and says in err and "Traceback" not in err


def test_files_that_are_nothing_to_audit_are_refused(run, files, tmp_path):
    (tmp_path / "x.json").write_text("[")
    (tmp_path / "y.csv").write_text("a,b\n1,2\n")
    for what in (tmp_path / "x.json", tmp_path / "y.csv", tmp_path / "none.json"):
        code, _, err = run(*words(files, what))
        assert code == 2 and "Traceback" not in err
    assert run("audit", files / "plain.json")[0] == 2


def test_the_example_appetite_is_printed(run, tmp_path):
    code, out, _ = run("audit", "--example-appetite")
    assert code == 0
    (tmp_path / "a.toml").write_text(out)
    assert cv.Appetite.read(tmp_path / "a.toml") == cv.Appetite.default()


def test_protections_are_compared_in_several_forms_and_in_the_words_of_the_command_line(run, files, tmp_path):
    outputs, schema = (tmp_path / "c.html", tmp_path / "c.json"), tmp_path / "s.toml"
    lines = (files / "people.toml").read_text().splitlines()
    schema.write_text("\n".join(line for line in lines if not line.startswith("domain")))
    given = ("-s", schema, "--answers", 20, "-o", outputs[0], "-o", outputs[1])
    code, out, _ = run("compare", files / "people.csv", *given)
    assert code == 0 and all(o.stat().st_size for o in outputs)
    assert "CFK on Mondrian's classes, k=10" in out and "was not tried" in out
    assert "Table.from_frame" not in out + outputs[0].read_text() + outputs[1].read_text()
    assert max(map(len, out[: out.index("was not tried")].splitlines()[:-1])) < 250


@pytest.mark.parametrize(
    "words", [("risk", "p.csv", "-o", "a.html", "--output", "b.html"), ("check", "p.csv", "--k=2", "--k", "5")]
)
def test_what_is_said_twice_is_refused_where_one_thing_is_asked_for(run, words):
    code, _, err = run(*words, "-s", "s.toml")
    assert code == 2 and "was given 2 times" in err
