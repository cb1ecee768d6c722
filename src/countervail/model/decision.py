"""What a model says about rows: any estimator with `predict`, or a plain function, under one roof."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countervail.core.canonical import canonical_value
from countervail.core.errors import RemoteModelError, SchemaError, bad_parameter
from countervail.core.schema import Schema
from countervail.core.table import Table
from countervail.model.by_scores import decides_by_scores

Codes = NDArray[np.int64]
Scores = NDArray[np.float64]

_MANY = 7
_FEW = 4096  # labels that are looked up one by one
_SMALL = 50_000  # rows up to which one thread is asked: on a busy machine, two of them took ten times as long
_POOLS: dict[tuple[str, int], Any] = {}


class Decision:
    """Decisions as codes into `classes`, and scores where the model gives them.

    A model with both `predict` and `predict_proba` decides by its scores when the two agree on every training row
    (one call is then enough); where they disagree (a tuned threshold, say), `predict` decides. With `ask_rows=False`
    the model is never asked about a row of the table, and `predict` decides wherever there is one, unless it is known
    to do nothing else (`decides_by_scores`).

    Scores in a frame are matched with the labels by the names of its columns. Those in an array stand in the order of
    the model's `classes_`, or else of the table's labels, sorted.
    """

    train_scores: Scores | None
    train: Codes
    _by_scores: bool

    def __init__(self, model: Any, table: Table, owner: str, *, ask_rows: bool = True) -> None:
        frame = table.features if ask_rows else _nobody(table)
        self._settle(model, table.schema, _labels(table), frame.iloc[:2], owner)
        if not ask_rows:
            return
        self.train_scores = self.scores(frame) if self.has_scores else None
        known, self._by_scores = self._by_scores, self.has_scores
        if self.train_scores is not None and not known:
            said = self._codes(self._ask(model.predict, frame), len(frame))
            self._by_scores = bool(np.array_equal(self.train_scores.argmax(axis=1), said))
            self.train = said
        else:
            self.train = self.decide(frame, self.train_scores)

    @classmethod
    def unseen(cls, model: Any, schema: Schema, labels: Iterable[Any], rows: pd.DataFrame, owner: str) -> Self:
        """A model that is never asked about anybody: two made-up `rows` tell whether it gives scores."""
        made = cls.__new__(cls)
        made._settle(model, schema, list(labels), rows, owner)
        return made

    def _settle(self, model: Any, schema: Schema, labels: list[Any], rows: pd.DataFrame, owner: str) -> None:
        """What must be known before any row is asked about."""
        self._model, self._owner = model, owner
        self._check_columns(schema)
        if len(labels) < 2:
            raise SchemaError(
                f"The target '{schema.target}' has one class only: {owner} needs at least two to tell apart."
            )
        self.classes = self._find_classes(_sorted(labels), str(schema.target))
        self._positions = {_key(c): i for i, c in enumerate(self.classes)}
        self._texts = {c: self._positions[c] for c in self.classes if type(c) is str and _key(c) == c}
        if hasattr(model, "predict"):
            self.has_scores = hasattr(model, "predict_proba")
        elif callable(model):
            self.has_scores = np.ndim(self._ask(model, rows)) == 2
        else:
            must = "an estimator with predict, or a function of a DataFrame"
            raise bad_parameter(owner, "model", must, type(model).__name__)
        self._by_scores = self.has_scores and (not hasattr(model, "predict") or decides_by_scores(model))
        self.train_scores, self.train = None, np.zeros(0, dtype=np.int64)

    @property
    def model(self) -> Any:
        """Whom it asks."""
        return self._model

    def scores(self, frame: pd.DataFrame) -> Scores:
        """One column of scores per class."""
        scores: Scores
        call = self._model.predict_proba if hasattr(self._model, "predict_proba") else self._model
        scores, names = self._ask(lambda rows: _with_names(call(rows)), frame)
        if names is not None:
            scores = scores[:, self._places(names)]
        if scores.shape != (len(frame), len(self.classes)):
            raise SchemaError(
                f"The 'model' of {self._owner} must give {len(self.classes)} scores per row, one for each label in "
                f"sorted order. Got an array of shape {scores.shape} for {len(frame)} rows."
            )
        if np.isnan(scores).any():
            raise SchemaError(f"The 'model' of {self._owner} gave NaN scores. Impute missing values inside the model.")
        return scores

    def decide(self, frame: pd.DataFrame, scores: Scores | None = None) -> Codes:
        """The class of each row; `scores`, if already known, save a call."""
        if self._by_scores:
            known = self.scores(frame) if scores is None else scores
            best: Codes = known.argmax(axis=1).astype(np.int64)
            return best
        return self._codes(self._ask(getattr(self._model, "predict", self._model), frame), len(frame))

    def answers_to(self, frame: pd.DataFrame) -> bool:
        """Whether the model says something about rows: it does not fail, and gives numbers or labels."""
        return answers_to(self._model, frame)

    @property
    def needs_call(self) -> bool:
        """Whether a decision takes a model call of its own although scores are known."""
        return not self._by_scores

    def codes(self, labels: Any, parameter: str) -> Codes:
        """Codes of labels named by the user."""
        unknown = [v for v in labels if _key(v) not in self._positions]
        if unknown:
            must = f"among the labels {_some(self.classes)}"
            raise bad_parameter(
                self._owner, parameter, must, unknown if len(unknown) == 1 else f"{len(unknown)} others"
            )
        return np.array([self._positions[_key(v)] for v in labels], dtype=np.int64)

    def labels(self, codes: Codes) -> Any:
        """The labels behind codes; None where a code is negative."""
        return pd.Series([self.classes[c] if c >= 0 else None for c in codes], dtype=object)

    def _find_classes(self, seen: list[Any], target: str) -> list[Any]:
        own = getattr(self._model, "classes_", None)
        if own is None or np.ndim(own) != 1:
            return seen
        own_list = list(np.asarray(own).tolist())
        if not {_key(v) for v in seen} & {_key(v) for v in own_list}:
            raise SchemaError(
                f"The 'model' of {self._owner} was trained on labels {_some(own_list)}, but the table's target "
                f"'{target}' holds {_some(seen)}. Train and explain with the same labels."
            )
        return own_list

    def _check_columns(self, schema: Schema) -> None:
        names = getattr(self._model, "feature_names_in_", None)
        if names is not None and list(names) != schema.features:
            raise SchemaError(
                f"The 'model' of {self._owner} was trained on the columns {list(names)}, but the table's feature "
                f"columns are {schema.features}. Train it on `table.features`, or correct the roles."
            )

    def _ask(self, call: Any, frame: pd.DataFrame) -> Any:
        failed = ""
        try:
            with one_thread(self._model, len(frame)):
                return call(frame)
        except RemoteModelError:  # in our own words, which quote nothing
            raise
        except Exception as error:  # noqa: BLE001 -- whatever a model raises may quote a row
            failed = type(error).__name__
        # Raised outside of the handler, so that the model's own words are not attached to it.
        raise SchemaError(
            f"The 'model' of {self._owner} failed with {failed} on the table's feature columns {list(frame.columns)}. "
            f"Call it on `table.features` yourself to see why; the columns, their order and their dtypes must be those "
            f"it was trained on."
        )

    def _places(self, names: list[Any]) -> Codes:
        """Where each class stands among the named columns of the scores."""
        places = _place_labels(names, self.classes)
        if places is None:
            raise SchemaError(
                f"The 'model' of {self._owner} must name the {len(self.classes)} columns of its scores after the "
                f"labels {_some(self.classes)}, each once. Got {len(names)} columns with other names. An array "
                f"has no names: its columns are taken in the order of the labels."
            )
        return places

    def _codes(self, answer: Any, rows: int) -> Codes:
        answers = np.asarray(answer).ravel()
        if len(answers) != rows:
            raise SchemaError(
                f"The 'model' of {self._owner} must give one label per row. Got {len(answers)} for {rows} rows."
            )
        if len(answers) <= _FEW and self._texts and answers.dtype.kind in "OU":
            quick = [self._texts.get(v, -1) if type(v) is str else -1 for v in answers.tolist()]
            if -1 not in quick:
                return np.array(quick, dtype=np.int64)
        kinds, inverse = np.unique(answers, return_inverse=True) if answers.dtype != object else _unique(answers)
        found = np.array([self._positions.get(_key(v), -1) for v in kinds], dtype=np.int64)
        if (found < 0).any():
            raise SchemaError(
                f"The 'model' of {self._owner} answered with labels that are not in the table's target. "
                f"Known labels: {_some(self.classes)}. A plain function returns labels (1-D) or scores (2-D)."
            )
        return found[inverse]


def _with_names(answer: Any) -> tuple[Scores, list[Any] | None]:
    return np.asarray(answer, dtype=float), _score_names(answer)


def _score_names(answer: Any) -> list[Any] | None:
    """The names of the columns of a model's answer; None where it has none (an array, a frame with plain numbering)."""
    names = getattr(answer, "columns", None)
    if names is None or (isinstance(names, pd.RangeIndex) and (names.start, names.step) == (0, 1)):
        return None
    return list(names)


