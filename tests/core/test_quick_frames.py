"""Frames that are made in a short way are the frames that pandas makes."""

import gc
import pickle

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core import arrays
from countervail.core.arrays import FramePattern, category_labels
from countervail.core.encode import Encoder
from countervail.testing import small_table


@pytest.mark.parametrize("quick", [True, False])
def test_a_frame_of_blocks_is_the_frame_of_its_columns(quick, monkeypatch):
    if not quick:
        monkeypatch.setattr(arrays, "_OF_BLOCKS", None)
    expected = pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["x", "y"]), "c": [3, 4], "d": [0.5, np.nan]})
    blocks = [
        (np.array([[1, 2], [3, 4]]), np.array([0, 2])),
        (np.array([[0.5, np.nan]]), np.array([3])),
        (expected["b"].array, np.array([1])),
    ]
    made = arrays.frame_of_blocks(blocks, expected.columns, 2)
    pd.testing.assert_frame_equal(made, expected)
    made.loc[0, "a"] = 7
    assert made["a"].tolist() == [7, 2]


@pytest.mark.parametrize("quick", [True, False])
def test_the_arrays_of_columns_stand_in_their_order(quick, monkeypatch):
    if not quick:
        monkeypatch.setattr(arrays, "_ARRAYS", None)
    frame = pd.DataFrame({"b": pd.Categorical(["x"]), "a": [1], "c": [0.5]})
    assert [values[0] for values in arrays.column_arrays(frame)] == ["x", 1, 0.5]
    assert [values.dtype for values in arrays.column_arrays(frame)] == frame.dtypes.tolist()


def drawn(rows, seed):
    """Blocks of numbers, of categories and of strings, in an order that is not that of the columns."""
    rng = np.random.default_rng(seed)
    return [
        (rng.integers(0, 9, (2, rows)), np.array([0, 3])),
        (rng.random((1, rows)), np.array([2])),
        (pd.Categorical.from_codes(rng.integers(-1, 2, rows), ["x", "y"]), np.array([1])),
        (pd.array(rng.choice(["p", "q"], rows), dtype="str"), np.array([4])),
        (np.array([rng.choice(["p", 1, None], rows)], dtype=object), np.array([5])),
    ]


@pytest.mark.parametrize("known", [True, False])
def test_frames_of_one_pattern_are_those_made_one_by_one(known, monkeypatch):
    if not known:  # a pandas that has other insides
        monkeypatch.setattr(arrays, "_like", lambda *_: None.insides)
    pattern, names = FramePattern(), pd.Index(list("abcdef"))
    for seed, rows in enumerate((3, 1, 40, 0)):
        made = pattern.frame(drawn(rows, seed), names, rows)
        if known:
            pd.testing.assert_frame_equal(made, arrays.frame_of_blocks(drawn(rows, seed), names, rows))
        assert made.shape == (rows, 6) and made["b"].dtype == "category"
        made["a"] = 7
        assert made["a"].tolist() == [7] * rows
    assert bool(pattern._held) == known


def test_a_pattern_is_not_kept_with_what_uses_it():
    pattern = FramePattern()
    pattern.frame(drawn(2, 0), pd.Index(list("abcdef")), 2)
    assert pattern._held and pickle.loads(pickle.dumps(pattern))._held is None


def test_labels_of_categories_are_forgotten_with_their_dtype():
    before = len(arrays._CATEGORIES)
    kind = pd.CategoricalDtype(["low", "high"])
    assert category_labels(kind) == ["low", "high"] and category_labels(kind) is category_labels(kind)
    assert category_labels(pd.CategoricalDtype([3, 1])) == [3, 1]
    del kind
    gc.collect()
    assert len(arrays._CATEGORIES) == before


def test_labels_that_are_looked_up_at_once_are_those_of_each_column():
    table = cv.load("german_credit").take(np.arange(60))
    assert Encoder.fit(small_table(60)).labels is None  # words, not categories
    encoder = Encoder.fit(table)
    rows = encoder.encode(table.features)
    slow = Encoder.fit(table)
    assert encoder.labels is not None and encoder.labels.dtype == np.int8
    object.__setattr__(slow, "labels", None)
    for some in (rows, rows[:1], rows[:0], rows[::-1]):
        pd.testing.assert_frame_equal(encoder.decode(some), slow.decode(some))
        assert encoder.decode(some).dtypes.equals(slow.decode(some).dtypes)
    many = pd.DataFrame({"a": [f"v{i}" for i in range(300)], "b": [0, 1] * 150})
    wide = Encoder.fit(cv.Table.from_frame(many, target="b"))  # more categories than fit a byte
    assert wide.labels is None
    assert wide.decode(wide.encode(many[["a"]]))["a"].tolist() == many["a"].tolist()
