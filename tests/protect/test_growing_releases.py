"""Tables that are released again: who stays, who waits, what is refused, and that releases together keep k."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.files.schema_file import write_schema
from countervail.protect import ClassRoster

PRIVATE = ["ill", "pay"]
MAKERS = {
    "strict": lambda: cv.Mondrian(k=4),
    "names": lambda: cv.Mondrian(k=4, hierarchies={"city": TREE}, labels="hierarchy"),
    "suppress": lambda: cv.Mondrian(k=4, suppress=0.1),
    "relaxed": lambda: cv.Mondrian(k=4, mode="relaxed", random_state=0),
    "centres": lambda: cv.Microaggregation(k=4),
}
TREE = cv.Hierarchy((("a", "north", "*"), ("b", "north", "*"), ("c", "south", "*")), "city")


def people(seed, n=40, start=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "id": [f"p{start + i}" for i in range(n)],
            "age": rng.integers(20, 32, n),
            "city": rng.choice(["a", "b", "c"], n),
            "ill": rng.choice(["x", "y", "z"], n),
            "pay": rng.integers(0, 99, n),
        }
    )


def table(frame):
    roles = {"identifiers": ["id"], "quasi_identifiers": ["age", "city"], "sensitive": ["ill"]}
    return cv.Table.from_frame(frame.reset_index(drop=True), **roles)


def fit(frame, previous=None, make="strict", changed="withdraw"):
    kept = table(frame)
    return MAKERS[make]().fit(kept, previous=previous, changed=changed), kept


def rows(protector):
    """The release in an order of its own."""
    return sorted(map(tuple, protector.protect().to_text_frame().astype(str).to_numpy().tolist()))


def classes_of(protector, kept):
    """Published label by person, None for whoever waits."""
    texts = protector._recall("classes").regions.text()
    return {i: texts[c] if c >= 0 else None for i, c in zip(kept.frame["id"], protector.cell_of_)}


@pytest.mark.parametrize("make", MAKERS)
def test_an_unchanged_table_is_released_as_it_was(make):
    frame = people(1)
    one, first = fit(frame, make=make)
    two, again = fit(frame.sample(frac=1, random_state=3), one.roster_, make)
    assert rows(one) == rows(two) or make == "suppress"  # whoever was left out may be published now
    before, after = classes_of(one, first), classes_of(two, again)
    assert all(after[i] == label for i, label in before.items() if label is not None)
    assert (two.version_, two.roster_.version) == (2, 2)


def test_newcomers_form_classes_of_their_own_once_they_are_k():
    frame = people(1)
    one, first = fit(frame)
    few, kept = fit(pd.concat([frame, people(2, 3, 100)]), one.roster_)
    assert rows(few) == rows(one) and few.protect().suppressed == 3
    assert any("3 row(s) wait" in text for text in few.protect().caveats)
    many, more = fit(pd.concat([frame, people(2, 3, 100), people(3, 9, 200)]), few.roster_)
    assert many.protect().suppressed == 0
    before, after = classes_of(one, first), classes_of(many, more)
    assert all(after[i] == before[i] for i in before)
    new = [c for i, c in zip(more.frame["id"], many.cell_of_) if i not in before]
    assert np.bincount(np.unique(new, return_inverse=True)[1]).min() >= 4
    assert len(kept) == 43


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("what", ["leaves", "moves", "changes"])
def test_a_class_of_which_somebody_leaves_or_changes_leaves_no_more(make, what):
    frame = people(1, 60)
    one, first = fit(frame, make=make)
    who = frame["id"][int(np.flatnonzero(one.cell_of_ >= 0)[0])]
    after = frame.copy()
    at = after.index[after["id"] == who][0]
    if what == "leaves":
        after = after[after["id"] != who]
    else:
        after.loc[at, "age" if what == "moves" else "pay"] = 777
    two, second = fit(after, one.roster_, make)
    was, now = classes_of(one, first), classes_of(two, second)
    mates = {i for i, c in zip(frame["id"], one.cell_of_) if c == one.cell_of_[frame.index[frame["id"] == who][0]]}
    assert all(now[i] is None for i in mates if i in now)
    assert all(now[i] == was[i] for i in now if i not in mates and was[i] is not None)
    three, third = fit(frame, two.roster_, make)  # and it does not come back, whatever comes back
    assert all(classes_of(three, third)[i] is None for i in mates)
    if what == "changes":
        shown, kept = fit(after, one.roster_, make, "publish")
        assert all(classes_of(shown, kept)[i] == was[i] for i in was if was[i] is not None)
        assert 777 in shown.protect().others["pay"].tolist()


@pytest.mark.parametrize("make", [m for m in MAKERS if m != "relaxed"])
@pytest.mark.parametrize("changed", ["withdraw", "publish"])
def test_people_of_a_class_cannot_be_told_apart_by_all_releases_together(make, changed, seeds):
    """The claim of docs/decisions/growing-tables.md, on two worlds: histories are permuted within classes."""
    for seed in seeds(3, 200):
        rng = np.random.default_rng(seed)
        months, frame = [], people(seed, 40)
        for month in range(3):
            if month:
                frame = frame[rng.random(len(frame)) > 0.05].copy()
                some = rng.random(len(frame)) < 0.1
                frame.loc[some, "pay"] = rng.integers(0, 99, int(some.sum()))
                moved = rng.random(len(frame)) < 0.03
                frame.loc[moved, "age"] = rng.integers(20, 32, int(moved.sum()))
                frame = pd.concat([frame, people(seed + 1000 * month, 12, 1000 * month)], ignore_index=True)
            months.append(frame.copy())
        releases, class_of, roster = [], {}, None
        for m, frame in enumerate(months):
            made, kept = fit(frame, roster, make, changed)
            releases.append(rows(made))
            for i, c in zip(kept.frame["id"], made.cell_of_):
                if c >= 0 and i not in class_of:
                    class_of[i] = (m, int(c))
            roster = ClassRoster.from_json(made.roster_.to_json())
        mates = pd.Series(class_of).groupby(pd.Series(class_of)).indices
        swap = {}
        for places in mates.values():
            names = [list(class_of)[p] for p in places]
            swap.update(zip(names, rng.permutation(names)))
        roster = None
        for released, frame in zip(releases, months):
            private = frame.set_index("id")[PRIVATE]
            other = frame.copy()
            for at, i in zip(other.index, other["id"]):
                if swap.get(i) in private.index:
                    other.loc[at, PRIVATE] = private.loc[swap[i]].to_numpy()
            made, kept = fit(other, roster, make, changed)
            assert rows(made) == released and len(kept)
            roster = made.roster_


def test_no_two_releases_single_anybody_out():
    """Private rows that point at people: whoever meets one in two releases has at least k candidates."""
    frame = people(5, 80).assign(pay=range(80))
    one, first = fit(frame)
    two, second = fit(pd.concat([frame.iloc[6:], people(6, 20, 500).assign(pay=range(100, 120))]), one.roster_)
    candidates = {}
    for made in (one, two):
        release = made.protect()
        member = release.regions.covers(frame)  # everybody of the register whom a label fits
        for c, pay in zip(release.groups, release.others["pay"]):
            candidates.setdefault(pay, set(frame["id"])).intersection_update(frame["id"][member[c]])
    assert min(len(c) for pay, c in candidates.items() if pay < 80) >= 4
    again, third = fit(frame.iloc[6:])  # a fit that was told nothing intersects
    assert len(first) == 80 and len(second) == 94 and len(third) == 74 and again.version_ == 1


def roster():
    made, kept = fit(people(1))
    return made.roster_, kept


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (
            lambda t, r: cv.Mondrian(k=4, l=2, sensitive="ill").fit(t, previous=r),
            "'l' parameter of Mondrian must be left",
        ),
        (lambda t, r: cv.Mondrian(k=4, t=0.5, sensitive="ill").fit(t, previous=r), "'t' parameter of Mondrian"),
        (lambda t, r: cv.Mondrian(k=4, ledger=cv.Ledger("x", epsilon=1)).fit(t, previous=r), "'ledger' parameter"),
        (lambda t, r: cv.Mondrian(k=5).fit(t, previous=r), "at most that of the releases before, 4"),
        (
            lambda t, r: cv.Mondrian(k=4).fit(t, previous="march.json"),
            "'previous' parameter of Mondrian must be the ros",
        ),
        (lambda t, r: cv.Mondrian(k=4).fit(t, previous=r, changed="yes"), "'changed' parameter of Mondrian"),
        (lambda t, r: cv.Microaggregation(k=4).fit(t, previous=r), "releases by 'mondrian', not by 'microaggregation'"),
        (lambda t, r: cv.Mondrian(k=4).fit(table(t.frame.assign(more=1)), previous=r), r"columns \['more'\] differ"),
        (
            lambda t, r: cv.Mondrian(k=4).fit(t.with_roles(quasi=["age", "city", "pay"]), previous=r),
            r"\['pay'\] differ",
        ),
        (lambda t, r: cv.Mondrian(k=4).fit(table(t.frame.assign(id=range(40))), previous=r), "Fewer than half"),
        (lambda t, r: cv.Mondrian(k=4).fit(table(t.frame.assign(id="p1")), previous=r), "tell all rows apart"),
        (
            lambda t, r: cv.Mondrian(k=4).fit(table(t.frame.iloc[:24:2]), previous=r),
            "Fewer than half|cannot release this",
        ),
        (lambda t, r: cv.Mondrian(k=4).fit(t, previous=r).protect(t.frame.iloc[:20]), "'rows' parameter of Mondrian"),
        (lambda t, r: cv.Mondrian(k=4).fit(t, previous=r).save("never.json"), "a saved protector would have classes"),
    ],
)
def test_what_cannot_be_promised_is_refused(make, match):
    kept, people_then = roster()
    with pytest.raises(cv.CountervailError, match=match):
        make(people_then, kept)


def test_several_keys_and_no_identifiers_give_no_roster():
    frame = people(1)
    two = cv.Table.from_frame(
        frame.assign(mail=frame["id"] + "@x"), identifiers=["id", "mail"], quasi_identifiers=["age"]
    )
    with pytest.raises(cv.SchemaError, match="could all be it"):
        cv.Mondrian(k=4).fit(two).roster_  # noqa: B018 -- reading it is the test
    none = cv.Table.from_frame(frame.drop(columns="id"), quasi_identifiers=["age"])
    with pytest.raises(cv.SchemaError, match="declares none"):
        cv.Mondrian(k=4).fit(none).roster_  # noqa: B018


def test_a_roster_holds_nobody_and_damage_is_noticed(tmp_path):
    made, kept = fit(people(1), make="centres")
    text = made.roster_.to_json()
    assert not any(f'"{i}"' in text for i in kept.frame["id"])
    made.roster_.write(tmp_path / "r.json")
    assert (tmp_path / "r.json").stat().st_mode & 0o077 == 0
    back = ClassRoster.read(tmp_path / "r.json")
    assert json.loads(back.to_json()) == json.loads((tmp_path / "r.json").read_text())
    data = json.loads(text)
    for field, value in (("k", 0), ("key", "short"), ("group", data["group"][1:]), ("members", []), ("people", ["1"])):
        with pytest.raises(cv.CountervailError):
            ClassRoster.from_json(json.dumps({**data, field: value}))
    with pytest.raises(cv.SchemaError, match="names nobody"):
        ClassRoster.from_json(made.protect().to_json())
    assert "4" in repr(replace(back, k=4))


def test_on_the_command_line(run, tmp_path):
    march, april = people(1, 60), pd.concat([people(1, 60).iloc[1:], people(2, 12, 100)])
    march.to_csv(tmp_path / "march.csv", index=False)
    april.to_csv(tmp_path / "april.csv", index=False)
    write_schema(table(march).schema, tmp_path / "people.toml")

    def release(month, *more, k=4):
        given = (tmp_path / f"{month}.csv", "--schema", tmp_path / "people.toml", "--k", k, "--keep", "pay")
        kept = ("--previous", tmp_path / "people.roster", "-o", tmp_path / "public.csv", "--json")
        return run("anonymize", *given, *kept, *more)

    code, text, _ = release("march")
    assert code == 0 and json.loads(text)["rows"] == 60
    assert (tmp_path / "people.roster").stat().st_mode & 0o077 == 0
    code, text, _ = release("april")
    found = json.loads(text)
    assert code == 0 and found["suppressed"] > 0 and any("leave no more" in note for note in found["notes"])
    assert ClassRoster.read(tmp_path / "people.roster").version == 2
    assert run("check", tmp_path / "public.csv", "--schema", tmp_path / "people.toml", "--k", 4)[0] == 0
    before = (tmp_path / "people.roster").read_bytes()
    for words, k, match in (
        (("--method", "k-common"), 4, "does not take --previous (that is for microaggregation, mondrian)"),
        (("--l", 2, "--sensitive", "ill"), 4, "--l must"),
        ((), 9, "at most that of the releases before"),
    ):
        code, _, error = release("april", *words, k=k)
        assert code == 2 and match in " ".join(error.split())
    code, _, error = run(
        "anonymize",
        tmp_path / "april.csv",
        "--schema",
        tmp_path / "people.toml",
        "--changed",
        "publish",
        "-o",
        tmp_path / "o.csv",
    )
    assert code == 2 and "--changed is for --previous" in error
    assert (tmp_path / "people.roster").read_bytes() == before