def _place_labels(names: Sequence[Any], labels: Sequence[Any]) -> NDArray[np.int64] | None:
    """Where the column of each label stands; None unless there is one for each label and no other.

    A name is the label itself, or its text: whoever reads a file has text for names.
    """
    for spell in (lambda v: v, str):
        at = {spell(name): i for i, name in enumerate(names)}
        wanted = [spell(label) for label in labels]
        if len(at) == len(names) == len(labels) and set(wanted) == set(at):
            return np.array([at[w] for w in wanted], dtype=np.int64)
    return None


def _labels(table: Table) -> list[Any]:
    """The labels that rows have; where that is one only, those that are declared."""
    seen: list[Any] = pd.unique(table.target.dropna()).tolist()
    target = table.schema[str(table.schema.target)]
    declared = None if target.numeric or len(seen) > 1 else target.public
    return seen if declared is None else [*seen, *(v for v in declared if _key(v) not in map(_key, seen))]


def as_labels(target: Any) -> list[Any]:
    """One label or several, as a list."""
    many = isinstance(target, Iterable) and not isinstance(target, (str, bytes))
    return list(target) if many else [target]


def _unique(answers: Any) -> tuple[list[Any], Codes]:
    codes, kinds = pd.factorize(answers, use_na_sentinel=False)
    return list(kinds), codes.astype(np.int64)


