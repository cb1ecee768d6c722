"""Schema files: TOML, with room for comments that give the reason of each guess."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from countervail.core.errors import DataNotFoundError, SchemaError
from countervail.core.schema import Schema


def read_schema(path: str | Path) -> Schema:
    """Read a schema from a TOML file."""
    path = Path(path)
    if not path.is_file():
        raise DataNotFoundError(
            f"No schema file at '{path}'. `countervail schema DATA -o {path.name}` proposes one to edit."
        )
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise SchemaError(f"The schema file '{path}' is not valid TOML: it is nested too deeply.") from None
    except ValueError as error:
        raise SchemaError(f"The schema file '{path}' is not valid TOML: {error}") from None
    return Schema.from_dict(data)


def write_schema(schema: Schema, path: str | Path, comments: Mapping[str, str] | None = None) -> None:
    """Write a schema to a TOML file; `comments` go above the column they are keyed by."""
    Path(path).write_text(schema_toml(schema, comments), encoding="utf-8")


def schema_toml(schema: Schema, comments: Mapping[str, str] | None = None) -> str:
    """The text of a schema file."""
    data = schema.to_dict()
    lines = [f"version = {data['version']}", f"favourable = {_toml(data['favourable'])}"]
    for name, entry in data["columns"].items():
        lines.append("")
        lines += [f"# {line}" for line in (comments or {}).get(name, "").splitlines()]
        lines.append(f"[columns.{_key(name)}]")
        lines += [f"{key} = {_toml(value)}" for key, value in entry.items()]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if name and all(ch.isascii() and (ch.isalnum() or ch in "-_") for ch in name) else _text(name)


def _text(value: str) -> str:
    # JSON strings are TOML basic strings, but for DEL, which TOML wants escaped; other marks would act on a terminal.
    return re.sub("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]", _escaped, json.dumps(value, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04X}"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return _text(str(value))
