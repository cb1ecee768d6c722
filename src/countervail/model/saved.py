"""Saved models: skops files by default, because a pickle runs code when it is opened."""

from __future__ import annotations

import pickle
import struct
import tokenize
import zlib
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from countervail.core.errors import DataNotFoundError, ModelFileError
from countervail.core.files.frames import write_file
from countervail.core.files.json_data import DAMAGED
from countervail.model.sound import find_fault

PICKLES = (".pkl", ".pickle", ".joblib")
# Plain Python parts of scikit-learn that skops does not list, and trees, whose indices are checked after loading.
_TRUSTED = {
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils.validation.check_array",
    "functools.partial",  # of that function only, which is checked after loading
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "countervail.model.private.PrivateLogistic",  # lists and numbers, read by no compiled code
}
# What skops, numpy and zip files raise where the content is not what they expect.
_DAMAGED = (
    *DAMAGED,
    *(BadZipFile, zlib.error, struct.error, tokenize.TokenError, SyntaxError),
    *(EOFError, OSError, ImportError, AssertionError, RuntimeError),
)


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
    """Save a scikit-learn model as a .skops file; one that could not be loaded again is refused at once."""
    path = Path(path)
    if path.suffix != ".skops":
        raise ModelFileError(f"The model file '{path.name}' must end in .skops.")
    from skops.io import dump

    def write(place: Path) -> None:
        try:
            dump(model, place)
        except (TypeError, ValueError, AttributeError, RuntimeError, pickle.PicklingError) as error:
            raise ModelFileError(
                f"This model is not saved: {type(model).__name__} holds something that no file can hold "
                f"({type(error).__name__}). Pass the model itself to the explainer."
            ) from None
        if strangers := _strangers(place):
            raise ModelFileError(
                f"This model is not saved: it holds types that are not known to be safe when a file is opened "
                f"({', '.join(strangers)}), and load_model would refuse it. Pass the model itself to the explainer, "
                f"or on the command line joblib.dump(model, 'model.joblib') and --allow-pickle, for a file of your own."
            )

    write_file(path, write)


def _strangers(path: Path) -> list[str]:
    """Types in a file that nobody has looked at."""
    from skops.io import get_untrusted_types

    return sorted(set(get_untrusted_types(file=path)) - _TRUSTED)


def _load_skops(path: Path) -> Any:
    from skops.io import load

    try:
        if strangers := _strangers(path):
            raise ModelFileError(
                f"'{path.name}' holds types that are not known to be safe: {strangers}. Use another kind of model, or "
                f"load this one in Python and pass it to the explainer."
            )
        model = load(path, trusted=sorted(_TRUSTED))
    except ModelFileError:
        raise
    except _DAMAGED as error:
        raise ModelFileError(f"'{path.name}' is not a readable skops file ({type(error).__name__}).") from None
    if fault := find_fault(model):
        raise ModelFileError(f"'{path.name}' holds {fault}: the file is damaged.")
    return model