def _key(value: Any) -> Any:
    # True, 1 and 1.0 hash alike in Python, which is what models mean by them too; letters may come in two pieces.
    return canonical_value(value)


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda v: (isinstance(v, str), v))


def _some(labels: list[Any]) -> str:
    # A target with very many labels is probably not one: its values may be personal.
    return str(labels) if len(labels) <= _MANY else f"({len(labels)} of them)"


def _nobody(table: Table) -> pd.DataFrame:
    """Two made-up rows: the least values of each column by itself, so that nobody's combination is asked about."""
    features = table.features
    return pd.DataFrame({n: features[n].sort_values(key=_order).iloc[:2].array for n in features.columns})


def _order(values: pd.Series) -> pd.Series:
    return values if pd.api.types.is_numeric_dtype(values) else values.astype(str)


def answers_to(model: Any, frame: pd.DataFrame) -> bool:
    """Whether a model says something about rows: it does not fail, and gives numbers or labels."""
    ask = getattr(model, "predict_proba", getattr(model, "predict", model))
    try:
        with one_thread(model, len(frame)):
            said = np.asarray(ask(frame))
    except Exception:  # noqa: BLE001 -- whatever a model raises may quote a row
        return False
    return said.dtype.kind != "f" or not np.isnan(said).any()


@contextmanager
def one_thread(model: Any, rows: int) -> Iterator[None]:
    """In here, compiled libraries share nothing among threads of OpenMP, where a model is asked about few rows."""
    if rows > _SMALL or "sklearn" not in sys.modules:  # whoever brings threads of their own brings scikit-learn too
        yield
        return
    # Libraries are looked for once for each kind of model, and again where others were loaded since.
    key = (type(model).__module__, sum(name in sys.modules for name in ("lightgbm", "xgboost", "catboost", "torch")))
    if key not in _POOLS:
        from threadpoolctl import ThreadpoolController

        _POOLS[key] = ThreadpoolController().select(user_api="openmp").lib_controllers
    before = [(library, library.get_num_threads()) for library in _POOLS[key]]
    for library, _ in before:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, threads in before:
            library.set_num_threads(threads)
