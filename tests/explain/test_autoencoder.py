"""The reconstruction error, against one-hot codes made column by column and the network asked by scikit-learn."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.encode import Encoder
from countervail.explain.autoencoder import AutoEncoder


def people(seed, holes):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "city": rng.choice(["a", "b", "c"], 60),
            "pay": rng.normal(30, 9, 60),
            "same": 3.0,
            "debt": rng.integers(0, 9, 60).astype(float),
        }
    )
    if holes:
        frame.loc[rng.random(60) < 0.3, "debt"] = np.nan
    return cv.Table.from_frame(frame)


def wide_plainly(frame, table):
    parts = []
    for name in table.frame:
        known, asked = table.frame[name], frame[name]
        if known.dtype.kind in "fi":
            spread = known.max() - known.min()
            parts.append((2 * (asked - known.min()) / (spread or 1.0) - 1).fillna(0.0))
            if known.isna().any():
                parts.append(asked.isna())
        else:
            parts += [asked == level for level in sorted(known.unique())]
    return np.column_stack(parts).astype(float)


@pytest.mark.parametrize("holes", [False, True])
def test_errors_are_those_of_the_network_on_one_hot_codes(holes):
    table, others = people(0, holes), people(1, holes)
    encoder = Encoder.fit(table)
    measure = AutoEncoder(encoder, encoder.encode(table.frame))
    wide = wide_plainly(others.frame, table)
    expected = ((measure._net.predict(wide) - wide) ** 2).mean(axis=1)
    np.testing.assert_allclose(measure(others.frame), expected, rtol=1e-12)
    np.testing.assert_array_equal(measure.errors(encoder.encode(others.frame)), measure(others.frame))


def test_a_label_never_seen_is_none_of_those_known():
    table = people(0, False)
    encoder = Encoder.fit(table)
    measure, stranger = AutoEncoder(encoder, encoder.encode(table.frame)), table.frame.head(1).assign(city="z")
    wide = wide_plainly(stranger, table)
    expected = ((measure._net.predict(wide) - wide) ** 2).mean(axis=1)
    np.testing.assert_allclose(measure(stranger), expected, rtol=1e-12)
