"""Loading a data set by its name."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files

from countervail.core.errors import ParameterError, bad_parameter
from countervail.core.files.schema_file import read_schema
from countervail.core.schema import Column, Schema
from countervail.core.table import Table
from countervail.data.registry import PERSON, REGISTERED, description_path, find, read_description
from countervail.data.toys import toy_credit, toy_evaluation


def load(name: str, *, actionable: bool = False, declared: bool = False) -> Table:
    """Load a data set: german_credit, toy_credit, toy_evaluation, iris, or a registered one.

    Parameters
    ----------
    name : str
    actionable : bool
        Whether the schema keeps what is declared of what may be asked of people: nobody gets younger, nobody is told
        to save less. Without it, anything may be asked, as papers and other tools have it.
    declared : bool
        Whether columns have the public domains of their codebook, which private protectors need: of
        acs_income_ca_2018, default_credit and heloc; german_credit has them always. Without it, types and labels are
        as in the file.

    Examples
    --------
    >>> import countervail as cv
    >>> cv.load("toy_evaluation")
    Table(6 rows; quasi: sex, occupation, domicile; target: evaluation)
    """
    if name in REGISTERED:
        path = find(name)
        schema = _worded(read_description(description_path(path)), name)
        schema = _with_domains(schema, name) if declared else schema
        return _naming_people(Table.read(path, _asking(schema, name, actionable)), PERSON.get(name))
    if name == "german_credit":
        return german_credit(actionable=actionable)
    if declared and name in _BUNDLED:
        raise _undeclared(name)
    if name not in _BUNDLED:
        raise bad_parameter("load", "name", f"one of {sorted(['german_credit', *_BUNDLED, *REGISTERED])}", name)
    table = _BUNDLED[name]()
    _asking(table.schema, name, actionable)
    return table


def _naming_people(table: Table, person: str | None) -> Table:
    """The table without identifiers that are parts of the one which names a person."""
    if person is None:
        return table
    kept = [c for c in table.schema if c.role != "identifier" or c.name == person]
    return Table(table.frame[[c.name for c in kept]], replace(table.schema, columns=tuple(kept)))


def _asking(schema: Schema, name: str, actionable: bool) -> Schema:
    """The schema with what may be asked of people, or without it."""
    free = schema.without_actions()
    if not actionable:
        return free
    if schema == free:
        way_out = "Declare it in a schema: `actionable`, `range`, `forbidden` and `until` of its columns."
        raise bad_parameter("load", "actionable", f"False for '{name}', of which nothing is declared", True, way_out)
    return schema


def _worded(schema: Schema, name: str) -> Schema:
    """The schema with words for its columns, where there are any for this data set."""
    words = files("countervail.data") / "bundled" / "words" / f"{name}.toml"
    if not words.is_file():
        return schema
    with as_file(words) as path:
        said = read_schema(path)
    return replace(schema, columns=tuple(_with_words(c, said[c.name]) if c.name in said else c for c in schema))


def _with_domains(schema: Schema, name: str) -> Schema:
    """The schema with the domains of the data set's codebook: public ones, of which no row was asked."""
    domains = files("countervail.data") / "bundled" / "domains" / f"{name}.toml"
    if not domains.is_file():
        raise _undeclared(name)
    with as_file(domains) as path:
        public = read_schema(path)
    for c in public:
        schema = schema.with_column(c.name, type=c.type, domain=c.domain, levels=c.levels, cuts=c.cuts)
    return schema


def _undeclared(name: str) -> ParameterError:
    way_out = "Declare domains in a schema, from what is publicly known: docs/guide/synthetic.md."
    return bad_parameter("load", "declared", f"False for '{name}', of which no codebook is bundled", True, way_out)


def _with_words(column: Column, said: Column) -> Column:
    """A column with its words, and what may be asked of people there."""
    return replace(
        column,
        unit=said.unit,
        phrases=said.phrases,
        actionable=said.actionable,
        range=said.range,
        forbidden=said.forbidden,
        step=said.step,
        until=said.until,
    )


def german_credit(*, actionable: bool = False) -> Table:
    """German credit (UCI Statlog; see bundled/ATTRIBUTION.md), with the roles of Goethals et al."""
    folder = files("countervail.data") / "bundled"
    with as_file(folder / "german_credit.csv.gz") as data, as_file(folder / "german_credit.toml") as schema:
        return Table.read(data, _asking(read_schema(schema), "german_credit", actionable))


def iris() -> Table:
    """Iris, three classes, from scikit-learn."""
    from sklearn.datasets import load_iris

    bunch = load_iris(as_frame=True)
    frame = bunch.data.rename(columns=lambda c: c.removesuffix(" (cm)").replace(" ", "_"))
    frame["species"] = bunch.target.map(dict(enumerate(bunch.target_names)))
    columns = [Column(str(n), "numeric", "quasi", unit="cm") for n in frame.columns[:-1]]
    return Table(frame, Schema((*columns, Column("species", role="target")), ("setosa",)))


_BUNDLED = {
    "iris": iris,
    "toy_credit": toy_credit,
    "toy_evaluation": toy_evaluation,
}
