"""Two worlds with the draw fixed: whatever the table holds, all that leaves is the same.

The noise is replaced by one that does not look at what it is added to. So anything that differs between worlds has
passed it by.
"""

import pickle
import warnings

import pytest
from dp_worlds import AS_MANY, EXPLAINERS, FEWER, IDS, MANY, ONE_DRAW, ROWS, fix_chance, fix_the_draw, told

import countervail as cv
from countervail.core.rng import generator
from countervail.model import load_model, save_model
from countervail.testing import small_model


@pytest.fixture
def fixed(monkeypatch):
    """No noise looks at a record."""
    fix_the_draw(monkeypatch)


def leaves(made, table, tmp_path, model=small_model):
    """All that leaves a fit, warnings included; with one draw, what is kept of it as well."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        protector = made().fit(table, model)
        found = told(protector.explain(ROWS)) + told(protector.explain(ROWS.features.iloc[0]))
    said = [str(w.message) for w in warned]
    kept = ()
    if isinstance(protector, ONE_DRAW):
        kept += told(pickle.loads(pickle.dumps(protector)).explain(ROWS))
    if isinstance(protector, cv.PrivateSynthetic):
        protector.save(tmp_path / "private.json")
        release = protector.protect()
        frame = protector.labelled().frame
        kept += ((tmp_path / "private.json").read_text(), release.to_json(), repr(release), frame.to_csv())
    return (*found, *kept, said, repr(protector), str(protector.guarantee()))


@pytest.mark.parametrize("made", EXPLAINERS.values(), ids=EXPLAINERS)
def test_nothing_that_leaves_depends_on_the_table_but_through_the_draw(fixed, monkeypatch, tmp_path, made):
    fix_chance(monkeypatch)
    first = leaves(made, MANY, tmp_path)
    worlds = AS_MANY if isinstance(made(), cv.DPTableExplainer) else [*AS_MANY, *FEWER]  # there their number is public
    for other in worlds:
        assert leaves(made, other(), tmp_path) == first, other


@pytest.mark.parametrize("other", AS_MANY, ids=IDS[: len(AS_MANY)])
def test_a_noisy_table_is_the_draw_and_nothing_else(fixed, monkeypatch, other):
    monkeypatch.setattr("countervail.core.rng.os.urandom", lambda n: generator(5).bytes(n))
    seen = []
    for table in (MANY, other()):
        protector = cv.DPTable(1.0).fit(table)
        release = protector.protect()
        kept = pickle.loads(pickle.dumps(protector)).protect().to_json()
        frame = release.to_frame()
        seen.append((release.to_json(), frame.to_csv(), str(frame.dtypes), repr(release), repr(release.caveats), kept))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("other", [*AS_MANY, *FEWER], ids=IDS)
def test_a_private_model_is_the_draw_and_nothing_else(fixed, tmp_path, other):
    seen = []
    for table in (MANY, other()):
        model = cv.train_private_logistic(table, 1.0)
        save_model(model, tmp_path / "model.skops")
        again = load_model(tmp_path / "model.skops")
        scores = model.predict_proba(ROWS.features).tolist()
        seen.append((scores, repr(model), model.digest, repr(model.promise), repr(vars(model)), repr(vars(again))))
    assert seen[0] == seen[1]
