"""The contract every explainer keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from countervail.core.encode import Encoder, Matrix, conform_rows, require_numbers
from countervail.core.errors import SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.core.guarantee import Guarantee, NoGuarantee
from countervail.core.protocols import Progress
from countervail.core.table import Rows, Table
from countervail.model.decision import Decision


class Explainer(BaseEstimator, ABC):
    """Answers "what would have to be different?" for rows, from a table and a model.

    A subclass extends `fit` and writes `explain`. Fitted explainers are read-only and thread-safe; they hold the
    training rows, also when pickled.
    """

    name: ClassVar[str]

    def fit(self, table: Table, model: Any) -> Self:
        """Learn from a table and a fitted model (an estimator with `predict`, or a plain function)."""
        self._learn(table, model, ask_rows=True)
        return self

    def _learn(self, table: Table, model: Any, *, ask_rows: bool) -> None:
        if not isinstance(table, Table):
            raise bad_parameter(self._owner, "table", "a countervail Table", type(table).__name__, _TABLE_HINT)
        if not table.schema.features:
            raise SchemaError(
                f"The table given to {self._owner} has no feature columns: all are identifiers or target."
            )
        require_numbers(table.features, table.schema, self._owner, "table")
        self.table_ = table
        self.decision_ = Decision(model, table, self._owner, ask_rows=ask_rows)
        self.encoder_ = Encoder.fit(table)
        self.rows_ = self.encoder_.encode(table.features)

    @abstractmethod
    def explain(self, rows: Rows, *, progress: Progress | None = None) -> Explanations:
        """Explain rows: a frame, a Table, or one row as Series or mapping."""

    def guarantee(self) -> Guarantee:
        """What is promised; a function of the parameters alone, never of the data."""
        return NoGuarantee("a plain counterfactual can be another person's record")

    @classmethod
    def examples(cls) -> list[Self]:
        """Instances the contract tests run on."""
        return [cls()]

    @property
    def _owner(self) -> str:
        return type(self).__name__

    def _queries(self, rows: Rows) -> tuple[Encoder, pd.DataFrame, Matrix]:
        check_is_fitted(self, "table_")
        frame = conform_rows(rows, self.table_, self._owner)
        require_numbers(frame, self.table_.schema, self._owner, "rows")
        encoder, queries = self.encoder_.extended(frame)
        return encoder, frame, queries

    def _targets(self, target: Any, now: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Query x class: which classes an answer may have."""
        classes = len(self.decision_.classes)
        if isinstance(target, str) and target == "other":
            wanted: NDArray[np.bool_] = np.arange(classes)[None, :] != now[:, None]
            return wanted
        labels: Any = target
        if isinstance(target, str) and target == "favourable" and target not in self.decision_.classes:
            labels = self.table_.schema.favourable
            if not labels:
                raise SchemaError(
                    f"{self._owner} aims at the favourable decision, but the table declares none. "
                    f'Write favourable = ["..."] at the top of the schema file, or use --target; in Python, pass '
                    f"favourable=... to Table.from_frame, or target=... here."
                )
        codes = self.decision_.codes(as_labels(labels), "target")
        return np.broadcast_to(np.isin(np.arange(classes), codes), (len(now), classes)).copy()

    def _provenance(self) -> dict[str, Any]:
        return provenance("explainer", self, self.table_)


_TABLE_HINT = "Build one with Table.from_frame(df, target=...) or Table.read(path, schema=...)."


def as_labels(target: Any) -> list[Any]:
    """One label or several, as a list."""
    many = isinstance(target, Iterable) and not isinstance(target, (str, bytes))
    return list(target) if many else [target]


def provenance(kind: str, maker: Any, table: Table | None = None) -> dict[str, Any]:
    """How something was made: parameters, version, and the digest of a table's schema as it was declared."""
    params = {k: v if _is_plain(v) else type(v).__name__ for k, v in maker.get_params(deep=False).items()}
    made = {kind: maker.name, "parameters": params, "countervail": package_version()}
    return made if table is None else made | {"schema": table.schema.declared().digest()}


@cache
def package_version() -> str:
    """Our version, or "unknown" when run from a source tree that is not installed."""
    try:
        return version("countervail")
    except PackageNotFoundError:
        return "unknown"


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_plain(v) for v in value.values())
    if isinstance(value, (list, tuple)):
        return all(_is_plain(v) for v in value)
    return value is None or isinstance(value, (bool, int, float, str))
