"""Neighbouring worlds and a draw that sees none of them: what tests of leaks, and of the work that is done, share."""

import pickle

import numpy as np
import pandas as pd

import countervail as cv
from countervail.core.rng import generator
from countervail.protect.dp import histograms
from countervail.protect.dp.randomiser import Randomiser
from countervail.protect.dp.synthetic.accounting import NoiseBudget
from countervail.report.explained_page import explained_page
from countervail.report.page import render_page
from countervail.testing import small_table

ROWS = small_table(12, seed=1)
MANY = small_table(300)
N = len(MANY)


def unseen_draw(self, codes, words):
    """Positions that follow from the shape alone."""
    rng = generator(3)
    flat = np.column_stack([rng.integers(0, m, codes[..., 0].size) for m in self.sizes])
    return flat.reshape(codes.shape)


def unseen_counts(exact):
    """Counts that follow from the shape alone, those of single numbers large enough for pairs to be counted."""
    shape = np.shape(exact)
    return np.full(shape, 5_000) if np.size(exact) == 1 else generator(3).integers(0, 3_000, shape)


def fix_the_draw(monkeypatch):
    """No noise looks at a record."""
    monkeypatch.setattr(Randomiser, "draw", unseen_draw)
    monkeypatch.setattr(histograms, "noisy_counts", lambda counts, *rest: unseen_counts(counts))
    monkeypatch.setattr(NoiseBudget, "_drawn", lambda self, exact, far, budget: unseen_counts(exact))
    monkeypatch.setattr(NoiseBudget, "choose", lambda self, scores, budget: 0)


def fix_chance(monkeypatch):
    """Choices of slots and made-up records are free of the table; here they are the same in all worlds."""
    monkeypatch.setattr("countervail.core.rng.secrets.randbits", lambda bits: 7)
    monkeypatch.setattr("countervail.core.rng.os.urandom", lambda n: generator(5).bytes(n))


def world(frame, schema=MANY.schema):
    return cv.Table(frame, schema)


def others():
    """Other people altogether, as many."""
    return small_table(N, seed=9)


def holes():
    frame = MANY.frame.copy()
    frame["income"] = np.nan
    frame.loc[frame.index[:200], "city"] = None
    frame.loc[frame.index[:7], "ill"] = None
    return world(frame)


def alike():
    """One person, as often."""
    return world(pd.concat([MANY.frame.iloc[[0]]] * N))


def refused():
    """Nobody whom the model accepts; of these, nobody with a favourable label but one."""
    frame = MANY.frame.assign(income=0.5, level=pd.Categorical(["low"] * N, MANY.schema["level"].levels, ordered=True))
    return world(frame.assign(ok=["yes"] + ["no"] * (N - 1)))


def outside():
    """What a table would refuse, had it been there when it was made."""
    table = small_table(N, seed=4)
    table.frame.loc[0, "age"], table.frame.loc[1, "income"] = 10**9, -np.inf
    return table


def unlabelled():
    frame = MANY.frame.copy()
    frame.loc[frame.index[1:], "ok"] = None
    return world(frame.assign(ok=frame["ok"].where(frame["ok"].isna(), "yes")))


def turned():
    return world(MANY.frame.iloc[::-1])


AS_MANY = [others, holes, alike, refused, outside, unlabelled, turned]
FEWER = [lambda: small_table(1, seed=4), lambda: small_table(7, seed=5), lambda: small_table(2_000, seed=6)]
IDS = [f.__name__ for f in AS_MANY] + ["one person", "seven people", "two thousand"]
ONE_DRAW = (cv.PrivateSynthetic, cv.PrivateHistograms, cv.DPTableExplainer)
EXPLAINERS = {
    "synthetic": lambda: cv.PrivateSynthetic(1.0, rows=200),
    "synthetic, typical": lambda: cv.PrivateSynthetic(1.0, rows=200, reward="typical", delta=0.0),
    "synthetic, large delta": lambda: cv.PrivateSynthetic(1.0, rows=200, delta=0.01, adjacency="replace-one"),
    "histograms": lambda: cv.PrivateHistograms(1.0, records=50),
    "neighbours": lambda: cv.PrivateNeighbours(1.0, neighbours=4),
    "neighbours, sampled": lambda: cv.PrivateNeighbours(1.0, neighbours=4, pool="sampled", slots=2),
    "neighbours, several": lambda: cv.PrivateNeighbours(1.0, neighbours=4, n_counterfactuals=2, immutable=["age"]),
    "noisy": lambda: cv.NoisyCounterfactual(1.0),
    "noisy, again": lambda: cv.NoisyCounterfactual(1.0, stop=1.0, max_changes=3),
    "table": lambda: cv.DPTableExplainer(1.0),
}


def told(answers):
    """All that an asker may hold of some answers."""
    frame = answers.to_frame()
    parts = (answers.to_json(), answers.to_text(), frame.to_csv(), str(frame.dtypes), repr(answers))
    parts += (
        str(answers.guarantee),
        repr(answers.guarantee.to_dict()),
        repr(answers.caveats),
        repr(answers.provenance),
    )
    held = pickle.dumps(answers)
    return (*parts, answers.to_table().to_csv(), render_page(explained_page(answers)), pickle.loads(held).to_json())
