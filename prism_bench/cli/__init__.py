"""The command line: each command parses, calls one function of the library, and prints. One file per command."""

import gc
import os
import sys
from typing import TYPE_CHECKING

from prism_bench import __version__
from prism_bench.cli.output import complain, guarded_output, os_words, refuse_empty
from prism_bench.errors import PrismBenchError
from prism_bench.io.files import guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    import typer

    app: typer.Typer


def __getattr__(name: str) -> "typer.Typer":
    """Return `app`, the command line with all commands: importing every one of them takes a while."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from prism_bench.cli.commands import command_line

    return command_line()


def main() -> None:
    """Run the command line; a mistake of the user or the machine ends with one line and an exit code, no traceback."""
    run_guarded(_run)


@guarded
def run_guarded(run: "Callable[[list[str]], None]") -> None:
    """Call `run` with the arguments of this process, as `main` runs the command line."""
    try:
        refuse_empty(sys.argv[1:])
        with guarded_output():
            if sys.argv[1:] == ["--version"]:
                print(f"prism-bench {__version__}")
            else:
                run(sys.argv[1:])
    except PrismBenchError as error:
        complain(str(error))
        sys.exit(error.exit_code)
    except OSError as error:  # a path that cannot be read or written, a full disk: no fault of the program
        complain(os_words(error))
        sys.exit(2)
    finally:
        gc.freeze()  # the process ends: do not search thousands of objects for cycles


def _run(arguments: list[str]) -> None:
    """Run the command that the arguments begin with; only its module is imported."""
    from prism_bench.cli.commands import COMPLETION, command_line, completing
    from prism_bench.io.installation import extras_named

    with extras_named():
        if COMPLETION in os.environ:
            completing(os.environ)()
        command_line(only=arguments[0] if arguments else None)()
