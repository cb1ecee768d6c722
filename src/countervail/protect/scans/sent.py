"""A fitted explainer on its way to other processes, and what it does there."""

from __future__ import annotations

import hashlib
import pickle
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd

from countervail.core.cells import cell_text, is_missing
from countervail.core.errors import CountervailError, SchemaError, bad_parameter
from countervail.core.explanation import Explanations
from countervail.protect._fitted import without_ledger
from countervail.protect.load import load_protector
from countervail.protect.saved import Savable

ANSWER = "answer"  # which of the answers to one query, from 0


@dataclass(frozen=True, slots=True)
class SentExplainer:
    """Answers batches of queries wherever it is sent; read-only, so that asking twice changes nothing.

    `saved` is the protector's own file, which holds no rows, where it has one; otherwise the whole of it is pickled,
    with the rows that a plain explainer answers from. No ledger goes along: nothing is debited there.
    """

    saved: str
    pickled: bytes
    id: str
    regions: bool
    digest: str

    @classmethod
    def of(cls, explainer: Any, name: str) -> Self:
        """What is sent for a fitted explainer, whose queries are named by a column."""
        saved, held = _saved(explainer), _model(explainer)
        pickled = _dumps(held if saved else without_ledger(explainer), explainer)
        regions = bool(getattr(type(explainer), "gives_regions", False))
        digest = hashlib.sha256(saved.encode() + b"\0" + pickled).hexdigest()
        return cls(saved, pickled, name, regions, digest)

    def __call__(self, batch: Any) -> Any:
        """An Arrow batch of queries to an Arrow table of answers."""
        frame: pd.DataFrame = batch.to_pandas()
        ids = frame.pop(self.id)
        if count := int(ids.isna().sum()):
            raise bad_parameter(
                "explain_scan", "id", "a column that has a value for everybody", self.id, f"{count} have none."
            )
        explainer = self._held()
        try:
            answers = explainer.explain(frame)
            return answer_table(answers.with_ids(ids, self.id), self.regions)
        except CountervailError:
            raise
        except Exception as error:  # noqa: BLE001 - a model's own text may hold rows
            raise SchemaError(f"The model or the explainer raised {type(error).__name__} on some queries.") from None

    def _held(self) -> Any:
        """The explainer, unpacked once in a process."""
        if self.digest not in _HELD:
            _HELD.clear()
            held = pickle.loads(self.pickled)
            _HELD[self.digest] = _loaded(self.saved, held) if self.saved else held
        return _HELD[self.digest]


_HELD: dict[str, Any] = {}


def answer_table(answers: Explanations, regions: bool) -> Any:
    """Answers as an Arrow table with the same columns and types for every batch.

    Cells are numbers where the column is numeric and the explainer gives plain values, and otherwise texts, as people
    read them.
    """
    import pyarrow as pa

    assert answers.ids is not None and answers.query is not None
    found = answers.found
    which = pd.Series(answers.query).groupby(answers.query).cumcount().to_numpy()
    held: dict[str, Any] = {
        str(answers.ids.name): pa.array(answers.ids.tolist(), pa.string()),
        ANSWER: pa.array(which, pa.int64()),
        "status": pa.array(answers.status.tolist(), pa.string()),
        "decision": pa.array(_texts(answers.after, found), pa.string()),
    }
    held = {beside(n, answers): v for n, v in held.items()}
    for name, cells in answers.counterfactuals.items():
        if answers.schema[str(name)].numeric and not regions:
            held[str(name)] = pa.array(pd.to_numeric(cells).astype("Float64"), pa.float64(), from_pandas=True)
        else:
            held[str(name)] = pa.array(_texts(cells, found), pa.string())
    return pa.table(held)


def beside(name: str, answers: Explanations) -> str:
    """What a column beside the cells is called, where a cell may have the same name."""
    return name + "_" * (name in answers.counterfactuals.columns)


def _texts(cells: pd.Series, found: Any) -> list[str | None]:
    """Cells in words; none where there is no answer."""
    return [None if not there and is_missing(c) else cell_text(c) for c, there in zip(cells.tolist(), found)]


def _saved(explainer: Any) -> str:
    """What the protector's own file holds; nothing where it has none."""
    if not isinstance(explainer, Savable):
        return ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "protector.json"
        try:
            explainer.save(path)
        except CountervailError:  # of searches that answer from rows
            return ""
        return path.read_text(encoding="utf-8")


def _loaded(saved: str, model: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "protector.json"
        path.touch(mode=0o600)
        path.write_text(saved, encoding="utf-8")
        return load_protector(path, model)


def _model(explainer: Any) -> Any:
    """The model behind a protector that can be saved."""
    if (search := getattr(explainer, "search_", None)) is not None:
        return search.decision_.model
    public = getattr(explainer, "public_", None)
    return None if public is None else public.decision.model


def _dumps(held: Any, explainer: Any) -> bytes:
    from joblib.externals.loky.backend.reduction import dumps

    try:
        return bytes(dumps(held))
    except Exception as error:  # noqa: BLE001 - whatever a model of somebody's own raises; its text may hold rows
        raise bad_parameter(
            "explain_scan",
            "explainer",
            "one that can be sent to other processes",
            type(explainer).__name__,
            f"Pickling it raised {type(error).__name__}: use a model that can be pickled.",
        ) from None
