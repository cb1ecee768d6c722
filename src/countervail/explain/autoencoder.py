"""How unlike the training rows a row is: the reconstruction error of a small auto-encoder."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.arrays import Matrix
from countervail.core.encode import Encoder
from countervail.core.rng import generator


class AutoEncoder:
    """Squared reconstruction error over one-hot codes and numbers scaled to [-1, 1].

    The shape is the one the authors of NICE use: tanh layers of d/2, d/4, 2 or 4, d/4 and d/2 units.
    """

    def __init__(self, encoder: Encoder, rows: Matrix, max_rows: int = 10_000) -> None:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        self._encoder = encoder
        self._holes = np.asarray(np.isnan(rows).any(axis=0))
        known = np.ma.masked_invalid(rows)
        self._low, self._span = known.min(axis=0).filled(0.0), known.ptp(axis=0).filled(0.0)
        wide = self._widen(rows)
        d = wide.shape[1]
        middle = 2 if d < 16 else 4
        outer, inner = max(d // 2, 1), max(d // 4, 1)
        self._net = MLPRegressor(
            hidden_layer_sizes=(outer, inner, middle, inner, outer), activation="tanh", random_state=0, max_iter=50
        )
        # A fixed seed: the default scorer is part of the search, not of the noise.
        picked = generator(0).permutation(len(wide))[:max_rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._net.fit(wide[picked], wide[picked] if d > 1 else wide[picked].ravel())

    def __call__(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """The error of each row."""
        wide = self._widen(self._encoder.encode(frame))
        errors: NDArray[np.float64] = ((self._net.predict(wide).reshape(wide.shape) - wide) ** 2).mean(axis=1)
        return errors

    def _widen(self, rows: Matrix) -> Matrix:
        parts = []
        for j, coding in enumerate(self._encoder.codings):
            if coding.numeric:
                span = self._span[j] if self._span[j] > 0 else 1.0
                missing = np.isnan(rows[:, j])
                parts.append(np.where(missing, 0.0, 2 * (rows[:, j] - self._low[j]) / span - 1)[:, None])
                if self._holes[j]:  # then missing is a value of its own
                    parts.append(missing[:, None].astype(float))
            else:
                parts.append((rows[:, j, None] == np.arange(len(coding.lookup))[None, :]).astype(float))
        return np.hstack(parts)
