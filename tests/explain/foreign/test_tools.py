"""Real outputs of other tools, read without these tools.

Source of the recordings: DiCE 0.12, Alibi 0.9.6, cfnow 0.0.6 and NICEx 0.2.3, run by the scripts in `tests/golden` on
the bundled German credit rows.
"""

import gzip
import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import countervail as cv

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
LABELS = ["bad", "good"]


def text(frame):
    return frame.astype(str).to_numpy().tolist()


def asked(everybody, record):
    return everybody.features.iloc[record["rows"]].reset_index(drop=True)


def test_dice_json_is_read_cell_by_cell(recorded, everybody, people):
    record = recorded["dice"]
    for method in ("kdtree", "random", "genetic"):
        written = json.loads(record["outputs"][method])
        e = cv.read_explanations(record["outputs"][method], people, labels=LABELS)
        assert e.found.all() and e.query.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
        assert text(e.factuals) == text(asked(everybody, record).iloc[e.query])
        cells = [[str(v) for v in row] for part in written["cfs_list"] for row in part]
        shown = e.counterfactuals.assign(decision=e.after.map(LABELS.index))
        assert text(shown) == cells
        assert dict(e.counterfactuals.dtypes) == dict(people.features.dtypes)
        assert e.provenance["explainer"] == "DiCE JSON 2.0" and isinstance(e.guarantee, cv.NoGuarantee)


def test_dice_versions_and_objects_say_the_same(recorded, people):
    outputs = recorded["dice"]["outputs"]
    frames = [{n: part and pd.DataFrame(**part) for n, part in one.items()} for one in outputs["objects"]]
    objects = [SimpleNamespace(data_interface=SimpleNamespace(outcome_name="class"), **one) for one in frames]
    new, old, whole, parts = (
        cv.read_explanations(source, people, labels=LABELS)
        for source in (outputs["kdtree"], outputs["version 1"], SimpleNamespace(cf_examples_list=objects), objects)
    )
    for e in (old, whole, parts):
        assert text(e.counterfactuals) == text(new.counterfactuals) and text(e.factuals) == text(new.factuals)
        assert e.after.tolist() == new.after.tolist() and e.before.tolist() == new.before.tolist() == ["bad"] * 8
    assert any("before it reset" in c for c in whole.caveats)


def test_who_got_nothing_is_there_and_who_got_the_same_decision_is_said(recorded, people):
    e = cv.read_explanations(recorded["dice"]["outputs"]["some without"], people, labels=LABELS)
    assert e.status.tolist() == ["found", "found", "found", "no_counterfactual"]
    assert e.counterfactuals.iloc[3].isna().all() and e.after[3] is None and e.after[0] == "bad"
    assert any(c.startswith("1 counterfactual(s) lead to the same decision") for c in e.caveats)
    unnamed = cv.read_explanations(recorded["dice"]["outputs"]["some without"], people)
    assert set(unnamed.after) == {None} and any("labels=" in c for c in unnamed.caveats)
    told = cv.read_explanations(
        recorded["dice"]["outputs"]["some without"], people, model=lambda rows: np.repeat("good", len(rows))
    )
    assert told.after.tolist() == ["good", "good", "good", None] and set(told.before) == {"good"}


def test_linkage_finds_whom_the_search_tree_showed(recorded, people, strangers):
    """DiCE's tree answers with records, and puts the asker's own numbers back where it can."""
    output = recorded["dice"]["outputs"]["kdtree"]
    numbers = [n for n in people.schema.features if n in recorded["alibi_gradients"]["columns"]]
    plain, precise = (cv.read_explanations(output, people, own=own) for own in ("nothing", numbers))
    quasi, secret = people.schema.names("quasi"), people.schema.names("attribute", "sensitive")
    rows, cells, own = text(people.features), text(precise.counterfactuals), precise.own
    names, found = people.schema.features, set()
    for i, cell in enumerate(cells):  # a plain count, cell by cell
        known = [names.index(n) for n in quasi if not own[i][names.index(n)]]
        fit = [p for p, row in enumerate(rows) if all(row[j] == cell[j] for j in known)]
        said = [names.index(n) for n in secret if not own[i][names.index(n)]]
        found |= {p for p in fit if len(fit) == 1 and all(rows[p][j] == cell[j] for j in said)}
    assert found
    run = cv.attack.Linkage().run
    assert run(precise, people, control=strangers).members.value == pytest.approx(len(found) / len(people))
    assert run(plain, people, control=strangers).members.value == 0  # the asker's numbers were taken for theirs
    assert plain.own is None and any("own='unchanged'" in c for c in plain.caveats)


