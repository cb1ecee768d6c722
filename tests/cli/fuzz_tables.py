"""Made-up tables and files, good and bad, sent through all commands.

Of every case it must hold: no traceback, nobody's value in a message or on a page, and every table that was written
has k people in each class, counted by pandas. `python tests/cli/fuzz_tables.py --cases 50000 --state fuzz.json` goes on
where it stopped; a case is repeated with `--only SEED`. Dear commands are drawn rarely, so that an hour is enough.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from functools import cache
from pathlib import Path

import pandas as pd
import typer
from made_up import MadeUp

import countervail.cli
from countervail.core.errors import SchemaError
from countervail.core.files.schema_file import read_schema
from countervail.core.schema import Schema

QUIET = (
    *("risk", "check", "anonymize", "dit", "rules", "audit", "attack", "recommend", "ledger", "compare", "verify"),
    *("holdout", "reproduce"),
)
EXPLAINERS = ("cfk", "cfk", "cfk", "nice", "private-synthetic", "private-histograms", "noisy-counterfactual")
ATTACKS = ("linkage", "singling-out", "membership", "reidentification", "attribute-inference", "linkability", "shallow")
# How often each is drawn; recommend and compare train models many times over.
OFTEN = {
    "risk": 0.3,
    "hierarchy": 0.2,
    "anonymize": 0.5,
    "sweep": 0.02,
    "rules": 0.08,
    "explain": 0.1,
    "dit": 0.08,
    "budget": 0.04,
    "previous": 0.06,
    "patterns": 0.02,
    "holdout": 0.06,
    "reproduce": 0.002,
    "attack": 0.05,
    "audit": 0.02,
    "recommend": 0.004,
    "compare": 0.002,
}
DECIDED = {"explain", "attack", "audit", "recommend", "compare", "rules", "patterns"}


class Case:
    """One seed: a table, a file of it, and what is done with them."""

    def __init__(self, seed: int, folder: Path, *only: str) -> None:
        self.chance, self.folder = random.Random(seed), folder
        self.wanted = [name for name, often in OFTEN.items() if self.chance.random() < often]
        self.wanted = list(only) or self.wanted or ["anonymize"]
        decided = bool(DECIDED & set(self.wanted)) and self.chance.random() < 0.8
        named = "previous" in self.wanted and self.chance.random() < 0.8
        self.made = MadeUp(self.chance, folder, seed, decided=decided, named=named)
        self.faults: list[str] = []
        self.ran: Counter[str] = Counter()
        self.data, self.flags, self.schema, self.told = folder, [""], folder / "s.toml", ""

    def go(self) -> list[str]:
        """Run the commands that were drawn; what went wrong."""
        self.data, self.flags = self.made.written()
        code, _, _ = self.run("schema", self.data, "-o", self.schema, *self.flags, *self.some("--json"))
        if code or not self.schema.exists():
            self.run("risk", self.data, "-s", self.schema, *self.flags)
            return self.faults
        self.made.edit(self.schema)
        try:
            known = read_schema(self.schema)
        except SchemaError:
            if self.on("risk")[0] != 2:
                self.faults.append("risk: a schema that cannot be read is taken")
            return self.faults
        if not known.names("identifier"):  # labels that several have, if they are nobody's names
            self.made.secrets -= self.made.repeated
        for name in self.wanted:
            getattr(self, name)(known)
        return self.faults

    def on(self, command: str, *words: object) -> tuple[int, str, str]:
        """A command on the file."""
        return self.run(command, self.data, "-s", self.schema, *self.flags, *words)

    def risk(self, known: Schema) -> None:
        self.on("risk", "--k", self.chance.randint(1, 12), *self.page("-o", "risk"), *self.some("--json"))

    def hierarchy(self, known: Schema) -> None:
        name = self.chance.choice([*known.names(), "nobody"])
        self.run("hierarchy", self.data, name, *self.some("-s", self.schema), *self.flags)

    def anonymize(self, known: Schema) -> None:
        k = self.chance.choice((1, 2, 2, 3, 5, 10))
        out = self.published(known, k)
        if out is None:
            return
        self.recount(out, known.names("quasi"), k)
        each = re.search(r"--rows-per-person (\d+)", self.told)
        whose = ("--rows-per-person", each[1]) if each is not None else ("--rows-are-people",)
        said, _, _ = self.run("check", out, "-s", self.schema, "--k", k, *whose, *self.page("-o", "check"))
        if said != 0:
            self.faults.append(f"check says {said} of a table that anonymize wrote")

    def published(self, known: Schema, k: int) -> Path | None:
        """A table that was let go, or None."""
        out = self.folder / self.chance.choice(("p.csv", "p.csv", "p.csv.gz", "p.parquet"))
        words: list[object] = ["-o", out, "--k", k, *self.page("--report", "page"), *self.some("--json")]
        if self.chance.random() < 0.1:
            words += ["--method", "microaggregation", *self.some("--algorithm", "v-mdav")]
        else:
            words += self.some("--labels", self.chance.choice(("tight", "hierarchy"))) + self.some("--suppress", "0.1")
            words += self.some("--mode", self.chance.choice(("relaxed", "local")))
            words += self.some("--by-class") if known.target is not None or self.chance.random() < 0.1 else []
            others = known.names("sensitive", "attribute", "target") or known.names()
            words += self.some("--l", "2", "--sensitive", self.chance.choice(others))
            words += self.grouped(known) if self.chance.random() < 0.2 else []
        for name in known.names("sensitive", "attribute", "target"):
            words += ["--keep", name]
        code, told, err = self.on("anonymize", *words)
        self.told = told + err
        return None if code or not out.exists() else out

    def grouped(self, known: Schema) -> list[str]:
        """Hierarchies as they are proposed for some columns, of which now and then one is damaged."""
        folder = self.folder / "groups"
        folder.mkdir(exist_ok=True)
        for name in known.names("quasi"):
            path = folder / f"{name.replace('/', '-')}.csv"
            self.run("hierarchy", self.data, name, "-s", self.schema, "-o", path, *self.flags)
            if path.exists() and self.chance.random() < 0.05:
                self.damaged(path)
        return ["--hierarchies", str(folder)]

    def previous(self, known: Schema) -> None:
        """A table that grows: some leave, some come, some change; every release has k people in each class."""
        k, roster, outs = self.chance.choice((2, 2, 3)), self.folder / "r.roster", []
        kept = [x for n in known.names("sensitive", "attribute", "target") for x in ("--keep", n)]
        kept += ["--person", self.chance.choice(known.names("identifier") or known.names())]
        kept += self.some("--method", "microaggregation") + self.some("--changed", "publish")
        for month in range(3):
            out = self.folder / f"month{month}.csv"
            code, _, _ = self.on("anonymize", "--previous", roster, "--k", k, "-o", out, *kept)
            if code:
                return
            self.recount(out, known.names("quasi"), k)
            outs.append(pd.read_csv(out, dtype=str, keep_default_na=False))
            if month and len(set(map(tuple, outs[-1].to_numpy()))) and self.data.suffix == ".csv" and not self.flags:
                quasi = [n if n in outs[-1].columns else f"'{n}" for n in known.names("quasi")]
                self.still(outs[-2], outs[-1], quasi, k)
            self.grow()

    def still(self, before: pd.DataFrame, now: pd.DataFrame, quasi: list[str], k: int) -> None:
        """Classes that are in both releases hold k rows that are the same in both, or none."""
        sizes = [f.groupby(quasi).size() for f in (before, now)]
        both = sizes[0].index.intersection(sizes[1].index)
        if len(both) and int(sizes[1][both].min()) < k:
            self.faults.append("previous: a class that leaves again holds fewer than k rows")

    def grow(self) -> None:
        """The next month of the file: others come, and of those who were there some leave or change."""
        if self.data.suffix != ".csv" or self.flags:
            return
        try:
            rows = pd.read_csv(self.data, dtype=str, keep_default_na=False, encoding_errors="replace")
        except pd.errors.ParserError:
            return
        if len(rows.columns) != len(self.made.columns):  # another separator, or another encoding
            return
        kept = rows[[self.chance.random() < 0.95 for _ in range(len(rows))]]
        if len(kept) and self.chance.random() < 0.5:
            name = self.chance.choice(list(kept.columns))
            kept = kept.assign(**{name: [self.chance.choice(list(kept[name])) for _ in range(len(kept))]})
        more = self.made.frame(self.chance.choice((2, 10, 30))).set_axis(list(rows.columns), axis=1)
        pd.concat([kept, more.fillna("")]).to_csv(self.data, index=False)

    def patterns(self, known: Schema) -> None:
        """Rules that are written, read back and published as patterns; or damaged in between."""
        rules = self.folder / "rules.json"
        code, _, _ = self.on("rules", "--k", "2", "-o", rules, *self.some("--exact-bounds"))
        if code == 0:
            if self.chance.random() < 0.3:
                self.damaged(rules)
            words = self.some("--objects", "min") + self.some("--undescribed", "widen") + self.some("--spread")
            out = self.folder / "k.csv"
            self.on("anonymize", "--method", "k-common", "--rules", rules, "--k", "2", "-o", out, *words)

    def sweep(self, known: Schema) -> None:
        self.on("anonymize", "--sweep", "k=2,4", *self.page("--report", "sweep"))

    def rules(self, known: Schema) -> None:
        self.on("rules", "--k", "2", *self.page("-o", "rules"), *self.some("--json"))

    def dit(self, known: Schema) -> None:
        column = self.chance.choice(known.names("sensitive", "attribute") or known.names())
        words = self.some("--method", self.chance.choice(("microaggregation", "k-common", "dp-table")))
        words = words or ["--k", str(self.chance.choice((1, 2, 5))), *self.some("--l", "2")]
        self.on("dit", *words, *self.some("--json"), "--sensitive", column, "--records", "2", *self.page("-o", "dit"))

    def explain(self, known: Schema) -> None:
        self.answers(known)

    def answers(self, known: Schema) -> Path | None:
        """Explanations that were written, or None."""
        out = self.folder / self.chance.choice(("e.json", "e.json", "e.csv", "e.html", "e.txt"))
        method = self.chance.choice(EXPLAINERS)
        words: list[object] = ["-o", out, "--method", method, *self.some("--json"), *self.some("--n", "2")]
        words += ["--k", self.chance.choice((2, 2, 5))] if method == "cfk" else []
        words += self.some("--search", self.chance.choice(("exact", "grasp"))) if method == "cfk" else []
        words += self.some("--save", self.folder / "kept.json") if method in ("cfk", "private-synthetic") else []
        words += self.some("--target", "other") + self.some("--immutable", self.chance.choice(known.names()))
        if method not in ("cfk", "nice") or self.chance.random() < 0.3:
            words += ["--rows", self.made.written("r", 3, damage=False)[0] if self.flags else self.data]
        words += self.some("--language", self.chance.choice(("de", "fr", "nl", "nl", "xx")))
        code, _, _ = self.on("explain", *words)
        return out if not code and out.suffix == ".json" and out.exists() else None

    def budget(self, known: Schema) -> None:
        """A ledger, something counted in it, and what it shows."""
        ledger, epsilon = self.folder / "b.ledger", self.chance.choice(("0.5", "4", "4", "4", "-1", "nan", "1e400"))
        words = self.some("--delta", "1e-6") + self.some("--plan", self.chance.choice(("0.1", "0.1:5,1:1", "x")))
        self.run("ledger", "create", ledger, "--dataset", "people", "--epsilon", epsilon, *words)
        counted = ["--ledger", ledger, "--dataset", self.chance.choice(("people", "people", "others"))]
        out = self.folder / "n.csv"
        method = self.some("--method", "dp-table", "--epsilon", "1") or ["--k", "2"]
        self.on("anonymize", "-o", out, *method, *counted)
        self.run("ledger", "show", ledger, *self.some("--check"), *self.some("--json"))
        shown = self.folder / self.chance.choice(("h.html", "h.json", "h.csv"))
        self.run("ledger", "history", ledger, *self.some("-o", shown), *self.some("--json"))

    def against(self, known: Schema) -> tuple[Path, list[object]] | None:
        """Something that was released, with its people and others."""
        what = self.answers(known) if self.chance.random() < 0.5 else self.published(known, 2)
        if what is None:
            return None
        control, _ = self.made.written("c", self.chance.choice((5, 25, 40)), damage=False)
        if self.flags:  # they would hold for the file of the others too
            return None
        return what, ["-s", self.schema, "--against", self.data, "--control", control]

    def attack(self, known: Schema) -> None:
        if (found := self.against(known)) is not None:
            what, words = found
            self.run("attack", self.chance.choice(ATTACKS), what, *words, "--targets", "20", *self.some("--json"))
            if what.suffix == ".json":
                self.run("check", what, "-s", self.schema, "--against", self.data, "--k", "2", *self.page("-o", "ck"))

    def audit(self, known: Schema) -> None:
        if (found := self.against(known)) is None:
            return
        what, words = found
        dossier = self.folder / "a.json"
        more = [x for name in self.chance.sample(ATTACKS, 2) for x in ("--attack", name)]
        more += self.some("-o", self.folder / "a.html") + self.some("-o", self.folder / "a.pdf")
        more += self.some("--junit", self.folder / "a.xml") + self.some("--by", self.chance.choice(known.names()))
        code, _, _ = self.run("audit", what, *words, "--jobs", "1", *more, "-o", dossier, *self.some("--json"))
        if code == 0:
            self.run("verify", dossier, *self.some("-s", self.schema), *self.some("--file", what))
            text = self.damaged(dossier)
            if self.run("verify", dossier)[0] == 0 and json.loads(text) != json.loads(dossier.read_text("utf-8")):
                self.faults.append("verify: a damaged dossier holds")

    def damaged(self, path: Path) -> str:
        """A file of ours with a few characters changed, or cut off; the text that it had."""
        text, c = path.read_text(encoding="utf-8"), self.chance
        if c.random() < 0.2:
            path.write_text(text[: c.randrange(len(text))], encoding="utf-8")
            return text
        changed = list(text)
        for _ in range(c.choice((1, 1, 2, 5))):
            changed[c.randrange(len(text))] = c.choice('0173"]}{[,x-')
        path.write_text("".join(changed), encoding="utf-8")
        return text

    def holdout(self, known: Schema) -> None:
        """People set aside: both parts together are the file, nobody is in both, and the members can be released."""
        parts = [self.folder / self.chance.choice((f"{n}.csv", f"{n}.csv.gz", f"{n}.parquet")) for n in ("in", "out")]
        share = self.some("--share", self.chance.choice(("0.1", "0.5", "0.9", "0", "1", "nan")))
        code, out, _ = self.on("holdout", "--members", parts[0], "--control", parts[1], *share, "--json")
        if code:
            return
        told = json.loads(out)
        frames = [pd.read_parquet(p) if p.suffix == ".parquet" else pd.read_csv(p, dtype=str) for p in parts]
        rows = [len(f) for f in frames]
        if rows != [told["members"]["rows"], told["control"]["rows"]] or not all(rows):
            self.faults.append("holdout: the files hold other rows than it says")
        if named := known.names("identifier"):
            held = [f.set_axis([str(n).removeprefix("'") for n in f.columns], axis=1)[named] for f in frames]
            both = [set(map(tuple, f.dropna().astype(str).to_numpy())) for f in held]
            if both[0] & both[1]:
                self.faults.append("holdout: somebody is in both files")
        if self.run("risk", parts[1], "-s", self.schema)[0] != self.on("risk")[0]:
            self.faults.append("holdout: what it wrote is not read as the file was")
        k = self.chance.choice((1, 2, 2, 5))
        kept = [x for name in known.names("sensitive", "attribute", "target") for x in ("--keep", name)]
        self.run("anonymize", parts[0], "-s", self.schema, "--k", k, "-o", self.folder / "held.csv", *kept)

    def reproduce(self, known: Schema) -> None:
        """A small table of a paper, taken up from pieces that were damaged."""
        store, out = self.folder / "pieces", self.folder / "found"
        words = ("reproduce", "goethals", "4", "--quick", "--store", store)
        self.run(*words, "-o", out)
        for piece in sorted(p for p in store.rglob("*") if p.is_file() and self.chance.random() < 0.5):
            self.damaged(piece)
        self.run(*words, "--json")
        for record in sorted(out.glob("*.json")):
            self.damaged(record)
        self.run(*words, "-o", out)

    def recommend(self, known: Schema) -> None:
        words = ["--people", "3", "--runs", "1", "--seeds", "1", "--audit-draws", "0", "--neighbours", "3"]
        self.on("recommend", *words, *self.page("-o", "choice"), *self.some("--json"))

    def compare(self, known: Schema) -> None:
        self.on("compare", "--answers", "5", *self.page("-o", "compared"), *self.some("--json"))

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
        self.ran[args[0]] += 1
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), one_command():
                countervail.cli.main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
        except BaseException:  # noqa: BLE001 -- whatever comes is what is looked for
            self.faults.append(f"{' '.join(args[:1])}: {traceback.format_exc()}")
            code = 99
        finally:
            sys.argv = before
        self.look(args, out.getvalue(), err.getvalue())
        return code, out.getvalue(), err.getvalue()

    def look(self, args: list[str], out: str, err: str) -> None:
        """What a command said and showed must hold nobody's value."""
        others = args[0] in ("attack", "audit", "explain") or "--previous" in args  # files of other people
        if "outside its declared" in err and not others:
            self.faults.append(f"{args[0]}: the proposed schema does not fit the file that it came from")
        told = err + (out if args[0] in QUIET else "")
        if "Traceback" in told:
            self.faults.append(f"{args[0]}: a traceback was printed")
        if args[0] != "explain":
            told += "".join(p.read_text(encoding="utf-8") for p in self.folder.glob("*.html") if p.name != "e.html")
        self.faults += [f"{args[0]} tells somebody's value" for s in self.made.secrets if s in told][:1]

    def some(self, *words: object) -> list[str]:
        return [str(w) for w in words] if self.chance.random() < 0.25 else []

    def page(self, flag: str, name: str) -> list[str]:
        return [flag, str(self.folder / f"{name}.html")] if self.chance.random() < 0.06 else []


