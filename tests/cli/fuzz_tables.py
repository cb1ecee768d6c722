"""Made-up tables and files, good and bad, sent through the commands that an officer uses.

Of every case it must hold: no traceback, nobody's value in a message, and every table that was written has k people
in each class, counted by pandas. `python tests/cli/fuzz_tables.py --cases 50000 --state fuzz.json` goes on where it
stopped; a case is repeated with `--only SEED`.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import random
import sys
import tempfile
import traceback
from datetime import date, timedelta
from pathlib import Path

import pandas as pd

from countervail.cli import main
from countervail.core.files.schema_file import read_schema

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
)
SEPARATORS = (",", ",", ";", "\t")


class Case:
    """One seed: a table, a file of it, and what is done with them."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance, self.folder, self.seed = random.Random(seed), folder, seed
        self.faults: list[str] = []
        self.secrets: set[str] = set()

    def go(self) -> list[str]:
        """Run the commands; what went wrong."""
        data, flags = self.file()
        schema = self.folder / "s.toml"
        code, _, _ = self.run("schema", data, "-o", schema, *flags, *self.some("--json"))
        if code or not schema.exists():
            self.run("risk", data, "-s", schema, *flags)
            return self.faults
        self.edit(schema)
        known = read_schema(schema)
        self.run(
            "risk",
            data,
            "-s",
            schema,
            *flags,
            "--k",
            str(self.chance.randint(1, 12)),
            *self.page("risk"),
            *self.some("--json"),
        )
        names = known.names()
        self.run("hierarchy", data, self.chance.choice([*names, "nobody"]), *self.some("-s", schema), *flags)
        self.anonymize(data, schema, flags)
        if self.chance.random() < 0.1:
            self.run("anonymize", data, "-s", schema, *flags, "--sweep", "k=2,4", *self.page("sweep"))
        if self.chance.random() < 0.1 and known.target is not None:
            self.run("rules", data, "-s", schema, *flags, "--k", "2", *self.page("rules"), "--json")
        return self.faults

    def anonymize(self, data: Path, schema: Path, flags: list[str]) -> None:
        k = self.chance.choice((1, 2, 2, 3, 5, 10))
        known = read_schema(schema)
        out = self.folder / self.chance.choice(("p.csv", "p.csv", "p.csv.gz", "p.parquet"))
        words = ["anonymize", data, "-s", schema, "-o", out, "--k", str(k), *flags, *self.page("page")]
        words += self.some("--labels", self.chance.choice(("tight", "hierarchy")))
        words += self.some("--mode", "relaxed") + self.some("--suppress", "0.1") + self.some("--json")
        words += self.some("--by-class") if known.target is not None or self.chance.random() < 0.1 else []
        others = known.names("sensitive", "attribute", "target") or known.names()
        words += self.some("--l", "2", "--sensitive", self.chance.choice(others))
        for name in known.names("sensitive", "attribute", "target"):
            words += ["--keep", name]
        code, _, _ = self.run(*words)
        if code or not out.exists():
            return
        self.recount(out, known.names("quasi"), k)
        said, _, _ = self.run("check", out, "-s", schema, "--k", str(k), "--rows-are-people", *self.page("check"))
        if said != 0:
            self.faults.append(f"check says {said} of a table that anonymize wrote")

    def recount(self, out: Path, quasi: list[str], k: int) -> None:
        parquet = out.suffix == ".parquet"
        frame = pd.read_parquet(out) if parquet else pd.read_csv(out, dtype=str, keep_default_na=False)
        names = [n if n in frame.columns else f"'{n}" for n in quasi]
        cells = frame.astype(object).where(frame.notna(), "(missing)").astype(str)
        if len(frame) and int(cells.groupby(names, dropna=False).size().min()) < k:
            self.faults.append(f"a class of {out.name} holds fewer than k={k} rows")

    def run(self, *words: object) -> tuple[int, str, str]:
        """One command in this process."""
        args = [str(w) for w in words]
        out, err = io.StringIO(), io.StringIO()
        code, before = 0, sys.argv
        sys.argv = ["countervail", *args]
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        except BaseException:  # noqa: BLE001 -- whatever comes is what is looked for
            self.faults.append(f"{' '.join(args[:1])}: {traceback.format_exc()}")
            code = 99
        finally:
            sys.argv = before
        if "outside its declared" in err.getvalue():
            self.faults.append(f"{args[0]}: the proposed schema does not fit the file that it came from")
        told = err.getvalue() + (out.getvalue() if args[0] in ("risk", "check", "anonymize") else "")
        if "Traceback" in told:
            self.faults.append(f"{args[0]}: a traceback was printed")
        self.faults += [f"{args[0]} tells somebody's value" for s in self.secrets if s in told][:1]
        return code, out.getvalue(), err.getvalue()

    def some(self, *words: object) -> list[str]:
        return [str(w) for w in words] if self.chance.random() < 0.25 else []

    def page(self, name: str) -> list[str]:
        flag = "--report" if name in ("page", "sweep") else "-o"
        return [flag, str(self.folder / f"{name}.html")] if self.chance.random() < 0.15 else []

    def file(self) -> tuple[Path, list[str]]:
        """A file of made-up people, now and then a damaged one."""
        c = self.chance
        rows = c.choice((1, 3, 8, 20, 40, 60, 60, 90))
        columns = {}
        for i in range(c.randint(1, 6)):
            name, cells = self.column(rows, i)
            columns[name] = cells
        sep, flags = c.choice(SEPARATORS), []
        kind = c.random()
        frame = pd.DataFrame(columns)
        if kind < 0.08:
            path = self.folder / "d.parquet"
            frame.to_parquet(path, index=False)
        elif kind < 0.11:
            path = self.folder / "d.xlsx"
            frame.map(lambda v: "".join(ch for ch in str(v) if ch.isprintable()) if v is not None else v).to_excel(
                path, index=False
            )
        else:
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
            path = self.folder / c.choice(("d.csv", "d.csv", "d.csv.gz"))
            path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
        return path, flags

    def column(self, rows: int, i: int) -> tuple[str, list[object]]:
        c = self.chance
        kind = c.choice(("int", "float", "date", "label", "code", "secret", "odd", "one", "empty", "flag", "long"))
        name = c.choice(
            ("age", "Name", "PLZ", "Geburtsdatum", "city", "x", "Größe", "=sum", "salary", "class", "a b", "e-mail")
        )
        name = f"{name}{i}" if c.random() < 0.7 else f"{i}{name}"
        made = [self.cell(kind, c) for _ in range(rows)]
        if kind == "secret":
            self.secrets.update(str(v) for v in made)
        if c.random() < 0.3:
            made = [None if c.random() < 0.2 else v for v in made]
        return name, made

    def cell(self, kind: str, c: random.Random) -> object:
        if kind == "int":
            return str(c.choice((c.randint(0, 9), c.randint(18, 90), -5)))
        if kind == "float":
            return f"{c.gauss(1500, 700):.2f}".replace(".", c.choice((".", ".", ",")))
        if kind == "date":
            day = date(1950, 1, 1) + timedelta(c.randint(0, 20_000))
            return (
                day.strftime(c.choice(("%Y-%m-%d", "%Y-%m-%d", "%d.%m.%Y")))
                if self.seed % 3
                else day.strftime("%d/%m/%Y")
            )
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
        """As a person edits: some roles are changed."""
        lines = schema.read_text(encoding="utf-8").splitlines()
        for i, line in enumerate(lines):
            if line.startswith("role = ") and self.chance.random() < 0.4:
                lines[i] = f'role = "{self.chance.choice(("quasi", "quasi", "quasi", "attribute", "sensitive"))}"'
        schema.write_text("\n".join(lines), encoding="utf-8")


def faults_of(seed: int) -> list[str]:
    """What goes wrong in one case."""
    with tempfile.TemporaryDirectory() as folder:
        return Case(seed, Path(folder)).go()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--state", type=Path, default=Path("fuzz.json"))
    parser.add_argument("--only", type=int)
    asked = parser.parse_args()
    if asked.only is not None:
        sys.exit("\n".join(faults_of(asked.only)) or 0)
    kept = json.loads(asked.state.read_text()) if asked.state.exists() else {"done": 0, "faults": {}}
    for seed in range(kept["done"], asked.cases):
        if found := faults_of(seed):
            kept["faults"][str(seed)] = found
        kept["done"] = seed + 1
        if seed % 20 == 19 or found:
            asked.state.write_text(json.dumps(kept, indent=1))
    asked.state.write_text(json.dumps(kept, indent=1))
    sys.exit(f"{len(kept['faults'])} of {kept['done']} cases failed; see {asked.state}" if kept["faults"] else 0)
