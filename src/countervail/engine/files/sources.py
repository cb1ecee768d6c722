"""Which files a scan reads, and whether they are one table: looked at before any work is done."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from countervail.core.errors import DataNotFoundError, SchemaError, bad_parameter, listed
from countervail.engine.settle import settled_type

Sources = str | Path | Sequence[str | Path]


def is_url(source: str | Path) -> bool:
    """Whether a source is no path on this machine."""
    return "://" in str(source)


def find_files(sources: Sources) -> list[str]:
    """The Parquet files behind paths, folders and patterns, sorted; URLs as they are."""
    given = [sources] if isinstance(sources, (str, Path)) else list(sources)
    if not given:
        raise bad_parameter("Table.scan", "sources", "at least one file", "none")
    files: list[str] = []
    for source in given:
        files += [str(source)] if is_url(source) else _on_disk(Path(source))
    if twice := sorted({Path(f).name for f in files if files.count(f) > 1}):
        raise bad_parameter("Table.scan", "sources", "files that are named once", twice)
    return files


def _on_disk(path: Path) -> list[str]:
    if path.is_dir():
        found = sorted(str(p) for p in path.rglob("*.parquet") if p.is_file() and not p.name.startswith("."))
        if parted := [p for p in found if any("=" in part for part in Path(p).relative_to(path).parts[:-1])]:
            raise SchemaError(
                f"The folder '{path.name}' keeps values of a column in the names of its folders "
                f"({Path(parted[0]).parent.name.partition('=')[0]}=...). Write that column into the files."
            )
        if not found:
            raise DataNotFoundError(f"The folder '{path.name}' holds no .parquet file. Name a file, or another folder.")
        return found
    if path.is_file():
        if not path.name.endswith(".parquet"):
            raise SchemaError(f"The file '{path.name}' must end in .parquet: engines read Parquet files.")
        return [str(path)]
    found = sorted(p for p in glob.glob(str(path), recursive=True) if Path(p).is_file())
    if not found:
        raise DataNotFoundError(f"No data file at '{path}'. Give a .parquet file, a folder of them, or a pattern.")
    return found


def common_kinds(files: Sequence[str]) -> dict[str, Any]:
    """The settled types of the columns, which all files must share; an error names the file that differs."""
    first: dict[str, Any] | None = None
    for file in files:
        kinds = settled_kinds(read_footer(file))
        if first is None:
            first = kinds
            continue
        name, other = Path(file).name, Path(files[0]).name
        if lost := [n for n in first if n not in kinds]:
            raise SchemaError(f"The file '{name}' lacks columns that '{other}' has: {listed(lost)}.")
        if more := [n for n in kinds if n not in first]:
            raise SchemaError(f"The file '{name}' has columns that '{other}' lacks: {listed(more)}.")
        if unlike := [n for n in first if first[n] != kinds[n]]:
            words = ", ".join(f"'{n}' is {kinds[n]} there and {first[n]} in '{other}'" for n in unlike[:3])
            raise SchemaError(f"The file '{name}' has columns of another type: {words}. Write them in one type.")
    return first or {}


def settled_kinds(schema: Any) -> dict[str, Any]:
    """The settled type of each column of an Arrow schema, without those that are no columns but numbers of rows."""
    if twice := sorted({n for n in schema.names if schema.names.count(n) > 1}):
        raise SchemaError(f"Column names must be unique. Repeated in the data: {listed(twice)}. Rename them.")
    index = {n for n in (schema.pandas_metadata or {}).get("index_columns", ()) if isinstance(n, str)}
    return {field.name: settled_type(field.name, field.type) for field in schema if field.name not in index}


def check_columns(kinds: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise unless the rows have all of these columns."""
    if lost := [n for n in names if n not in kinds]:
        raise SchemaError(f"The data lacks columns that the schema names: {listed(lost)}.")


def read_footer(file: str) -> Any:
    """The Arrow schema of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(file)
    except (pa.ArrowException, OSError):
        raise SchemaError(f"The file '{Path(file).name}' is not a readable Parquet file.") from None
