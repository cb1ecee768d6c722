"""Every command on bundled rows, as first_use.py times it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_GIVEN = "{table} --schema {schema}"
_BEHIND = "--schema {schema} --against {table} --control {control}"
_AUDIT = f"audit {{answers}} {_BEHIND} --jobs 1 -o {{out}}/dossier.json"


@dataclass(frozen=True)
class Words:
    """A command, those that must have run before it, and the exit codes that say that it worked."""

    words: str
    before: tuple[str, ...] = ()
    ends: tuple[int, ...] = (0,)


_LEDGER = "ledger create {out}/people.ledger --dataset people --epsilon 4 --delta 1e-6"
COMMANDS = {
    "demo": Words("demo -o {out}"),
    "schema": Words("schema {table} -o {out}/people.toml"),
    "hierarchy": Words("hierarchy {table} age -o {out}/age.csv"),
    "risk": Words(f"risk {_GIVEN}"),
    "explain": Words(f"explain {_GIVEN} --rows {{rows}} --model {{model}} --k 10 -o {{out}}/answers.csv"),
    "anonymize": Words(f"anonymize {_GIVEN} --k 10 --keep credit_amount -o {{out}}/release.csv"),
    "check": Words(f"check {_GIVEN} --k 2", ends=(0, 1)),
    "rules": Words(f"rules {_GIVEN} --k 5"),
    "recommend": Words(f"recommend {_GIVEN} --priority correctness"),
    "dit": Words(f"dit {_GIVEN} --k 5 --sensitive job --json"),
    "holdout": Words(f"holdout {_GIVEN} --members {{out}}/members.csv --control {{out}}/others.csv"),
    "attack": Words(f"attack linkage {{answers}} {_BEHIND}"),
    "audit": Words(_AUDIT, ends=(0, 3)),
    "compare": Words(f"compare {_GIVEN} --model {{model}} --control {{control}} --answers 100"),
    "verify": Words("verify {out}/dossier.json", before=(_AUDIT,)),
    "proof": Words("proof dp-table"),
    "reproduce": Words("reproduce inuiguchi 6 --quick --store {out}/store -o {out}"),
    "warm": Words("warm demo --jobs 1"),
    "ledger create": Words(_LEDGER),
    "ledger show": Words("ledger show {out}/people.ledger", before=(_LEDGER,)),
    "ledger history": Words("ledger history {out}/people.ledger", before=(_LEDGER,)),
}


def check_complete() -> None:
    """Refuse a run that leaves a command out."""
    from countervail.cli import app

    def name(command: object, called: str | None) -> str:
        return called or str(getattr(command, "__name__", "")).replace("_", "-")

    there = {name(c.callback, c.name) for c in app.registered_commands}
    for group in app.registered_groups:
        held = group.typer_instance
        assert held is not None
        title = group.name or held.info.name
        there |= {f"{title} {name(c.callback, c.name)}" for c in held.registered_commands}
    if there != set(COMMANDS):
        raise SystemExit(f"first_use.py must time every command and no other; look at {sorted(there ^ set(COMMANDS))}.")


def write_files(folder: Path) -> dict[str, str]:
    """Bundled rows, others that were held out, their schema, people who ask, a model and answers, as files."""
    from countervail.core.files.frames import write_frame
    from countervail.core.files.schema_file import write_schema
    from countervail.explain import NICE
    from countervail.model import save_model, train_forest
    from countervail.study.first_uses import bundled_rows

    table, others = bundled_rows(1000).split(test_size=0.4, random_state=0)
    asking, control = others.split(test_size=0.5, random_state=0)
    model = train_forest(table, trees=20)
    endings = {"table": "csv", "control": "csv", "rows": "csv", "schema": "toml", "model": "skops", "answers": "json"}
    paths = {name: folder / f"{name}.{ending}" for name, ending in endings.items()}
    write_frame(table.frame, paths["table"])
    write_frame(control.frame, paths["control"])
    write_frame(control.frame.iloc[:10], paths["rows"])
    write_schema(table.schema, paths["schema"])
    save_model(model, paths["model"])
    answers = NICE().fit(table, model).explain(asking)
    paths["answers"].write_text(answers.to_json(), encoding="utf-8")
    return {name: str(path) for name, path in paths.items()}
