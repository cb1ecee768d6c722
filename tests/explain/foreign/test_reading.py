"""Pairs, files and arrays; what is encoded comes back as it was, and what cannot be read is said or refused."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import countervail as cv
from countervail import registry
from countervail.attack import ReleaseAttack, SetAttack
from countervail.core.files.frames import write_frame
from countervail.core.files.schema_file import write_schema
from countervail.testing import small_model, small_table

TABLE = small_table(120)
ASKED = small_table(8, seed=1).features
SECRET = "somebody's cell"
RECORDS = TABLE.features.iloc[20:28].reset_index(drop=True)


def text(frame):
    return frame.astype(str).to_numpy().tolist()


def read(*source, table=TABLE, **given):
    return cv.read_explanations(source if len(source) == 2 else source[0], table, **given)


def test_rows_belong_together_by_place_by_index_or_by_a_column():
    e = read(ASKED, RECORDS)
    assert e.query.tolist() == list(range(8)) and text(e.counterfactuals) == text(RECORDS) and e.own is None
    labelled = ASKED.set_axis(list("abcdefgh"))
    twice = RECORDS.iloc[:4].set_axis(["c", "a", "c", "h"])
    e = read(labelled, twice)
    assert e.query.tolist() == [0, 1, 2, 2, 3, 4, 5, 6, 7]
    assert text(e.counterfactuals[e.found]) == text(RECORDS.iloc[[1, 0, 2, 3]])
    named = twice.assign(who=list("cach")).reset_index(drop=True)
    for asked in (labelled, ASKED.assign(who=list("abcdefgh"))):
        assert read(asked, named, query="who").query.tolist() == e.query.tolist()
    assert read(ASKED, RECORDS.iloc[:4], query=[2, 0, 2, 7]).query.tolist() == e.query.tolist()
    assert read(ASKED, RECORDS.iloc[:4].assign(query=[2, 0, 2, 7])).query.tolist() == e.query.tolist()
    one = read(ASKED.iloc[[3]], RECORDS.iloc[:4])
    assert one.query.tolist() == [0] * 4


def test_lists_and_cubes_hold_the_answers_to_each_row():
    codes, undo = _codes(ASKED), _undo()
    several = [_codes(RECORDS.iloc[:2]), None, _codes(RECORDS.iloc[2:3]), *[None] * 5]
    e = read(several, factuals=codes, decode=undo)
    assert e.query.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7] and e.found.sum() == 3
    cube = np.stack([_codes(RECORDS), _codes(RECORDS)], axis=1)
    e = read(cube, factuals=codes, decode=undo)
    assert e.query.tolist() == np.repeat(range(8), 2).tolist()
    assert text(e.counterfactuals.iloc[::2]) == text(RECORDS)
    few = [row.tolist() for row in codes[:1]]
    assert text(read(few, few, decode=undo).counterfactuals) == text(ASKED.iloc[:1])


def test_objects_of_cel_and_frames_of_carla_by_their_documented_shape():
    """Neither installs beside a Python of today: made-up rows in the shape that their documentation gives."""
    found = SimpleNamespace(x_cfs=_codes(RECORDS), x_origs=_codes(ASKED), y_origs=[0] * 8, cf_group_ids=[1] * 8)
    assert text(read(found, decode=_undo()).counterfactuals) == text(RECORDS)
    with pytest.raises(cv.SchemaError, match="7 answers to 8 rows"):
        read(SimpleNamespace(x_cfs=_codes(RECORDS)[:7], x_origs=_codes(ASKED)), decode=_undo())
    low, span = TABLE.frame[["age", "income"]].min(), np.ptp(TABLE.frame[["age", "income"]].to_numpy(), axis=0)

    def carla(frame):  # numbers from 0 to 1; one column for two labels, otherwise one for each; equal index
        wide = pd.get_dummies(frame.astype({"city": "category", "level": "category"}), columns=["city", "level"])
        scaled = (frame[["age", "income"]] - low) / span
        return wide.drop(columns="ill").astype(float).assign(**scaled, ill_yes=(frame["ill"] == "yes").astype(float))

    answers = carla(RECORDS).set_axis(ASKED.index)
    answers.iloc[3] = np.nan
    inverse = [lambda rows: rows.assign(**(rows[["age", "income"]] * span + low)), "one-hot"]
    e = read(carla(ASKED), answers, decode=inverse)
    assert text(e.factuals) == text(ASKED) and text(e.counterfactuals[e.found]) == text(RECORDS.drop(index=3))
    assert e.status.tolist()[3] == "no_counterfactual"


def test_dates_come_as_texts_or_as_days():
    born = [f"19{70 + i}-0{1 + i}-15" for i in range(8)]
    table = cv.Table.from_frame(
        pd.DataFrame({"born": born, "ok": ["yes", "no"] * 4}),
        schema=cv.Schema((cv.Column("born", "date", "quasi"), cv.Column("ok", role="target")), ("yes",)),
    )
    asked, found = pd.DataFrame({"born": ["1969-12-24"]}), pd.DataFrame({"born": [born[3]]})
    days = table.frame["born"].iloc[[3]].reset_index(drop=True)
    for answers in (found, days.to_frame()):
        e = read(asked if answers is found else pd.DataFrame({"born": [-8]}), answers, table=table)
        assert e.counterfactuals["born"].tolist() == days.tolist() and e.regions.count(table.frame).tolist() == [1]


def test_rows_of_nothing_are_no_counterfactuals():
    gone = RECORDS.astype(object)
    gone.iloc[5] = None
    e = read(ASKED, gone)
    assert e.status.tolist() == ["found"] * 5 + ["no_counterfactual"] + ["found"] * 2
    assert text(e.counterfactuals[e.found]) == text(RECORDS.drop(index=5))


def test_every_attack_on_releases_takes_them():
    """Whole records are found; what fits nobody is not."""
    people, others = TABLE.take(range(60)), TABLE.take(range(60, 120))
    e = read(ASKED, RECORDS, table=people)
    kinds = [kind for kind in registry.attacks().values() if issubclass(kind, (ReleaseAttack, SetAttack))]
    kinds = [kind for kind in kinds if not kind.tables_only]
    assert len(kinds) > 1
    for kind in kinds:
        assert kind().set_params(n_targets=10).run(e, people, control=others).members.n >= 1
    assert cv.attack.Linkage().run(e, people, control=others).members.value > 0


def test_files_are_read_like_frames(tmp_path, run):
    write_frame(ASKED, tmp_path / "asked.csv")
    write_frame(RECORDS.assign(query=range(8)), tmp_path / "found.csv")
    ASKED.set_axis(range(10, 18)).to_csv(tmp_path / "asked_index.csv")
    RECORDS.iloc[:3].set_axis([12, 10, 12]).to_csv(tmp_path / "found_index.csv")
    e = read(tmp_path / "asked.csv", str(tmp_path / "found.csv"))
    assert text(e.counterfactuals) == text(RECORDS) and dict(e.factuals.dtypes) == dict(ASKED.dtypes)
    assert read(tmp_path / "asked_index.csv", tmp_path / "found_index.csv").query[:4].tolist() == [0, 1, 2, 2]
    np.save(tmp_path / "found.npy", _codes(RECORDS))
    assert text(read(_codes(ASKED), tmp_path / "found.npy", decode=_undo()).counterfactuals) == text(RECORDS)
    write_frame(TABLE.frame, tmp_path / "people.csv")
    write_schema(TABLE.schema, tmp_path / "people.toml")
    against = ("--against", tmp_path / "people.csv", "-s", tmp_path / "people.toml", "--k", 5, "--json")
    code, out, err = run("check", tmp_path / "found.csv", *against, "--asked", tmp_path / "asked.csv")
    said = json.loads(out)
    assert code == 1 and said["answers"] == 8 and said["caveats"] == list(e.caveats), err
    assert "another tool" in said["promise"]
    code, _, err = run("check", tmp_path / "found.csv", *against)
    assert code == 2 and "--asked" in err


def test_what_we_wrote_is_read_back_with_its_promise():
    ours = cv.CFK(k=5).fit(TABLE, small_model).explain(ASKED)
    again = read(ours.to_json())
    assert again.guarantee == ours.guarantee and again.audit is TABLE
    assert again.regions.count(TABLE.frame).tolist() == ours.regions.count(TABLE.frame).tolist()
    assert read(ours.without_audit()).audit is TABLE


def test_unchanged_values_are_the_askers_own_where_that_is_said():
    mixed = ASKED.assign(age=RECORDS["age"], income=RECORDS["income"])
    unchanged = read(ASKED, mixed, own="unchanged")
    plain = np.array(text(ASKED)) == np.array(text(mixed))
    assert (unchanged.own == plain).all() and plain.any() and not plain.all()
    some = read(ASKED, mixed, own=["city"])
    names = list(mixed.columns)
    assert some.own[:, names.index("city")].all() and some.own.sum() == 8
    assert (unchanged.regions.count(TABLE.frame) >= read(ASKED, mixed).regions.count(TABLE.frame)).all()


def test_what_cannot_be_read_says_nothing_and_is_counted():
    column = next(c.name for c in TABLE.schema if c.type == "categorical" and c.values is not None)
    strange = RECORDS.astype({column: object})
    strange.loc[2, column] = "Atlantis"
    e = read(ASKED, strange)
    assert e.own.sum() == 1 and e.own[2, list(RECORDS.columns).index(column)] and pd.isna(e.counterfactuals[column][2])
    assert any(c.startswith(f"1 counterfactual value(s) of '{column}'") for c in e.caveats)
    assert not any("Atlantis" in c for c in e.caveats)
    without = read(ASKED, RECORDS.drop(columns=[column]))
    assert without.own[:, list(RECORDS.columns).index(column)].all() and text(
        without.counterfactuals[[column]]
    ) == text(ASKED[[column]])
    assert any(f"lack columns of the table, ['{column}']" in c for c in without.caveats)
    extra = read(ASKED, RECORDS.assign(loss=0.5))
    assert any("were left out: ['loss']" in c for c in extra.caveats)
    far = read(ASKED, RECORDS.assign(age=RECORDS["age"] + np.array([0, 0.25, 1000, 0, 0, 0, 0, 0])))
    low, high = TABLE.schema["age"].domain[:2]
    assert far.counterfactuals["age"][2] == high and low <= far.counterfactuals["age"][1] == RECORDS["age"][1]
    assert sum("of 'age' lie" in c for c in far.caveats) == 2


def _codes(frame):
    """Numbers as they are, labels as their places among all that the table knows."""
    columns = []
    for n in frame.columns:
        known = _known(n)
        columns.append(frame[n].astype(float) if known is None else [float(known.index(v)) for v in frame[n]])
    return np.column_stack(columns)


def _known(name):
    column = TABLE.schema[name]
    if column.type == "numeric":
        return None
    return list(column.values or sorted(TABLE.frame[name].unique().tolist()))


def _undo():
    return {n: _known(n) for n in TABLE.schema.features if _known(n) is not None}


@given(seed=st.integers(0, 2**20), n=st.integers(1, 12), scale=st.sampled_from(["codes", "one-hot", "standard"]))
@settings(max_examples=settings().max_examples // 5)
def test_what_was_encoded_comes_back_as_it_was(seed, n, scale):
    rng = np.random.default_rng(seed)
    asked = small_table(12, seed=2).features.iloc[:n]
    found = TABLE.features.iloc[rng.integers(0, len(TABLE), 2 * n)].reset_index(drop=True)
    query = rng.integers(0, n, 2 * n)
    if scale == "codes":
        pair, decode = (_codes(asked), _codes(found)), _undo()
    else:
        labels = list(_undo())
        wide = [
            pd.get_dummies(f.astype(dict.fromkeys(labels, "category")), columns=labels, dtype=float)
            for f in (asked, found)
        ]
        pair, decode = tuple(w.sample(frac=1, axis=1, random_state=seed % 1000) for w in wide), "one-hot"
        if scale == "standard":
            numbers = [n for n in TABLE.schema.features if n not in labels]
            mean, spread = TABLE.frame[numbers].mean(), TABLE.frame[numbers].std()
            pair = tuple(w.assign(**((w[numbers] - mean) / spread)) for w in pair)
            decode = [lambda w: w.assign(**(w[numbers] * spread + mean)), "one-hot"]
    e = cv.read_explanations(pair, TABLE, query=query.tolist(), decode=decode)
    order = np.argsort(query, kind="stable")
    assert text(e.counterfactuals[e.found]) == text(found.iloc[order]) and e.query[e.found].tolist() == sorted(query)
    assert text(e.factuals) == text(asked.iloc[e.query]) and e.own is None


WRONG = {
    "counts": (lambda: read(ASKED, RECORDS.iloc[:3]), "3 counterfactuals to 8 factuals"),
    "a lone file": (lambda: read(RECORDS), "'factuals' parameter .* frames does not hold them"),
    "a triple": (lambda: cv.read_explanations((ASKED, RECORDS, RECORDS), TABLE), "a pair"),
    "both": (lambda: read(ASKED, RECORDS, factuals=ASKED), "None beside a pair"),
    "no table": (lambda: read(ASKED, RECORDS, table=TABLE.frame), "'table' parameter"),
    "own": (lambda: read(ASKED, RECORDS, own="all"), "'own' parameter"),
    "query": (lambda: read(ASKED, RECORDS, query="who"), "'query' parameter"),
    "queries": (lambda: read(ASKED, RECORDS, query=[9] * 8), "'query' parameter .* from 0 to 7"),
    "strangers": (
        lambda: read(ASKED, RECORDS.assign(q=99), query="q"),
        "8 of 8 counterfactuals .* none of the factuals",
    ),
    "nobody asked": (lambda: read(ASKED.iloc[:0], RECORDS), "factuals .* are empty"),
    "other columns": (lambda: read(ASKED, RECORDS.add_prefix("x")), "lack these columns"),
    "scaled": (
        lambda: read(ASKED.assign(income=np.linspace(0.1, 0.9, 8)), RECORDS),
        "'income' in the factuals .* scaled",
    ),
    "scaled answers": (
        lambda: read(ASKED, RECORDS.assign(income=np.linspace(0.1, 0.9, 8))),
        "'income' in the counterf",
    ),
    "codes": (lambda: read(ASKED.assign(city=range(8)), RECORDS.assign(city=range(8))), "'city' .* encoded"),
    "texts": (lambda: read(ASKED.assign(age=SECRET), RECORDS.assign(age=SECRET)), "Nothing in column 'age'"),
    "lists": (lambda: read(ASKED, RECORDS.assign(city=[[SECRET]] * 8)), "compound"),
    "width": (lambda: read(np.ones((8, 3)), np.ones((8, 3))), "3 columns without names"),
    "names": (lambda: read(np.ones((8, 3)), np.ones((8, 3)), columns=["age"]), "'columns' parameter"),
    "ragged": (lambda: read(ASKED, [[1, 2], [1]]), "different lengths"),
    "decode": (lambda: read(ASKED, RECORDS, decode="base64"), "'decode' parameter"),
    "decode type": (lambda: read(ASKED, RECORDS, decode=3), "'decode' parameter .* Got 'int'"),
    "decode names": (lambda: read(ASKED, RECORDS, decode={"town": ["a"]}), "'decode' parameter .* Got .'town'"),
    "decode fails": (lambda: read(ASKED, RECORDS, decode=lambda rows: rows[SECRET]), "failed with KeyError"),
    "decode drops": (lambda: read(ASKED, RECORDS, decode=lambda rows: rows.iloc[:1]), "gives 8 rows"),
    "labels": (lambda: read(ASKED, RECORDS, labels=["never"]), "'labels' parameter"),
    "an object": (lambda: read(object()), "'source' parameter"),
    "no JSON": (lambda: read("{"), "no explanations"),
    "other JSON": (lambda: read('{"a": 1}'), "no explanations"),
    "damaged DiCE": (lambda: read('{"cfs_list": [], "metadata": {"version": "2.0"}}'), "damaged"),
    "future DiCE": (lambda: read('{"cfs_list": [], "metadata": {"version": "9.0"}}'), "version 1.0 and 2.0"),
    "damaged Alibi": (lambda: read('{"meta": {"name": "CounterfactualProto"}, "data": {}}'), "damaged"),
    "other Alibi": (lambda: read('{"meta": {"name": "AnchorTabular"}, "data": {}}'), "another kind"),
    "no file": (lambda: read("nowhere.json"), "No file of explanations"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_inputs_are_refused_by_name(name):
    call, words = WRONG[name]
    with pytest.raises(cv.CountervailError, match=words) as error:
        call()
    assert SECRET not in str(error.value)


def test_empty_files_are_refused(tmp_path):
    for name, content in (("a.csv", ""), ("a.json", ""), ("a.npy", "x")):
        (tmp_path / name).write_text(content, encoding="utf-8")
        with pytest.raises(cv.SchemaError):
            read(ASKED, tmp_path / name)
    (tmp_path / "b.csv").write_text(",".join(ASKED.columns) + "\n", encoding="utf-8")
    assert not read(ASKED.iloc[[0]], tmp_path / "b.csv").found.any()
