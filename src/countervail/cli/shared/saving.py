"""countervail explain --save: what answers, kept in a file, so that it can be audited and asked again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from countervail.cli.shared.common import check_ending, remark
from countervail.core.errors import ParameterError

Save = Annotated[
    Path | None,
    typer.Option(
        help="Keep what answers in this file (.json), to be audited; a forest that was trained is kept beside it. "
        "Confidential.",
    ),
]


def check_save(save: Path | None, kind: type[Any], method: str, *read: Path | None) -> None:
    """Refuse before any work is done."""
    check_ending(save, (".json",), *read)
    if save is None:
        return
    check_ending(_model_file(save), (".skops",), *read)
    if not hasattr(kind, "save"):
        raise ParameterError(f"--save does not take --method {method}: what it fits holds people's rows.")


def save_explainer(explainer: Any, save: Path | None, model: Any, given: Path | None) -> None:
    """Keep a fitted protector, and the model where no file holds it yet."""
    if save is None:
        return
    explainer.save(save)
    at = given
    if at is None:
        from countervail.model import save_model

        at = _model_file(save)
        save_model(model, at)
        at.chmod(0o600)
    remark(f"What answers is kept in {save}; confidential. Audit it with: countervail audit {save} --model {at} ...")


def _model_file(save: Path) -> Path:
    return save.with_suffix(".skops")
