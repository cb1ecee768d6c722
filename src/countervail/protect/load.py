"""Protectors back from their files."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from countervail.core.errors import DataNotFoundError, SchemaError
from countervail.core.files.json_data import is_count, json_object, need, whole_json
from countervail.core.hierarchy import Hierarchy
from countervail.protect._fitted import freeze
from countervail.protect.cfk.cfk import CFK
from countervail.protect.cfk.groups.group_search import GroupSearch
from countervail.protect.dp.synthetic.private_synthetic import PrivateSynthetic
from countervail.protect.microaggregation.microaggregation import Microaggregation
from countervail.protect.mondrian.mondrian import Mondrian
from countervail.protect.patterns.k_common import KCommonPatterns
from countervail.protect.saved import FORMAT, Savable

_WRITER = "a protector's save()"
_KINDS: dict[str, type[Savable]] = {
    kind.name: kind for kind in (CFK, Mondrian, Microaggregation, KCommonPatterns, PrivateSynthetic)
}


def load_protector(path: str | Path, model: Any = None) -> Any:
    """Read a protector that was saved; one that explains needs the model it was fitted with.

    Examples
    --------
    >>> import countervail as cv, tempfile
    >>> table = cv.load("toy_evaluation")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cv.KCommonPatterns(k=2).fit(table).save(f"{folder}/patterns.json")
    ...     again = cv.load_protector(f"{folder}/patterns.json")
    >>> again.protect().guarantee.k
    2
    """
    path, owner = Path(path), "load_protector"
    if not path.is_file():
        raise DataNotFoundError(f"There is no file '{path.name}' for {owner} to read. Give what {_WRITER} wrote.")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        text = ""
    data = json_object(text, path.name, owner, _WRITER)
    if data.get("kind") != "protector":
        raise SchemaError(f"The '{path.name}' given to {owner} holds no protector. Give what {_WRITER} wrote.")
    if data.get("format") != FORMAT:
        raise SchemaError(
            f"The '{path.name}' given to {owner} is of another format; this version reads format {FORMAT}. Save it "
            f"anew with this version."
        )
    with whole_json(path.name, owner, _WRITER):
        kind = _KINDS[data["protector"]]
        given = {n: parameter_from_json(v) for n, v in data["parameters"].items()}
        given = _as_now(given) if kind is CFK else given
        need(set(given) <= set(inspect.signature(kind).parameters))
        need(given.get("random_state") is None or is_count(given["random_state"]))
        made = kind(**given)
        made._restore(data, model)
        made.fitted_as_ = freeze(made)
    return made


def _as_now(given: dict[str, Any]) -> dict[str, Any]:
    """CF-K's parameters from older files as well: amounts left as they were, and `grouping` was not the search's."""
    now = {"amounts": "exact", **given}
    if (grouping := now.pop("grouping", "clusters")) != "clusters":
        search = now["search"]
        need(isinstance(search, GroupSearch) or search == "groups")
        budget = {"cell_budget": search.cell_budget} if isinstance(search, GroupSearch) else {}
        now["search"] = GroupSearch(**budget, grouping=grouping)
    return now


def parameter_from_json(data: Any) -> Any:
    """A parameter as it was before it was saved."""
    if isinstance(data, dict) and data.keys() == {"made", "parameters"}:
        need(data["made"] == GroupSearch.__name__)
        return GroupSearch(**{n: parameter_from_json(v) for n, v in data["parameters"].items()})
    if isinstance(data, dict) and data.keys() == {"tuple"}:
        return tuple(parameter_from_json(v) for v in data["tuple"])
    if isinstance(data, dict) and data.keys() == {"rows", "name"}:
        return Hierarchy(tuple(tuple(row) for row in data["rows"]), data["name"])
    if isinstance(data, dict):
        return {n: parameter_from_json(v) for n, v in data.items()}
    return [parameter_from_json(v) for v in data] if isinstance(data, list) else data
