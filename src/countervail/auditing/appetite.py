"""The appetite: which recipient may be exposed to how much risk, declared in a file before anything is measured."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from countervail.core.errors import DataNotFoundError, SchemaError
from countervail.core.files.json_data import is_number, is_text
from countervail.core.stats import plain_json

# What is decided on: the three questions of the Article 29 Working Party (Opinion 05/2014), and what goes beyond.
CRITERIA: dict[str, str] = {
    "singling out": "can somebody's record be isolated?",
    "linkability": "can two records of one person be connected?",
    "inference": "can a value of somebody be deduced?",
    "membership": "can it be told who was in the data?",
}
_SHARES = (*(name.replace(" ", "_") for name in CRITERIA), "max_risk", "average_risk")
_KEYS = {"description", "asks", "epsilon", *_SHARES}
_TOP = {"version", "confidence", "valid_for_months", "recipients"}


@dataclass(frozen=True, slots=True)
class Recipient:
    """Somebody who gets what is released, and what may be at risk there.

    `thresholds` maps criteria to the largest excess that is accepted. `max_risk` and `average_risk` bound one over the
    number of people that something released speaks of, `epsilon` what may be claimed where noise protects.
    """

    name: str
    description: str = ""
    asks: bool = True
    thresholds: Mapping[str, float] = field(default_factory=dict)
    max_risk: float | None = None
    average_risk: float | None = None
    epsilon: float | None = None


@dataclass(frozen=True, slots=True)
class Appetite:
    """How much risk is accepted from whom, how surely it must be known, and for how long that holds."""

    recipients: tuple[Recipient, ...]
    confidence: float = 0.95
    valid_for_months: int = 12

    @classmethod
    def default(cls) -> Self:
        """The example that is shipped; see :meth:`example`."""
        return cls.parse(cls.example(), "appetite.toml")

    @staticmethod
    def example() -> str:
        """The shipped file with its comments, to be copied and changed."""
        return files("countervail.auditing").joinpath("appetite.toml").read_text(encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file like the shipped example."""
        path = Path(path)
        if not path.is_file():
            raise DataNotFoundError(
                f"No appetite file '{path.name}'. `countervail audit --example-appetite` prints one."
            )
        try:
            return cls.parse(path.read_text(encoding="utf-8"), path.name)
        except UnicodeDecodeError:
            raise SchemaError(f"The appetite file '{path.name}' is not text in UTF-8.") from None

    @classmethod
    def parse(cls, text: str, name: str = "appetite") -> Self:
        """The appetite that a TOML text declares."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"The appetite file '{name}' is not TOML: {error}.") from None
        return cls.from_dict(data, name)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], name: str = "appetite") -> Self:
        """The appetite as plain data, checked."""
        _refuse_unknown(data, _TOP, name, "")
        if data.get("version") != 1:
            raise SchemaError(f"The appetite file '{name}' must say 'version = 1'.")
        confidence, months = data.get("confidence", 0.95), data.get("valid_for_months", 12)
        if not (is_number(confidence) and 0.5 <= confidence < 1):
            raise SchemaError(f"'confidence' in '{name}' must be between 0.5 and 1, such as 0.95.")
        if not (isinstance(months, int) and not isinstance(months, bool) and 1 <= months <= 120):
            raise SchemaError(f"'valid_for_months' in '{name}' must be a whole number from 1 to 120.")
        recipients = data.get("recipients")
        if not isinstance(recipients, Mapping) or not recipients:
            raise SchemaError(f"The appetite file '{name}' names no recipient. Add a part such as [recipients.public].")
        return cls(tuple(_recipient(str(n), r, name) for n, r in recipients.items()), float(confidence), months)

    def to_dict(self) -> dict[str, Any]:
        """The appetite as plain JSON data; `from_dict` reads it back."""
        recipients = {}
        for r in self.recipients:
            plain = {k: v for k, v in plain_json(r).items() if v is not None and k not in ("name", "thresholds")}
            recipients[r.name] = plain | {c.replace(" ", "_"): t for c, t in r.thresholds.items()}
        return {
            "version": 1,
            "confidence": self.confidence,
            "valid_for_months": self.valid_for_months,
            "recipients": recipients,
        }


def _recipient(name: str, data: Any, file: str) -> Recipient:
    where = f"recipients.{name}"
    if not isinstance(data, Mapping):
        raise SchemaError(f"'{where}' in '{file}' must be a part with thresholds.")
    _refuse_unknown(data, _KEYS, file, where)
    for key in _SHARES:
        if key in data and not (is_number(data[key]) and 0 <= data[key] <= 1):
            raise SchemaError(f"'{where}.{key}' in '{file}' must be a share between 0 and 1.")
    if "epsilon" in data and not (is_number(data["epsilon"]) and data["epsilon"] > 0):
        raise SchemaError(f"'{where}.epsilon' in '{file}' must be a number above 0.")
    if not isinstance(data.get("asks", True), bool) or not is_text(data.get("description", "")):
        raise SchemaError(f"'{where}' in '{file}': 'asks' is true or false, 'description' a text.")
    thresholds = {c: float(data[c.replace(" ", "_")]) for c in CRITERIA if c.replace(" ", "_") in data}
    if not thresholds and not {"max_risk", "average_risk", "epsilon"} & set(data):
        raise SchemaError(f"'{where}' in '{file}' declares no threshold: nothing could be decided for it.")
    return Recipient(
        name,
        data.get("description", ""),
        data.get("asks", True),
        thresholds,
        *(float(data[key]) if key in data else None for key in ("max_risk", "average_risk", "epsilon")),
    )


def _refuse_unknown(data: Mapping[str, Any], known: set[str], file: str, where: str) -> None:
    unknown = sorted(str(key) for key in data if key not in known)
    if unknown:
        place = f"'{where}' in '{file}'" if where else f"'{file}'"
        raise SchemaError(f"{place} has unknown keys: {', '.join(unknown)}. Known: {', '.join(sorted(known))}.")
