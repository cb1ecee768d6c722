"""The appendix of Kassem et al.: how often each encoding of generalised cells is right, its features, its time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.naive_bayes import BernoulliNB

from countervail.attack.differential.encodings import make_specs, parse_encoding, quantiles_before
from countervail.attack.differential.general import ReadRelease, secret_codes
from countervail.core.rng import generator
from countervail.core.stats import clopper_pearson
from countervail.protect import Mondrian
from countervail.study.reproduce.together import figure
from countervail.study.reproduce.work.inference import SENSITIVE, inference_table

_QUANTILES = 5


def encodings(seed: int, set: str, encoding: str, ks: Sequence[int], rows: int, people: int) -> dict[str, Any]:
    """Anonymise, encode, train, predict each drawn person: averages over k."""
    table, pair = inference_table(set, rows, seed), parse_encoding(encoding, "reproduce")
    if pair[0] == "quantiles-before":
        table, pair = quantiles_before(table, _QUANTILES), ("tf", pair[1])
    own_each = "tf" in pair  # features depend on who is asked about: a model each
    secret, names = SENSITIVE[set], table.schema.names("quasi")
    values = tuple(sorted(table.frame[secret].astype(str).unique()))
    truth = secret_codes(table.frame[secret], values)
    drawn = generator(seed).permutation(len(table))[:people]
    hits, features, spent = 0, [], 0.0
    for k in ks:
        made = Mondrian(k) if k > 1 else None
        release = made.fit(table).protect(table) if made is not None else _as_it_is(table)
        read = ReadRelease.of(release, names, secret, values)
        specs = make_specs(table, pair, _QUANTILES)
        model: Any = None
        for row in drawn:
            start = time.process_time()
            person = table.frame.iloc[[int(row)]]
            cells, classes, times, own = read.counted(person, specs)
            if model is None or own_each:
                model = BernoulliNB().fit(cells, classes, sample_weight=times)
                features.append(cells.shape[1])
            hits += int(model.predict(own[None, :])[0] == truth[int(row)])
            spent += time.process_time() - start
    asked = len(drawn) * len(ks)
    right = clopper_pearson(hits, asked)
    out = {
        "accuracy %": {n: 100 * v for n, v in (("value", right.value), ("low", right.low), ("high", right.high))},
        "features": figure(float(np.mean(features))),
        "minutes": figure(spent / asked * len(table) / 60),
    }
    out["accuracy %"]["n"] = asked
    return {"figures": out, "name": encoding}


def _as_it_is(table: Any) -> Any:
    """k=1: every row as it is."""
    return Mondrian(1).fit(table).protect(table)
