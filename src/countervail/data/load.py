"""Loading a data set by its name."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files

from countervail.core.errors import bad_parameter
from countervail.core.files.schema_file import read_schema
from countervail.core.schema import Column, Schema
from countervail.core.table import Table
from countervail.data.registry import REGISTERED, description_path, find, read_description
from countervail.data.toys import toy_credit, toy_evaluation


def load(name: str) -> Table:
    """Load a data set: german_credit, toy_credit, toy_evaluation, iris, or a registered one.

    Examples
    --------
    >>> import countervail as cv
    >>> cv.load("toy_evaluation")
    Table(6 rows; quasi: sex, occupation, domicile; target: evaluation)
    """
    if name in _BUNDLED:
        return _BUNDLED[name]()
    if name in REGISTERED:
        path = find(name)
        return Table.read(path, _worded(read_description(description_path(path)), name))
    raise bad_parameter("load", "name", f"one of {sorted([*_BUNDLED, *REGISTERED])}", name)


def _worded(schema: Schema, name: str) -> Schema:
    """The schema with words for its columns, where there are any for this data set."""
    words = files("countervail.data") / "bundled" / "words" / f"{name}.toml"
    if not words.is_file():
        return schema
    with as_file(words) as path:
        said = read_schema(path)
    spoken = (replace(c, unit=said[c.name].unit, phrases=said[c.name].phrases) if c.name in said else c for c in schema)
    return replace(schema, columns=tuple(spoken))


def german_credit() -> Table:
    """German credit (UCI Statlog; see bundled/ATTRIBUTION.md), with the roles of Goethals et al."""
    folder = files("countervail.data") / "bundled"
    with as_file(folder / "german_credit.csv.gz") as data, as_file(folder / "german_credit.toml") as schema:
        return Table.read(data, read_schema(schema))


def iris() -> Table:
    """Iris, three classes, from scikit-learn."""
    from sklearn.datasets import load_iris

    bunch = load_iris(as_frame=True)
    frame = bunch.data.rename(columns=lambda c: c.removesuffix(" (cm)").replace(" ", "_"))
    frame["species"] = bunch.target.map(dict(enumerate(bunch.target_names)))
    columns = [Column(str(n), "numeric", "quasi", unit="cm") for n in frame.columns[:-1]]
    return Table(frame, Schema((*columns, Column("species", role="target")), ("setosa",)))


_BUNDLED = {
    "german_credit": german_credit,
    "iris": iris,
    "toy_credit": toy_credit,
    "toy_evaluation": toy_evaluation,
}