def test_measures_take_them_and_they_go_through_json(recorded, people):
    e = cv.read_explanations(recorded["dice"]["outputs"]["some without"], people, labels=LABELS)
    for measure in (cv.measure.recourse_cost, cv.measure.sparsity, cv.measure.plausibility):
        figures = measure(e)
        assert np.isnan(figures[3]) and not np.isnan(figures[:3]).any()
    again = cv.read_explanations(e.to_json(), people)
    assert again.audit is people and again.caveats == e.caveats
    assert text(again.counterfactuals[e.found]) == text(e.counterfactuals[e.found])
    assert "approved" in e.to_text() or "refused" in e.to_text()


def test_alibi_batches_come_with_their_rows_and_labels_with_a_mapping(recorded, everybody, people):
    record = recorded["alibi_rl"]
    output = record["outputs"]["CounterfactualRLTabular"]
    with pytest.raises(cv.SchemaError, match=r"'checking_status'.*encoded.*decode="):
        cv.read_explanations(output, people)
    e = cv.read_explanations(output, people, decode=record["labels"], labels=LABELS)
    assert text(e.factuals) == text(asked(everybody, record))
    assert e.before.tolist() == ["bad"] * 4 and e.after.tolist() == ["good"] * 4
    raw = json.loads(output)["data"]["cf"]["X"]
    for j, name in enumerate(people.schema.features):
        known = record["labels"].get(name)
        assert e.counterfactuals[name].astype(str).tolist() == [str(known[r[j]] if known else r[j]) for r in raw]
    as_object = SimpleNamespace(**json.loads(output))
    assert text(cv.read_explanations(as_object, people, decode=record["labels"]).counterfactuals) == text(
        e.counterfactuals
    )


@pytest.mark.parametrize("kind", ["Counterfactual", "CounterfactualProto"])
def test_alibi_gradients_are_read_one_by_one_through_the_inverse_of_their_scale(kind, recorded, everybody, only):
    record = recorded["alibi_gradients"]
    table, names = only(record["columns"]), record["columns"]
    rows = everybody.frame.iloc[record["rows"]][names].astype(float)
    low, high = np.array(record["low"]), np.array(record["high"])
    scaled = ((rows - low) / (high - low)).to_numpy()
    outputs = record["outputs"][kind]
    for factuals, what in ((scaled, "factuals"), (rows, "counterfactuals")):
        with pytest.raises(cv.SchemaError, match=f"'duration' in the {what} .* look scaled"):
            cv.read_explanations(outputs, table, factuals=factuals)
    e = cv.read_explanations(
        outputs, table, factuals=scaled, decode=lambda x: np.asarray(x, dtype=float) * (high - low) + low, labels=LABELS
    )
    assert text(e.factuals) == text(asked(everybody, record)[names]) and e.after.tolist() == ["good"] * 3
    found = np.array([json.loads(t)["data"]["cf"]["X"][0] for t in outputs]) * (high - low) + low
    np.testing.assert_array_equal(e.counterfactuals.astype(float), np.rint(found))
    assert any("'age' lie between" in c for c in e.caveats) and any("passed through ('all')" in c for c in e.caveats)


