"""Options that several commands share, their output, and the consoles that they print to."""

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, RenderableType
from rich.text import Text

from prism_bench.errors import ResultsError, UsageError
from prism_bench.io import project
from prism_bench.io.documents import json_text
from prism_bench.io.files import CACHE_REFUSED, is_bundled
from prism_bench.io.installation import NOT_INSTALLED

if TYPE_CHECKING:
    from prism_bench.backends import Backend
    from prism_bench.catalogue import Catalogue
    from prism_bench.record.run_record import RunRecord


# Options that several commands share, and the consoles that they print on.

CasesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CASES]...", help="Choose kernels, aliases, kernel:variant, families or full case names; default: all."
    ),
]
FilterOption = Annotated[
    list[str] | None, typer.Option("--filter", "-f", metavar="CASE", help="Choose as CASES does; may be repeated.")
]
CatalogueOption = Annotated[
    Path | None,
    typer.Option(
        "--catalogue",
        help="Read kernels from this folder of <family>/<name>.cu and .py; default: the configured or bundled one.",
    ),
]
LabelOption = Annotated[
    list[str] | None,
    typer.Option("--label", "-l", metavar="LABEL", help="Choose workloads S0, S1 or S2; may be repeated."),
]
BackendOption = Annotated[
    str | None, typer.Option("--backend", "-b", help="Use the backend cuda, numpy_reference, emulator or null.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print every complaint whole, and the host code that compile cuts out.")
]
LanesOption = Annotated[
    int | None,
    typer.Option(min=1, help="Verify in this many processes before anything is timed; default: by device and cores."),
]


AllOption = Annotated[bool, typer.Option("--all", "-a", help="Leave nothing out.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show this many rows.")]
PartOption = Annotated[
    str | None,
    typer.Option(
        "--part",
        metavar="I/N",
        help="Choose the I-th of N shares of the kernels, with their variants; see store merge.",
    ),
]
OutputOption = Annotated[
    list[Path] | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write this file, in the form of its ending; may be repeated."),
]
ArchitectureOption = Annotated[
    list[str] | None,
    typer.Option("--arch", metavar="SM", help="Compile for this compute capability, such as 90; may be repeated."),
]


def writable(path: Path | None) -> Path | None:
    """Return the path of `--output`; a UsageError, before anything is measured, where no file can be written there."""
    if path and path.is_dir():
        raise UsageError(f"--output {path}: it is a folder; name a file")
    return path and _below(path, path.parents)


def writable_folder(path: Path) -> Path:
    """Return the folder of `--output`; a UsageError where no file can be written below it."""
    return _below(path, (path, *path.parents))


def _below(path: Path, folders: Iterable[Path]) -> Path:
    """Return the path; a UsageError where the first of the folders that is there takes no file."""
    folder = next(folder for folder in folders if os.path.lexists(folder))
    if not folder.is_dir():
        raise UsageError(f"--output {path}: {folder} is no folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"--output {path}: {folder} cannot be written")
    return path


def written_forms(files: Sequence[Path] | None, endings: Sequence[str], *, appends: bool = False) -> dict[str, Path]:
    """Return the files of `--output` by their endings; a UsageError for one that cannot be written, or twice.

    `endings` are those that the command can write: `.md`. A command that `appends` finds out itself, before its work,
    whether it can write an existing file, which may be in a folder that takes no new one.
    """
    forms: dict[str, Path] = {}
    for file in files or ():
        ending = file.suffix.lower()
        if ending not in endings:
            raise UsageError(f"--output {file}: its ending is none of {', '.join(endings)}, which can be written here")
        if ending in forms:
            raise UsageError(f"--output {file}: {forms[ending]} is written in this form")
        forms[ending] = file
        if not (appends and file.is_file()):
            writable(file)
    return forms


def _named(folder: Path) -> Path:
    """Return the folder by a path that ends with its name: other results are in folders next to it."""
    return folder if folder.name not in ("", "..") else folder.resolve()


RecordFileOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        callback=writable,
        help="Write the record to this file, not <runs>/<machine>/<UTC>-<commit>.json.gz.",
    ),
]
SiteOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="FOLDER", callback=writable_folder, help="Write the site into this folder."),
]
SourceOption = Annotated[
    Path | None,
    typer.Option("--from", metavar="FILE", help="Read this record, or the newest of this folder; measure nothing."),
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", min=0, metavar="N", help="Set the seed of everything random.")
]
TrustOption = Annotated[
    bool, typer.Option("--trust-source", help="Run source without a jail: your own, or what you trust as much.")
]
WriteOption = Annotated[
    bool, typer.Option("--write", help="Write files that are kept: the table of compile, the kernels of fuse.")
]
METRIC = "Choose a metric, such as hot_time; default: the main one, of trend all."
MACHINE = "Use only records of this machine, by its name."
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and change nothing.")]
SecondsOption = Annotated[
    float | None,
    typer.Option(
        "--seconds", min=0, metavar="SECONDS", help="Measure for this time; default: doctor 10, monitor without end."
    ),
]
RunsOption = Annotated[Path, typer.Option("--runs", help="Set the folder of run records.", callback=_named)]
RecordArgument = Annotated[Path | None, typer.Argument(help="Read this run record; default: the newest one.")]
TimeLimitOption = Annotated[
    float | None, typer.Option("--time-limit", min=1, help="Begin nothing that would end later than these seconds.")
]
RecordsOption = Annotated[
    Path | None, typer.Option("--records", help="Keep the records that were measured in this folder.")
]
DEFAULT_RUNS = Path("reports/runs")  # in a project below its storage, as every default below reports/


def out() -> Console:
    """Return the console of standard output: colour on a terminal or with FORCE_COLOR, never with NO_COLOR.

    It is as wide as the terminal, or as COLUMNS; 160 characters in a pipe.
    """
    return plain_console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 160)


