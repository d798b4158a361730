"""The command line: each command parses, calls one function of the library, and prints. One file per command."""

import gc
import sys
from typing import Annotated

import typer

from prism_bench import __version__
from prism_bench.cli import (
    baseline,
    bisect,
    check,
    comment,
    compare,
    compile,
    digest,
    doctor,
    export,
    exporter,
    history,
    import_results,
    init,
    list_cases,
    merge,
    monitor,
    nightly,
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
from prism_bench.cli.help import GroupedHelp, command_class
from prism_bench.errors import PrismBenchError
from prism_bench.extension import installed
from prism_bench.extras import extras_named
from prism_bench.interrupts import guarded
from prism_bench.options.output import complain, guarded_output, os_words, refuse_empty

app = typer.Typer(
    cls=GroupedHelp,
    help="Verify and time GPU kernels, keep every sample, and report what changed and why.\n\n"
    "Exit codes: 0 all well; 1 a finding is bad; 2 the command could not do its work, was interrupted, or could not "
    "keep its results; 3 what was measured cannot be trusted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

_CORE = (
    init,
    run, compare, check, report, doctor, list_cases, verify, tune, compile, traffic, profile, trend, bisect, baseline,
    noise, show, digest, comment, nightly, history, merge, import_results, export,
    monitor, exporter,
)  # fmt: skip
for module in (*_CORE, *(module for extension in installed() for module in extension.command_modules())):
    made = command_class(getattr(module, "RENAMED", {}))
    app.command(module.NAME, cls=made, context_settings=getattr(module, "CONTEXT", None))(module.command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"prism-bench {__version__}")
        raise typer.Exit


_Version = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
]


@app.callback()
def _before_commands(version: _Version = False) -> None:
    """Define the options before any command."""


@guarded
def main() -> None:
    """Run the command line; a mistake of the user or the machine ends with one line and an exit code, no traceback."""
    try:
        refuse_empty(sys.argv[1:])
        with guarded_output(), extras_named():
            app()
    except PrismBenchError as error:
        complain(str(error))
        sys.exit(error.exit_code)
    except OSError as error:  # a path that cannot be read or written, a full disk: no fault of the program
        complain(os_words(error))
        sys.exit(2)
    finally:
        gc.freeze()  # the process ends: do not search thousands of objects for cycles
