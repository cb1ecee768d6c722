"""countervail reproduce: every table and figure of the papers, theirs beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countervail.cli.shared.common import AsJson, note, progress, remark, say, say_json, table
from countervail.core.errors import ParameterError

if TYPE_CHECKING:
    from countervail.study.reproduce import Reproduction
    from countervail.study.reproduce.values import Exhibit, Publication, Size


def reproduce(
    paper: Annotated[
        str | None,
        typer.Argument(help="A paper, by its name in the list; without, all are listed.", show_default=False),
    ] = None,
    exhibit: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE", help="A table or figure: 6, fig4; without, all of the paper.", show_default=False
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All papers, one after the other.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer people and settings: minutes, not hours.")] = False,
    jobs: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="Chooses splits, samples and models.", min=0)] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for the results (.json) and pictures (.svg).")
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Write over what is recorded; in a checkout, from a commit alone.")
    ] = False,
    store: Annotated[
        Path | None, typer.Option(help="Folder of finished pieces; default: in the cache folder.", show_default=False)
    ] = None,
    pages: Annotated[
        Path | None, typer.Option(help="Write the pages of all records into this folder, and compute nothing.")
    ] = None,
    times: Annotated[
        bool,
        typer.Option("--times", help="Write down what finished pieces took, for the list of missing full records."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compute a table or figure of a paper anew: its figures beside ours, with intervals, and why they differ.

    Without a paper, all there is is listed. A run that is stopped goes on where it was. What was recorded is written
    over only with --record.

    Example: `countervail reproduce goethals 6 --quick --jobs 2 -o results`
    """
    from countervail.study.reproduce.catalogue import check_possible, find_exhibit, find_paper, papers, possible

    if times:
        _write_times(store)
    if pages is not None:
        _write_pages(pages)
    if times or pages is not None:
        return
    if paper is None and not everything and not quick:
        _list(list(papers().values()), as_json=as_json)
        return
    chosen: list[tuple[Publication, Exhibit]] = []
    for one in papers().values() if paper is None else [find_paper(paper)]:
        if exhibit is not None:
            wanted = find_exhibit(one, exhibit)
            check_possible(one, wanted)
            chosen.append((one, wanted))
        else:
            able = possible(one)
            chosen += [(one, e) for e in able]
            for left in (e for e in one.exhibits if e not in able):
                note(f"Left out: {one.id} {left.id} ({left.why_not or 'its data or extra is not on this machine'}).")
    folder = _folder(output, record)
    size: Size = "quick" if quick else "full"
    found = [_run(p, e, size, seed, jobs, store, folder, record, as_json) for p, e in chosen]
    if as_json:
        say_json({"results": [f.to_dict() for f in found]} if exhibit is None else found[0].to_dict())


def _run(
    paper: Publication,
    exhibit: Exhibit,
    size: Size,
    seed: int,
    jobs: int,
    store: Path | None,
    folder: Path | None,
    record: bool,
    quiet: bool,
) -> Reproduction:
    """Compute one, show it, and write it down."""
    from countervail.study.reproduce import reproduce as computed
    from countervail.study.reproduce.record import record_path, write_record

    if folder is not None and not record and (there := record_path(folder, paper.id, exhibit.id, size)).exists():
        raise ParameterError(
            f"'{there.name}' is recorded already, and a recorded result is never written over unless --record says so."
        )
    with progress(f"{paper.id} {exhibit.id}", quiet=quiet) as tick:
        found = computed(
            paper.id,
            exhibit.id,
            size=size,
            seed=seed,
            store=store,
            n_jobs=jobs,
            progress=tick,
        )
    if not quiet:
        say(found.to_text() + "\n")
    if folder is not None:
        own = folder != _records()  # pages draw the pictures of records
        path = write_record(found, folder, replace=record, picture=own)
        remark(f"Written to {path.name}{' and its picture' if own else ''}.")
    return found


def _folder(output: Path | None, record: bool) -> Path | None:
    from countervail.study.reproduce.record import check_recordable, records_folder

    if output is not None and output.exists() and not output.is_dir():
        raise ParameterError(f"--output must be a folder. '{output.name}' is a file.")
    if record:
        check_recordable()
        return output if output is not None else records_folder()
    return output


def _records() -> Path | None:
    from countervail.study.reproduce.record import checkout, records_folder

    return records_folder() if checkout() is not None else None


def _list(every: list[Publication], *, as_json: bool) -> None:
    from countervail.study.reproduce.catalogue import missing

    if as_json:
        say_json(
            {
                p.id: {
                    "title": p.title,
                    "authors": p.authors,
                    "also": list(p.also),
                    "tables": [
                        {
                            "id": e.id,
                            "title": e.title,
                            "needs": list(e.needs),
                            "missing": list(missing(e)),
                            "why_not": e.why_not,
                        }
                        for e in p.exhibits
                    ],
                }
                for p in every
            }
        )
        return
    for p in every:
        say(f"\n{p.id}: {p.title}, {p.authors} (also: {', '.join(p.also)})")
        table(["table", "what", "needs"], [[e.id, e.title, _needs(e)] for e in p.exhibits])
    say("\nRun one: countervail reproduce PAPER TABLE --quick. All at once: countervail reproduce --all --quick")


def _needs(exhibit: Exhibit) -> str:
    from countervail.data.registry import REGISTERED
    from countervail.study.reproduce.catalogue import missing

    if exhibit.entries is None:
        return f"not reproducible: {exhibit.why_not}"
    asked = [n for n in exhibit.needs if n in REGISTERED]
    absent = missing(exhibit)
    words = f"{len(asked)} registered set(s)" if len(asked) > 2 else ", ".join(asked)
    extra = f"; pip install 'countervail[{exhibit.extra}]'" if exhibit.extra else ""
    return (f"{words}{f' (not here: {chr(44).join(absent)})' if absent else ''}" if asked else "nothing") + extra


def _write_pages(folder: Path) -> None:
    from countervail.study.reproduce.pages import write_pages
    from countervail.study.reproduce.record import records_folder

    for path in write_pages(records_folder(), folder):
        remark(f"Written: {path.name}")


def _write_times(store: Path | None) -> None:
    from countervail.study.reproduce.kept import usual_folder
    from countervail.study.reproduce.outlook import write_times
    from countervail.study.reproduce.record import records_folder

    remark(f"Written: {write_times(records_folder(), store if store is not None else usual_folder()).name}")