def err() -> Console:
    """Return the console of standard error, for progress and remarks."""
    return plain_console(stderr=True)


def plain_console(*, width: int | None = None, stderr: bool = False) -> Console:
    """Return a console that prints every string as it is.

    Names, reasons and errors come from specs and records, and may hold brackets and colons. Colour comes from `Text`
    and `style` alone, never from markup inside a string.
    """
    return Console(width=width, stderr=stderr, markup=False, emoji=False)


def line(text: str, style: str | None = None) -> None:
    """Print one line on standard output, however long."""
    out().print(text, style=style, highlight=False, soft_wrap=True)


def remark(text: str, style: str | None = None) -> None:
    """Print one line on standard error, however long."""
    err().print(text, style=style, highlight=False, soft_wrap=True)


def open_catalogue(folder: Path | None) -> "Catalogue":
    """Return the catalogue of the option or the project; print its problems on standard error, and keep the rest."""
    from prism_bench.catalogue import of_project

    catalogue = of_project(catalogue_folder(folder))
    for problem in catalogue.problems:
        err().print(Text("catalogue", "red"), str(problem), highlight=False, soft_wrap=True)
    return catalogue


def catalogue_folder(folder: Path | None) -> Path:
    """Return the folder of the option, else the configured one, else the bundled one; remark on what was not named."""
    from prism_bench.catalogue import default_folder

    if folder is not None:
        return folder
    configuration, kernels = project.current(), Path("kernels")
    if configuration and configuration.catalogue:
        folder = project.relative(configuration.catalogue)
        remark(f"catalogue: {folder} ({configuration.where})")
    elif any(kernels.glob("*/*.py")) and not kernels.samefile(default_folder()):
        remark(
            f"catalogue: the bundled one; --catalogue {kernels}, or a configuration by 'prism-bench init', uses yours"
        )
    elif is_bundled(default_folder()):  # whoever works on the bundled catalogue has a checkout of it
        remark("catalogue: the bundled one; 'prism-bench init' sets up yours, or --catalogue FOLDER names it")
    return folder or default_folder()


def patterns(cases: Sequence[str] | None, filters: Sequence[str] | None) -> tuple[str, ...]:
    """Return what the positional patterns and `--filter` choose together, each once; empty for all."""
    return tuple(dict.fromkeys([*(cases or ()), *(filters or ())]))


def chosen_labels(labels: Sequence[str] | None, default: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the given labels, or those of the default that the project configures; its own where none of them is."""
    from prism_bench.spec.workload import LABELS

    default = default or LABELS
    configuration = None if labels else project.current()
    configured = configuration.keys.labels if configuration else ()
    within = tuple(label for label in default if label in configured)
    return tuple(labels or within or configured or default)


def refuse(options: Mapping[str, object], reason: str) -> None:
    """Raise a UsageError with the reason for the first option that has a value; this form of a command ignores it."""
    if name := next((name for name, value in options.items() if value), None):
        raise UsageError(f"{name}: {reason}")


@contextmanager
def records_of(*paths: Path | None) -> Generator[None]:
    """Name the command that reads a file of another kind, where one of these paths is no run record."""
    try:
        yield
    except ResultsError as error:
        from prism_bench.workflows.file_kinds import other_kind

        wrong = next((path for path in paths if path and str(error).startswith(f"{path}: ")), None)
        raise (other_kind(wrong, "show", error) if wrong else error) from None


def print_json(value: object) -> None:
    """Print one JSON document on standard output."""
    print(json_text(value, indent=1))


def show(plain: Callable[[], object], view: Callable[[], RenderableType], *, json: bool) -> None:
    """Print the plain form as one JSON document with `json`, else the view; the other one is not made."""
    if json:
        print_json(plain())
    else:
        out().print(view())


def was_hindered(record: "RunRecord") -> bool:
    """Return whether a case was skipped because the cache took no more, or an extra is missing: no kernel's fault."""
    reasons = [case.reason or "" for case in record.cases if case.status == "skipped"]
    return any(reason.startswith(CACHE_REFUSED) or NOT_INSTALLED.search(reason) for reason in reasons)


def choose_backend(name: str | None, quiet: bool) -> "Backend":
    """Return the backend; the first line of output names it and the reason."""
    from prism_bench.backends import open_backend, open_default

    if name:
        opened = open_backend(name)
        sentence = f"backend {name}: {opened.facts()['device']}"
    else:
        opened, sentence = open_default()
    (remark if quiet else line)(sentence)
    return opened


# A limit for kernels that a command runs in its own process.

CASE_SECONDS = 180.0
TOO_LONG = 2  # the exit code: the command could not do its work
TimeoutOption = Annotated[float, typer.Option("--timeout", min=1, help="Give up on a case after this many seconds.")]


@contextmanager
def limited(what: str, seconds: float) -> Iterator[None]:
    """End this process, and name what it was doing, when the block takes longer than `seconds`.

    A kernel that never ends leaves no other way: the call that waits for it does not return.
    """
    timer = Timer(seconds, _end, (f"prism-bench: timed out: {what}: no answer within {seconds:.0f} s",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end(sentence: str) -> None:
    sys.stdout.flush()
    print(sentence, file=sys.stderr, flush=True)
    os._exit(TOO_LONG)


# Records that a command has written, added to the shards of their folder where it has some.


def add_to_shards(paths: Iterable[Path]) -> None:
    """Add records to the shards of their runs; what cannot be added is reported, and is read from its record."""
    from prism_bench.record.store.history import add_record

    for path in paths:
        try:
            add_record(path, path.parent.parent)
        except ResultsError as error:
            remark(f"the record is written, and is in no shard yet: {error}", "yellow")
