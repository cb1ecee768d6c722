"""Saved models: skops files by default, because a pickle runs code when it is opened."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from countervail.core.errors import DataNotFoundError, ModelFileError

PICKLES = (".pkl", ".pickle", ".joblib")


def load_model(path: str | Path, *, allow_pickle: bool = False) -> Any:
    """Load a model from a .skops file, or from a pickle when that is allowed explicitly."""
    path = Path(path)
    if not path.is_file():
        raise DataNotFoundError(f"No model file at '{path}'. Save one with countervail.model.save_model(model, path).")
    if path.suffix == ".skops":
        return _load_skops(path)
    if path.suffix not in PICKLES:
        raise ModelFileError(f"The model file '{path.name}' must end in .skops, or in one of {PICKLES} (pickles).")
    if not allow_pickle:
        raise ModelFileError(
            f"'{path.name}' is a pickle, and opening a pickle runs whatever code is in it. Save it as .skops, or "
            f"allow pickles explicitly if you made the file yourself (allow_pickle=True, --allow-pickle)."
        )
    import joblib

    try:
        return joblib.load(path)
    except (pickle.UnpicklingError, EOFError, ImportError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(f"'{path.name}' cannot be opened as a pickle ({type(error).__name__}).") from None


def save_model(model: Any, path: str | Path) -> None:
    """Save a scikit-learn model as a .skops file."""
    path = Path(path)
    if path.suffix != ".skops":
        raise ModelFileError(f"The model file '{path.name}' must end in .skops.")
    from skops.io import dump

    dump(model, path)


def _load_skops(path: Path) -> Any:
    from zipfile import BadZipFile

    from skops.io import get_untrusted_types, load

    try:
        strangers = get_untrusted_types(file=path)
        if strangers:
            raise ModelFileError(
                f"'{path.name}' holds types that are not known to be safe: {strangers}. "
                f"Keep to scikit-learn and numpy types, or load the model in Python and pass it to the explainer."
            )
        return load(path)
    except (BadZipFile, KeyError, ValueError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"'{path.name}' is not a readable skops file ({type(error).__name__}).") from None
