"""countervail audit: may this leave the house?"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from countervail.cli.shared.common import AsJson, check_ending, noted, progress, remark, say, say_json, table
from countervail.cli.shared.foreign import Asked, ForeignFile, OneHot, Query
from countervail.cli.shared.reading import read_table
from countervail.cli.shared.subjects import Hierarchies, read_what
from countervail.core.errors import ParameterError
from countervail.core.files.frames import text_writer, write_files

ENDINGS = (".html", ".json", ".pdf")


def audit(
    what: Annotated[
        Path | None,
        typer.Argument(
            help="Explanations (.json, ours or others'), a published table (.csv, .parquet), or a saved protector.",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", "-s", help="Schema file; `countervail schema DATA` proposes one.", show_default=False),
    ] = None,
    against: Annotated[Path | None, typer.Option(help="The people behind it, as a file of rows.")] = None,
    control: Annotated[
        Path | None, typer.Option(help="People of the same kind who were never in it, as a file of rows.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="With a saved protector that explains: its model (.skops).")
    ] = None,
    asked: Asked = None,
    query: Query = None,
    one_hot: OneHot = False,
    hierarchies: Hierarchies = None,
    appetite: Annotated[
        Path | None,
        typer.Option(
            help="How much risk is accepted, as TOML; exit code 3 on a rejection, or if an attack broke or had no time."
        ),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(help="Exit code 3 if this holds, such as 'linkage.excess.upper > 0.05'; may be repeated."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(help="An earlier dossier (.json); exit code 3 if anything got worse beyond its interval."),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write what was gated as JUnit XML (.xml).")] = None,
    budget: Annotated[str, typer.Option(help="Time for all of it, such as '90 s' or '5 min'.")] = "5 min",
    by: Annotated[
        str | None, typer.Option(help="A column of those who ask, or of people in a table: show the worst-off group.")
    ] = None,
    attacks: Annotated[
        list[str] | None, typer.Option("--attack", help="Only this attack; may be repeated. Default: all that apply.")
    ] = None,
    answers: Annotated[int, typer.Option(help="How many controls a protector is asked about.", min=1)] = 1000,
    jobs: Annotated[int | None, typer.Option(help="Processes; default: one per processor.", min=1)] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", "-o", help=f"The dossier, one of {', '.join(ENDINGS)}; may be repeated."),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            help="Sign the PDF with this certificate (.p12); its password is read from COUNTERVAIL_SIGN_PASSWORD."
        ),
    ] = None,
    allow_pickle: Annotated[
        bool, typer.Option(help="Open the model even if it is a pickle (it can run code).")
    ] = False,
    example_appetite: Annotated[
        bool, typer.Option("--example-appetite", help="Print an appetite file with comments, and stop.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """May this leave the house? Tries every attack that applies, and decides against a declared appetite.

    Each attack is tried on the people behind it, on people who were never in it, and on a leak planted for it.
    The verdict is 'release', 'not shown', 'reject' or, where a planted leak was not found, 'void'.

    Example: `countervail audit answers.json --schema people.toml --against people.csv --control others.csv
    -o dossier.html`

    In a pipeline: `countervail audit public.csv -s people.toml --against people.csv --control others.csv
    --appetite appetite.toml --fail-if "linkage.excess.upper > 0.05" --baseline last.json --junit audit.xml`
    """
    from countervail.auditing import Appetite, Audit
    from countervail.auditing import audit as run_audit
    from countervail.auditing.gate import Condition, check_gate
    from countervail.auditing.gate import junit as junit_text

    if example_appetite:
        typer.echo(Appetite.example(), nl=False)
        return
    if what is None or schema is None or against is None or control is None:
        raise ParameterError("Say what is audited, and give --schema, --against (its people) and --control (others).")
    for path in output or ():
        check_ending(path, ENDINGS, what, schema, against, control, model, appetite, baseline)
    check_ending(junit, (".xml",), what, schema, against, control)
    for text in fail_if or ():
        Condition.parse(text)
    if sign is not None and not any(p.suffix == ".pdf" for p in output or ()):
        raise ParameterError("--sign signs a PDF: name one with -o dossier.pdf.")
    before = None if baseline is None else Audit.read(baseline)
    accepted = None if appetite is None else Appetite.read(appetite)
    people, others = read_table(against, schema), read_table(control, schema)
    with progress("Attacking", quiet=as_json) as tick:
        made = run_audit(
            read_what(what, (people, others), ForeignFile(asked, query, one_hot), model, allow_pickle, hierarchies),
            people,
            control=others,
            appetite=accepted,
            budget=budget,
            by=by,
            attacks=attacks or None,
            answers=answers,
            jobs=jobs,
            progress=tick,
        )
    made = replace(made, caveats=(*made.caveats, *noted())).about(what)
    gates = check_gate(made, fail_if or [], before, verdict=appetite is not None)
    texts = {p: made.to_json() if p.suffix == ".json" else made.to_html() for p in output or () if p.suffix != ".pdf"}
    writers = {p: text_writer(t) for p, t in texts.items()}
    if junit is not None:
        writers[junit] = text_writer(junit_text(gates))
    write_files(writers)
    for path in (p for p in output or () if p.suffix == ".pdf"):
        made.to_pdf(path, certificate=sign, password=os.environ.get("COUNTERVAIL_SIGN_PASSWORD"))
    failed = [g for g in gates if not g.passed]
    if as_json:
        gated = [{"gate": g.name, "passed": g.passed, "why": g.why} for g in gates]
        say_json({**made.to_dict(), "gates": gated})
    else:
        _tell(made)
    for path in (*(output or ()), *([] if junit is None else [junit])):
        remark(f"Written: {path}")
    for gate in failed:
        remark(f"Gate closed: {gate.name}: {gate.why}")
    if failed:
        raise typer.Exit(3)


def _tell(made: object) -> None:
    from countervail.auditing import Audit
    from countervail.auditing.written.dossier import influence_line, lead_of, share

    assert isinstance(made, Audit)
    say(lead_of(made))
    say(f"Verdict: {made.verdict}. {made.sentence}")
    table(
        ["recipient", "criterion", "accepted", "verdict"],
        [[d.recipient, d.criterion, f"{d.threshold:g}", d.word] for d in made.decisions if d.threshold is not None],
    )
    rows = [
        [f.attack, f.criterion, share(f.counts.excess()), "found" if f.found_planted else "NOT FOUND"]
        if f.status == "run"
        else [f.attack, f.criterion, f"{f.status}: {f.why}", ""]
        for f in made.findings
    ]
    say("")
    table(["attack", "criterion", "excess over others", "planted leak"], rows)
    for d in made.decisions:
        if d.word != "release":
            say(f"{d.recipient}, {d.criterion}: {d.word}: {'; '.join(d.reasons)}.")
    if line := influence_line(made):
        say(line)
    for text in (*made.caveats, *made.steps):
        say(f"- {text}")