def test_alibi_says_that_it_found_nothing(recorded, everybody, only):
    record = recorded["alibi_gradients"]
    table, rows = only(record["columns"]), everybody.frame.iloc[record["rows"]]
    e = cv.read_explanations(record["outputs"]["none found"], table, factuals=rows)
    assert e.status.tolist() == ["no_counterfactual"] * 3
    mixed = [record["outputs"]["none found"][0], *record["outputs"]["CounterfactualProto"][1:]]
    low, high = np.array(record["low"]), np.array(record["high"])
    scaled = (rows[record["columns"]].astype(float) - low) / (high - low)
    e = cv.read_explanations(mixed, table, factuals=scaled.to_numpy(), decode=lambda x: x * (high - low) + low)
    assert e.status.tolist() == ["no_counterfactual", "found", "found"]


def test_cfnow_objects_need_their_one_hot_columns_joined(recorded, everybody, only):
    record = recorded["cfnow"]
    found = [
        SimpleNamespace(factual=pd.Series(o["factual"]), cfs=[np.array(v) for v in o["cfs"]], col_names=o["col_names"])
        for o in record["outputs"]["find_tabular"]
    ]
    table = only(["checking_status", "duration", "credit_amount", "savings_status", "age", "housing"])
    with pytest.raises(cv.SchemaError, match=r"one-hot columns.*decode='one-hot'"):
        cv.read_explanations(found, table)
    e = cv.read_explanations(found, table, decode="one-hot")
    assert text(e.factuals) == text(asked(everybody, record)[table.schema.features].iloc[e.query])
    assert e.query.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2] and (cv.measure.sparsity(e) >= 1).all()
    first = record["outputs"]["find_tabular"][0]
    high = {n for n, v in zip(first["col_names"], first["cfs"][0]) if v == 1}
    assert {f"{n}_{e.counterfactuals[n][0]}" for n in ("checking_status", "savings_status", "housing")} == high


def test_arrays_of_nicex_lead_to_the_same_figures_as_our_own_nice(everybody, people, strangers):
    golden = json.loads(gzip.decompress((GOLDEN / "nice_german.json.gz").read_bytes()))
    score = runpy.run_path(str(GOLDEN / "record_nice_german.py"))["score"]

    def codes_of(frame):
        columns = [frame[n].cat.codes if frame[n].dtype == "category" else frame[n] for n in frame.columns]
        return np.column_stack([np.asarray(c, dtype=float) for c in columns])

    features = everybody.features.iloc[golden["queries"]].reset_index(drop=True)
    codes = {c.name: list(everybody.frame[c.name].cat.categories) for c in people.schema if c.type != "numeric"}
    decode = {n: codes[n] for n in people.schema.features if n in codes}
    ours = cv.NICE().fit(people, lambda rows: score(codes_of(rows))).explain(features)
    theirs = cv.read_explanations((codes_of(features), np.array(golden["none"])), people, decode=decode)
    assert text(theirs.counterfactuals) == text(ours.counterfactuals) and text(theirs.factuals) == text(features)
    run = cv.attack.Linkage().run
    assert run(theirs, people, control=strangers).to_dict() == run(ours, people, control=strangers).to_dict()
    assert run(theirs, people, control=strangers).members.value > 0.01


def test_the_guide_runs_on_the_recordings(recorded, everybody, tmp_path, monkeypatch, capsys):
    page = (GOLDEN.parents[1] / "docs" / "guide" / "foreign-explanations.md").read_text(encoding="utf-8")
    golden = json.loads(gzip.decompress((GOLDEN / "nice_german.json.gz").read_bytes()))
    features = everybody.features.iloc[golden["queries"]]
    columns = [features[n].cat.codes if features[n].dtype == "category" else features[n] for n in features.columns]
    written = {
        "dice.json": recorded["dice"]["outputs"]["kdtree"],
        "alibi.json": recorded["alibi_rl"]["outputs"]["CounterfactualRLTabular"],
        "codes.json": json.dumps(recorded["alibi_rl"]["labels"]),
    }
    for name, content in written.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    np.save(tmp_path / "asked.npy", np.column_stack([np.asarray(c, dtype=float) for c in columns]))
    np.save(tmp_path / "nice.npy", np.array(golden["none"]))
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    exec(compile(code, "foreign-explanations", "exec"), {})
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 6 and "members 0 " not in said[2]
    assert said[3].startswith("0 ") and not said[5].startswith("0 ")
