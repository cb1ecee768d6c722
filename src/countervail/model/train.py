"""Training helpers."""

from __future__ import annotations

from typing import Any

import pandas as pd

from countervail.core.errors import SchemaError
from countervail.core.table import Table


def train_forest(
    table: Table, *, trees: int = 100, leaves: int | None = None, random_state: int = 0, n_jobs: int | None = None
) -> Any:
    """A random forest behind a one-hot encoder, fitted to the table's features and target.

    Examples
    --------
    >>> import countervail as cv
    >>> from countervail.model import train_forest
    >>> table = cv.load("iris")
    >>> train_forest(table, trees=5).predict(table.features.iloc[:1]).tolist()
    ['setosa']
    """
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    labels = [n for n in table.schema.features if not table.schema[n].numeric]
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    forest = RandomForestClassifier(trees, max_leaf_nodes=leaves, random_state=random_state, n_jobs=n_jobs)
    pipeline = make_pipeline(make_column_transformer((one_hot, labels), remainder="passthrough"), forest)
    return pipeline.fit(table.features, classes_to_learn(table, "train_forest"))


def training_labels(table: Table, owner: str) -> pd.Series:
    """The target as labels to learn from; a missing one is an error."""
    if missing := int(table.target.isna().sum()):
        raise SchemaError(
            f"The target column '{table.schema.target}' of the table given to {owner} has {missing:,} missing "
            f"label(s). Drop those rows first, for example with table.take(table.target.notna())."
        )
    return table.target.astype(object)


def classes_to_learn(table: Table, owner: str) -> pd.Series:
    """The target as classes that scikit-learn takes: labels, truth values or whole numbers."""
    if not table.schema.features:
        raise SchemaError(f"The table given to {owner} has no feature to learn from: only identifiers and a target.")
    labels, target = training_labels(table, owner), table.target
    if pd.api.types.is_bool_dtype(target.dtype):
        return target.astype(bool)
    if pd.api.types.is_integer_dtype(target.dtype):
        return target.astype("int64")
    if not all(isinstance(v, str) for v in labels):
        raise SchemaError(
            f"The target column '{table.schema.target}' of the table given to {owner} must hold labels, not dates or "
            f"numbers with fractions. Group its values into a few labels first."
        )
    return labels
