"""Files of explanations on the command line: ours, and those of other tools, through one reader."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from countervail.core.explanation import Explanations
    from countervail.core.table import Table

Asked = Annotated[
    Path | None,
    typer.Option(help="The rows that were explained, where a file of another tool's explanations does not hold them."),
]
Query = Annotated[
    str | None,
    typer.Option(help="The column that says which of --asked each counterfactual answers; default: row by row."),
]
OneHot = Annotated[
    bool, typer.Option("--one-hot", help="Another tool's labels stand in one-hot columns such as sex_male: join them.")
]


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """How a file of explanations that another tool wrote is to be read."""

    asked: Path | None = None
    query: str | None = None
    one_hot: bool = False

    def read(self, path: Path, table: Table) -> Explanations:
        """Explanations, ours or another tool's, about the people of `table`."""
        from countervail.explain.foreign import read_explanations

        decode = "one-hot" if self.one_hot else None
        return read_explanations(path, table, factuals=self.asked, query=self.query, decode=decode)
