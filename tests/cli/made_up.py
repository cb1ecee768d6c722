"""Made-up files, good and bad, as people export them: what `fuzz_tables.py` sends through the commands."""

from __future__ import annotations

import gzip
import json
import random
from datetime import date, timedelta
from pathlib import Path

import pandas as pd

ODD = (
    "=1+1",
    "-",
    "NA",
    "null",
    "é",
    "日本",
    "a,b",
    "x;y",
    'say "hi"',
    "two\nlines",
    "\u202eturned",
    "@me",
    "'quoted",
    "*",
    "<script>alert(1)</script>",
)
SEPARATORS = (",", ",", ";", "\t")
KINDS = ("int", "float", "date", "label", "code", "secret", "odd", "one", "empty", "flag", "long")
FEW = ("label", "flag", "one", "odd")
NAMES = ("age", "Name", "PLZ", "Geburtsdatum", "city", "x", "Größe", "=sum", "salary", "class", "a b", "e-mail", "<b>")


class MadeUp:
    """A table drawn from a seed, as a file; `secrets` are cells that one person alone has."""

    def __init__(
        self, chance: random.Random, folder: Path, seed: int, *, decided: bool = False, named: bool = False
    ) -> None:
        self.chance, self.folder, self.seed, self.decided = chance, folder, seed, decided or named
        self.secrets: set[str] = set()
        self.repeated: set[str] = set()
        self.rows = chance.choice((1, 3, 8, 20, 40, 40, 60, 60, 60, 90))
        self.columns: dict[str, tuple[str, bool]] = {}
        for i in range(chance.choice((1, 2, 3, 3, 4, 4, 5, 6))):
            kind, name = chance.choice(KINDS), chance.choice(NAMES)
            self.columns[f"{name}{i}" if chance.random() < 0.7 else f"{i}{name}"] = (kind, chance.random() < 0.3)
        if named:  # everybody can be recognised
            self.columns["key"] = ("secret", False)
            self.rows = max(self.rows, chance.choice((30, 60)))
        if decided:  # something that can be explained, and mostly without damage
            self.columns["verdict"] = ("flag", False)
            self.rows = max(self.rows, chance.choice((1, 30, 60)))

    def frame(self, rows: int) -> pd.DataFrame:
        """Some made-up people, of whom now and then some have several rows."""
        made = pd.DataFrame({name: self.cells(*made, rows) for name, made in self.columns.items()})
        named = [name for name, (kind, _) in self.columns.items() if kind == "secret"]
        if named and rows > 3 and self.chance.random() < 0.2:
            several = self.chance.choice((2, 3))
            for name in named:
                made[name] = [made[name].iloc[i - i % several] for i in range(rows)]
                self.repeated.update(map(str, made[name].dropna()))
        return made

    def cells(self, kind: str, holes: bool, rows: int) -> list[object]:
        made = [self.cell(kind) for _ in range(rows)]
        if kind == "secret":
            self.secrets.update(str(v) for v in made)
        return [None if self.chance.random() < 0.2 else v for v in made] if holes else made

    def written(self, name: str = "d", rows: int | None = None, *, damage: bool = True) -> tuple[Path, list[str]]:
        """A file, now and then a damaged one, and the flags that say how it is to be read."""
        c, frame = self.chance, self.frame(self.rows if rows is None else rows)
        damage = damage and not (self.decided and c.random() < 0.8)
        kind = c.random() if damage else 1.0
        if kind < 0.08:
            path = self.folder / f"{name}.parquet"
            frame.to_parquet(path, index=False)
            return path, []
        if kind < 0.11:
            path = self.folder / f"{name}.xlsx"
            plain = frame.map(lambda v: v if v is None else "".join(ch for ch in str(v) if ch.isprintable()))
            plain.to_excel(path, index=False)
            return path, []
        if not damage:
            path = self.folder / f"{name}.csv"
            path.write_text(frame.to_csv(index=False), encoding="utf-8")
            return path, []
        return self._csv(frame, name)

    def _csv(self, frame: pd.DataFrame, name: str) -> tuple[Path, list[str]]:
        c = self.chance
        sep, flags = c.choice(SEPARATORS), []
        encoding = c.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252"))
        text = frame.to_csv(index=False, sep=sep)
        if c.random() < 0.3:
            flags += ["--sep", {"\t": "tab"}.get(sep, sep)]
        if encoding in ("utf-16", "cp1252") and c.random() < 0.8:
            flags += ["--encoding", encoding]
        if c.random() < 0.1:
            flags += ["--decimal", ",", "--thousands", "."] if sep != "," else ["--decimal", "."]
        if c.random() < 0.05:
            text = text[: c.randint(0, len(text))]
        if c.random() < 0.05:
            text = text.replace(frame.columns[0], frame.columns[-1], 1)
        raw = text.encode(encoding, errors="replace")
        if c.random() < 0.04:
            raw = bytes(c.randrange(256) if c.random() < 0.1 else b for b in raw)
        path = self.folder / c.choice((f"{name}.csv", f"{name}.csv", f"{name}.csv.gz"))
        path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
        return path, flags

    def cell(self, kind: str) -> object:
        c = self.chance
        if kind == "int":
            return str(c.choice((c.randint(0, 9), c.randint(18, 90), -5)))
        if kind == "float":
            return f"{c.gauss(1500, 700):.2f}".replace(".", c.choice((".", ".", ",")))
        if kind == "date":
            day = date(1950, 1, 1) + timedelta(c.randint(0, 20_000))
            shape = c.choice(("%Y-%m-%d", "%Y-%m-%d", "%d.%m.%Y")) if self.seed % 3 else "%d/%m/%Y"
            return day.strftime(shape)
        if kind == "code":
            return f"{c.randint(0, 99_999):05}"
        if kind == "secret":
            return f"Zq{c.randrange(10**9):09}w"
        if kind == "odd":
            return c.choice(ODD)
        if kind == "long":
            return " ".join(c.choice(("one", "two", "three")) for _ in range(8))
        return {"label": c.choice("abcd"), "one": "same", "empty": None, "flag": c.choice(("yes", "no"))}[kind]

    def edit(self, schema: Path) -> None:
        """As a person edits: some roles are changed, and now and then a column becomes the target."""
        lines = schema.read_text(encoding="utf-8").splitlines()
        roles = [i for i, line in enumerate(lines) if line.startswith("role = ")]
        for i in roles:
            if "[columns.key]" not in lines[max(0, i - 3) : i] and self.chance.random() < 0.4:
                lines[i] = f'role = "{self.chance.choice(("quasi", "quasi", "quasi", "attribute", "sensitive"))}"'
        if roles and self.chance.random() < 0.7 and not any('"quasi"' in lines[i] for i in roles):
            lines[self.chance.choice(roles)] = 'role = "quasi"'
        if "verdict" in self.columns:
            self._aim(lines, roles[-1])
        elif len(roles) > 1 and self.chance.random() < 0.5 and not any('"target"' in lines[i] for i in roles):
            few = [i for i, (kind, holes) in zip(roles, self.columns.values()) if kind in FEW and not holes]
            # Labels of a handful of classes may be named.
            fit = (
                roles
                if self.rows > 20
                else [i for i, (kind, _) in zip(roles, self.columns.values()) if kind != "secret"]
            )
            if fit:
                self._aim(lines, self.chance.choice(few if few and self.chance.random() < 0.7 else fit))
        if self.chance.random() < 0.15:
            self._steps(lines)
        if self.chance.random() < 0.3:  # domains are declared to be public
            lines = [line for line in lines if line != "read = true"]
        schema.write_text("\n".join(lines), encoding="utf-8")

    def _steps(self, lines: list[str]) -> None:
        """By how much a number is told, and where its way ends; now and then what cannot be."""
        numeric = [i for i, line in enumerate(lines) if line == 'type = "numeric"']
        if numeric:
            c, at = self.chance, self.chance.choice(numeric)
            told = [f"step = {c.choice((1, 5, 0.5, 1000, 1000, 0, -1))}"] if c.random() < 0.7 else []
            way = c.choice(("up", "down", "down", "no"))
            told += [f'actionable = "{way}"', f"until = {c.choice((0, 40, 1e9))}"] if c.random() < 0.5 else []
            end = next((j for j in range(at, len(lines)) if not lines[j]), len(lines))
            held = [line for line in lines[at + 1 : end] if not told or not line.startswith("actionable")]
            lines[at + 1 : end] = [*told, *held]

    def _aim(self, lines: list[str], at: int) -> None:
        lines[at] = 'role = "target"'
        rest = lines[at : lines.index("", at) if "" in lines[at:] else None]
        values = [v for line in rest if line.startswith("domain = [") for v in json.loads(line[9:])]
        if values and str(values[-1]).isprintable() and self.chance.random() < 0.8:
            lines[1] = f"favourable = [{json.dumps(values[-1], ensure_ascii=False)}]"
