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
        known = np.ma.masked_invalid(rows)
        low, span = known.min(axis=0).filled(0.0), known.ptp(axis=0).filled(0.0)
        span = np.where(span > 0, span, 1.0)
        numeric = np.array([coding.numeric for coding in encoder.codings])
        holes = np.asarray(np.isnan(rows).any(axis=0)) & numeric  # then missing is a value of its own
        sizes = [1 + h if n else len(c.lookup) for n, h, c in zip(numeric, holes.tolist(), encoder.codings)]
        starts = np.cumsum([0, *sizes])
        # Where numbers, holes and labels lie among the entries of a wide row, and what they come from.
        self._d, self._numbers, self._holes = int(starts[-1]), np.flatnonzero(numeric), np.flatnonzero(holes)
        self._at, self._holes_at = starts[self._numbers], starts[self._holes] + 1
        self._low, self._span = low[self._numbers], span[self._numbers]
        labels = [j for j, n in enumerate(numeric) if not n]
        self._labels_at = np.concatenate(
            [np.zeros(0, np.int64), *(np.arange(starts[j], starts[j + 1]) for j in labels)]
        )
        self._labels = np.repeat(np.array(labels, dtype=np.int64), [sizes[j] for j in labels])
        self._codes = self._labels_at - starts[self._labels]
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
        return self.errors(self._encoder.encode(frame))

    def errors(self, rows: Matrix) -> NDArray[np.float64]:
        """The same of rows in codes."""
        wide = self._widen(rows)
        made = wide
        last = len(self._net.coefs_) - 1
        for i, (weights, intercepts) in enumerate(zip(self._net.coefs_, self._net.intercepts_)):
            made = made @ weights + intercepts
            if i < last:
                np.tanh(made, out=made)
        errors: NDArray[np.float64] = ((made - wide) ** 2).mean(axis=1)
        return errors

    def _widen(self, rows: Matrix) -> Matrix:
        wide = np.zeros((len(rows), self._d))
        numbers = 2 * (rows[:, self._numbers] - self._low) / self._span - 1
        wide[:, self._at] = np.where(np.isnan(numbers), 0.0, numbers)
        wide[:, self._holes_at] = np.isnan(rows[:, self._holes])
        wide[:, self._labels_at] = rows[:, self._labels] == self._codes
        return wide
