"""What the command line says is in the words of the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import countervail
from countervail.cli.shared.words import in_flags
from countervail.core.encode import require_numbers
from countervail.core.errors import SchemaError
from countervail.core.schema import Column, Schema

SOURCE = Path(countervail.__file__).parent
# What only a program calls: contract checks, attacks and studies of a class of one's own.
PROGRAMS = (
    "testing",
    "attack/base.py",
    "attack/shallow.py",
    "attack/deep.py",
    "attack/linkability.py",
    "registry.py",
    "measure",
    "protect/published",
)
PROGRAMS = (*PROGRAMS, "core/distance.py", "core/region.py", "model/http_json.py", "model/remote.py", "rules/inputs.py")
PYTHON = re.compile(
    r"Table\.[a-z]|from_frame|=\[|\(\.\.\.\)|\bpd\.|' parameter of|DataFrame|dtype|\w+=\{|\w+=(?:True|False|None)|"
    r"\w\(\)|numpy|pandas"
)


def literal(node: ast.expr) -> str | None:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else "X" for v in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def messages() -> Iterator[tuple[str, str]]:
    """Every text that an error is raised with, with an X for what is filled in."""
    for file in sorted(SOURCE.rglob("*.py")):
        place = str(file.relative_to(SOURCE))
        if place.startswith(PROGRAMS):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            texts = [literal(a) or "X" for a in node.args]
            if name == "bad_parameter":
                hint = f" {texts[4]}" if len(texts) > 4 else ""
                yield f"{place}:{node.lineno}", f"The '{texts[1]}' parameter of {texts[0]} must be {texts[2]}.{hint}"
            elif name.endswith("Error") and texts:
                yield f"{place}:{node.lineno}", texts[0]


def test_no_message_of_the_command_line_speaks_python() -> None:
    found = [(place, in_flags(text)) for place, text in messages()]
    assert len(found) > 400  # the scan finds them
    assert not [(place, text) for place, text in found if PYTHON.search(text)]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (
            "X protects quasi-identifiers. Pass quasi_identifiers=[...] to Table.from_frame, or give columns the role "
            "'quasi' in the schema.",
            "X protects quasi-identifiers. Give columns the role 'quasi' in the schema.",
        ),
        ("The 'random_state' parameter of CFK must be a seed. Got 'x'.", "--seed must be a seed. Got 'x'."),
        ("The 'sensitive' parameter of Mondrian must be given.", "--sensitive must be given."),
    ],
)
def test_parameters_become_flags(said: str, meant: str) -> None:
    assert in_flags(said) == meant


def test_names_are_listed_without_brackets() -> None:
    said = "X adds noise, but these columns declare none: ['PLZ', 'Gehalt (€)']. Add domain = [...]; levels = ['a']."
    meant = "X adds noise, but these columns declare none: PLZ, Gehalt (€). Add domain = [...]; levels = ['a']."
    assert in_flags(said) == meant


def test_messages_agree_in_number():
    """One word stands for one thing: "the data has", "the rows have"."""
    assert in_flags("The 'X' given to LERS has missing numbers in column 'pay'.") == (
        "The data has missing numbers in column 'pay'."
    )
    frame = pd.DataFrame({"pay": [1.0, None]})
    schema = Schema((Column("pay", "numeric"),))
    for parameter, said in (("table", "The data has missing values"), ("rows", "The rows have missing values")):
        with pytest.raises(SchemaError) as error:
            require_numbers(frame, schema, "NICE", parameter)
        assert in_flags(str(error.value)).startswith(said)


def test_the_size_of_a_population_is_named_by_its_flag() -> None:
    said = "The 'size' parameter of population_uniques must be a whole number. Got 1000 instead."
    assert in_flags(said) == "--population must be a whole number. Got 1000 instead."