@cache
def _command() -> object:
    return typer.main.get_command(countervail.cli.app)


@contextlib.contextmanager
def one_command() -> object:
    """The command line, put together once: that takes as long as most commands on a few rows."""
    whole = _command()
    before, countervail.cli.app = countervail.cli.app, whole
    try:
        yield
    finally:
        countervail.cli.app = before


def faults_of(seed: int, *only: str) -> list[str]:
    """What goes wrong in one case."""
    with tempfile.TemporaryDirectory() as folder:
        return Case(seed, Path(folder), *only).go()


def _go_on(asked: argparse.Namespace) -> int | str:
    kept = json.loads(asked.state.read_text()) if asked.state.exists() else {"done": 0, "faults": {}}
    ran, start = Counter(kept.get("ran", {})), time.process_time()
    before = kept.get("seconds", 0.0)
    for seed in range(kept["done"], asked.cases):
        with tempfile.TemporaryDirectory() as folder:
            case = Case(seed, Path(folder))
            found = case.go()
        ran += case.ran
        if found:
            kept["faults"][str(seed)] = found
        kept |= {"done": seed + 1, "ran": dict(ran), "seconds": round(before + time.process_time() - start, 1)}
        if seed % 50 == 49 or found:
            asked.state.write_text(json.dumps(kept, indent=1))
    asked.state.write_text(json.dumps(kept, indent=1))
    return f"{len(kept['faults'])} of {kept['done']} cases failed; see {asked.state}" if kept["faults"] else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--state", type=Path, default=Path("fuzz.json"))
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    sys.exit("\n".join(faults_of(given.only)) or 0 if given.only is not None else _go_on(given))
