"""The command line: each command parses, calls one function of the library, and prints. One file per command."""

import gc
import sys
from typing import Annotated

import typer

from prism_bench import __version__
from prism_bench.cli import (
    baseline,
    check,
    compare,
    compile,
    digest,
    doctor,
    export,
    exporter,
    import_results,
    list_cases,
    merge,
    monitor,
    noise,
    profile,
    report,
    run,
    show,
    traffic,
    trend,
    tune,
    verify,
)
from prism_bench.errors import PrismBenchError
from prism_bench.extension import installed
from prism_bench.interrupts import guarded
from prism_bench.options.output import complain, guarded_output, os_words, refuse_empty

app = typer.Typer(
    help="Honest times for CUDA kernels: verified, cold and hot, against measured ceilings and library peers.\n\n"
    "Exit codes: 0 all well, 1 a finding is bad, 2 the command could not do its work, which is so too where a signal "
    "ended it or its results could not be kept, 3 what was measured cannot be trusted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_CORE = (
    list_cases,
    verify,
    run,
    merge,
    show,
    compare,
    noise,
    baseline,
    trend,
    check,
    import_results,
    export,
    report,
    digest,
    compile,
    traffic,
    tune,
    profile,
    monitor,
    exporter,
    doctor,
)
for module in (*_CORE, *(module for extension in installed() for module in extension.command_modules())):
    app.command(module.NAME)(module.command)


def _say_version(asked: bool) -> None:
    if asked:
        print(f"prism-bench {__version__}")
        raise typer.Exit


_Version = Annotated[bool, typer.Option("--version", callback=_say_version, is_eager=True, help="say which and end")]


@app.callback()
def _first(version: _Version = False) -> None:
    """Options before any command."""


@guarded
def main() -> None:
    """Run the command line; a mistake of the user or the machine ends in one line and exit code, never a traceback."""
    try:
        refuse_empty(sys.argv[1:])
        with guarded_output():
            app()
    except PrismBenchError as error:
        complain(str(error))
        sys.exit(error.exit_code)
    except OSError as error:  # a path that cannot be read or written, a full disk: never a fault of the program
        complain(os_words(error))
        sys.exit(2)
    finally:
        gc.freeze()  # the process ends: whatever refers to itself in a thousand records needs no search
