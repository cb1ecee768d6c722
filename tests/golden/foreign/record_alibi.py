"""Records what Alibi writes about German credit, for `tests/explain/test_foreign.py`.

Run it by the Python of an environment that holds alibi[tensorflow] 0.9.6 and click below 8.2:
`python tests/golden/foreign/record_alibi.py gradients`, then `... rl`: the two need TensorFlow in different modes.
The gradient explainers get the numbers alone, scaled to 0-1; CounterfactualRLTabular gets all columns, labels as codes.
"""

from __future__ import annotations

import sys
from typing import Any

import german
import numpy as np
import tensorflow as tf


def gradients() -> None:
    """Counterfactual (Wachter) and CounterfactualProto; one search is too short to find anything."""
    tf.compat.v1.disable_v2_behavior()
    from alibi.explainers import Counterfactual, CounterfactualProto
    from sklearn.linear_model import LogisticRegression

    rows = german.read()
    names = german.numeric(rows)
    x = rows[names].to_numpy(dtype=float)
    low, high = x[: german.TRAIN].min(axis=0), x[: german.TRAIN].max(axis=0)
    scaled, good = ((x - low) / (high - low)).astype(np.float32), (rows[german.TARGET] == "good").to_numpy().astype(int)
    model = LogisticRegression(C=100.0).fit(scaled[: german.TRAIN], good[: german.TRAIN])
    asked = [german.TRAIN + i for i, label in enumerate(model.predict(scaled[german.TRAIN :])) if label == 0][:3]
    shape, outputs = (1, len(names)), {}
    wachter = Counterfactual(
        model.predict_proba, shape, target_proba=0.6, tol=0.1, max_iter=30, lam_init=0.1, max_lam_steps=2,
        learning_rate_init=0.05, early_stop=5, feature_range=(0.0, 1.0),
    )  # fmt: skip
    outputs["Counterfactual"] = [wachter.explain(scaled[i : i + 1]).to_json() for i in asked]
    for name, iterations in (("CounterfactualProto", 80), ("none found", 1)):
        tf.keras.backend.clear_session()
        proto = CounterfactualProto(
            model.predict_proba, shape, use_kdtree=True, theta=10.0, max_iterations=iterations, c_init=1.0, c_steps=2,
            feature_range=(np.zeros(shape), np.ones(shape)),
        )  # fmt: skip
        proto.fit(scaled[: german.TRAIN])
        outputs[name] = [proto.explain(scaled[i : i + 1]).to_json() for i in asked]
    more = {"columns": names, "low": low.tolist(), "high": high.tolist()}
    german.record("alibi_gradients", ("alibi", "tensorflow", "numpy"), asked, outputs, **more)


def rl() -> None:
    """CounterfactualRLTabular, hardly trained: what it writes looks the same."""
    from alibi.explainers import CounterfactualRLTabular
    from alibi.explainers.backends.cfrl_tabular import get_he_preprocessor
    from alibi.models.tensorflow import HeAE

    tf.keras.utils.set_random_seed(0)
    rows = german.read()
    codes = german.labels(rows)
    features = [n for n in rows.columns if n != german.TARGET]
    coded = rows[features].assign(**{n: rows[n].map(known.index) for n, known in codes.items()})
    x, good = coded.to_numpy(dtype=np.float32), (rows[german.TARGET] == "good").to_numpy().astype(int)
    places: Any = {features.index(n): known for n, known in codes.items()}
    model = german.forest(x[: german.TRAIN], good[: german.TRAIN], list(places))
    asked = [german.TRAIN + i for i, label in enumerate(model.predict(x[german.TRAIN :])) if label == 0][:4]
    encode, decode = get_he_preprocessor(x[: german.TRAIN], features, places, dict.fromkeys(german.numeric(rows), int))
    wide = encode(x[: german.TRAIN]).astype(np.float32)
    sizes = [len(known) for known in places.values()]
    encoder = tf.keras.Sequential([tf.keras.layers.Dense(16), tf.keras.layers.Activation(tf.nn.tanh)])
    numbers = len(features) - len(places)

    class Decoder(tf.keras.Model):
        """Numbers in one output, every label column in one of its own."""

        def __init__(self) -> None:
            super().__init__()
            self.hidden = tf.keras.layers.Dense(32, activation="relu")
            self.heads = [tf.keras.layers.Dense(n) for n in (numbers, *sizes)]

        def call(self, z: Any) -> list[Any]:
            return [head(self.hidden(z)) for head in self.heads]

    both = HeAE(encoder=encoder, decoder=Decoder())
    both.build((1, wide.shape[1]))
    losses = [tf.keras.losses.MeanSquaredError()]
    losses += [tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True) for _ in sizes]
    both.compile(optimizer=tf.keras.optimizers.Adam(1e-2), loss=losses)
    truth = [wide[:, :numbers], *(x[: german.TRAIN, [j]] for j in places)]
    both.fit(wide, tuple(truth), epochs=60, verbose=0)
    explainer = CounterfactualRLTabular(
        predictor=model.predict_proba, encoder=both.encoder, decoder=both.decoder, latent_dim=16,
        encoder_preprocessor=encode, decoder_inv_preprocessor=decode, coeff_sparsity=0.5, coeff_consistency=0.5,
        category_map=places, feature_names=features, ranges={}, immutable_features=["age"], train_steps=400,
        batch_size=64, backend="tensorflow", num_workers=1, exploration_steps=20,
    )  # fmt: skip
    explainer.fit(X=x[: german.TRAIN])
    found = explainer.explain(x[asked], Y_t=np.array([1]), C=[])
    german.record(
        "alibi_rl", ("alibi", "tensorflow", "numpy"), asked, {"CounterfactualRLTabular": found.to_json()}, labels=codes
    )


if __name__ == "__main__":
    {"gradients": gradients, "rl": rl}[sys.argv[1]]()
