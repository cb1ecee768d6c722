"""countervail check: is this table anonymous?"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from countervail.cli.anonymize import Closeness, Diversity
from countervail.cli.shared.common import AsJson, SchemaFile, only_sensitive, say, say_json, table
from countervail.core.errors import ParameterError, bad_parameter
from countervail.core.files.release_file import PublishedFile, Verdict, examine
from countervail.core.files.schema_file import read_schema
from countervail.core.guarantee import Guarantee, KAnonymity, LDiversity, TCloseness
from countervail.core.schema import Schema


def check(
    release: Annotated[Path, typer.Argument(help="A published .csv, .csv.gz or .parquet file.", show_default=False)],
    schema: SchemaFile,
    k: Annotated[int, typer.Option(help="People who share every combination, at least.", min=1)] = 10,
    l: Annotated[float | None, typer.Option("--l", help="Diversity of the sensitive column.")] = None,  # noqa: E741
    diversity: Annotated[Diversity, typer.Option(help="What l means.")] = Diversity.distinct,
    c: Annotated[float, typer.Option(help="Of recursive (c, l)-diversity.")] = 3.0,
    t: Annotated[float | None, typer.Option("--t", help="Closeness of the sensitive column, 0 to 1.")] = None,
    closeness: Annotated[Closeness, typer.Option(help="How far apart sensitive values are.")] = Closeness.equal,
    sensitive: Annotated[str | None, typer.Option(help="Default: the schema's only sensitive column.")] = None,
    hierarchies: Annotated[Path | None, typer.Option(help="A folder with <column>.csv hierarchies.")] = None,
    as_json: AsJson = False,
) -> None:
    """Is this table anonymous? Counts k, l and t on a published file, ours or anybody's; exit code 1 if it is not.

    Rows belong together when all their quasi-identifier cells are equal as written: `07` is not `7`.
    Identifiers in the file, and columns that the schema does not declare, fail the check too.

    Example: `countervail check public.csv --schema people.toml --k 10 --l 3 --sensitive illness`
    """
    known = read_schema(schema)
    published = PublishedFile.read(release, known)
    promises = _promises(known, k, l, diversity.value, c, t, closeness.value, sensitive, hierarchies)
    verdicts = [examine(published, promise) for promise in promises]
    leaked, undeclared = published.identifiers, published.undeclared
    holds = all(v.holds for v in verdicts) and not leaked and not undeclared
    if as_json:
        say_json(
            {
                "holds": holds,
                "rows": len(published.frame),
                "identifiers": leaked,
                "undeclared": undeclared,
                "verdicts": [v.to_dict() for v in verdicts],
            }
        )
    else:
        _tell(published, verdicts, holds)
    raise typer.Exit(0 if holds else 1)


def _tell(published: PublishedFile, verdicts: list[Verdict], holds: bool) -> None:
    say(f"{len(published.frame):,} rows in {verdicts[0].classes:,} classes of equal quasi-identifiers.")
    rows = [
        [
            v.claim,
            "holds" if v.holds else "BROKEN",
            f"{v.reached:.4g}",
            f"{v.failing_classes:,}",
            f"{v.failing_rows:,}",
        ]
        for v in verdicts
    ]
    table(["asked", "answer", "reached", "classes that fail", "rows in them"], rows)
    if leaked := published.identifiers:
        say(f"Identifiers are in the file: {', '.join(leaked)}.")
    if undeclared := published.undeclared:
        say(f"The schema does not know these columns of the file: {', '.join(undeclared)}. Declare them or drop them.")
    if not verdicts[0].holds and published.seems_patterns:
        say(
            "Note: this looks like a table of patterns (`--method k-common`). Patterns are not rows of people: how "
            "many people fit one cannot be counted in the file."
        )
    say("The table keeps what was asked." if holds else "The table does NOT keep what was asked.")


def _promises(
    schema: Schema,
    k: int,
    l: float | None,  # noqa: E741
    diversity: str,
    c: float,
    t: float | None,
    closeness: str,
    sensitive: str | None,
    hierarchies: Path | None,
) -> list[Guarantee]:
    promises: list[Guarantee] = [KAnonymity(k)]
    if l is None and t is None:
        return promises
    secret = sensitive if sensitive is not None else only_sensitive(schema)
    if schema[secret].role in ("identifier", "quasi"):
        raise bad_parameter("check", "sensitive", "a column that is neither identifier nor quasi-identifier", secret)
    if l is not None:
        if not 1 <= l < math.inf:
            raise bad_parameter("check", "l", "a number of at least 1", l)
        if not 0 < c < math.inf:
            raise bad_parameter("check", "c", "a number above 0", c)
        promises.append(LDiversity(l, diversity, secret, c if diversity == "recursive" else None))
    if t is not None:
        if not 0 <= t <= 1:
            raise bad_parameter("check", "t", "between 0 and 1", t)
        promises.append(TCloseness(t, closeness, secret, tree=_tree(closeness, secret, hierarchies)))
    return promises


def _tree(closeness: str, secret: str, folder: Path | None) -> tuple[tuple[str, ...], ...] | None:
    if closeness != "hierarchical":
        return None
    from countervail.core.hierarchy import Hierarchy

    if folder is None:
        raise ParameterError("The hierarchical distance needs --hierarchies, a folder with <column>.csv files.")
    return Hierarchy.read(folder / f"{secret}.csv", secret).rows
