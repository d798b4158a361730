"""Options that several commands share, and the console they print on."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from prism_bench.catalogue import Catalogue, discover
from prism_bench.files import CACHE_REFUSED
from prism_bench.run_record import RunRecord
from prism_bench.strict_json import json_text
from prism_bench.workload import LABELS

CatalogueOption = Annotated[
    Path | None, typer.Option("--catalogue", help="a folder of <family>/<name>.cu + .py of your own")
]
FilterOption = Annotated[
    list[str] | None,
    typer.Option("--filter", "-f", help="kernel, alias, kernel:variant, family or full case name; may be repeated"),
]
LabelOption = Annotated[list[str] | None, typer.Option("--label", "-l", help="S0, S1 or S2; may be repeated")]
BackendOption = Annotated[str | None, typer.Option("--backend", "-b", help="cuda, numpy_reference, emulator or null")]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON and nothing else")]
LanesOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="processes that verify side by side before anything is timed; default: by device and cores"
    ),
]
RunsOption = Annotated[Path, typer.Option("--runs", help="where run records are kept")]
DEFAULT_RUNS = Path("reports/runs")


def out() -> Console:
    """Standard output; colour where a person sees it or FORCE_COLOR asks for it, never under NO_COLOR."""
    return plain_console(width=None if sys.stdout.isatty() else 160)


def err() -> Console:
    """Standard error, for progress and remarks."""
    return plain_console(stderr=True)


def plain_console(*, width: int | None = None, stderr: bool = False) -> Console:
    """Return a console that prints every string as it is.

    Names, reasons and errors come from specs and records, and may hold brackets and colons. Colour comes from `Text`
    and `style` alone, never from markup inside a string.
    """
    return Console(width=width, stderr=stderr, markup=False, emoji=False)


def open_catalogue(folder: Path | None) -> Catalogue:
    """The catalogue; each of its problems is said on standard error, the rest goes on."""
    catalogue = discover(folder)
    for problem in catalogue.problems:
        err().print(Text("catalogue", "red"), str(problem), highlight=False, soft_wrap=True)
    return catalogue


def chosen_labels(labels: list[str] | None, default=LABELS) -> tuple[str, ...]:
    """The labels asked for, or the default."""
    return tuple(labels) if labels else tuple(default)


def print_json(value) -> None:
    """One JSON document on standard output."""
    print(json_text(value, indent=1))


def cache_was_refused(record: RunRecord) -> bool:
    """Whether a case was skipped because the cache took no more: the machine's fault, so that nothing is well."""
    return any(case.status == "skipped" and (case.reason or "").startswith(CACHE_REFUSED) for case in record.cases)


def choose_backend(name: str | None, quiet: bool):
    """The backend's name and the sentence that says why it was chosen; the sentence is the first line of output."""
    from prism_bench.backends import open_backend, open_default

    if name:
        opened = open_backend(name)
        sentence = f"backend {name}: {opened.facts()['device']}"
    else:
        opened, sentence = open_default()
    (err() if quiet else out()).print(sentence, highlight=False, soft_wrap=True)
    return opened
