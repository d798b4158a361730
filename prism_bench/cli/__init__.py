"""The command line: each command parses, calls one function of the library, and prints. One file per command."""

import gc
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism_bench import __version__
from prism_bench.cli.help import GROUPS, ConfiguredCommand, GroupedHelp
from prism_bench.cli.options import complain, guarded_output, os_words, refuse_empty
from prism_bench.errors import PrismBenchError
from prism_bench.extension import installed, offered
from prism_bench.io.files import guarded
from prism_bench.io.installation import extras_named
from prism_bench.record.store import records

if TYPE_CHECKING:
    app: typer.Typer

_HELP = (
    "Verify and time GPU kernels, keep every sample, and report what changed and why.\n\n"
    "Exit codes: 0 all well; 1 a finding is bad; 2 the command could not do its work, was interrupted, or could not "
    "keep its results; 3 what was measured cannot be trusted."
)
_OTHER_MODULES = {"list": "list_cases", "import": "import_results"}  # names that Python or its built-ins have


def command_line(only: str | None = None) -> typer.Typer:
    """Return the command line with all commands, or, so that it starts sooner, with that one alone."""
    app = typer.Typer(
        cls=GroupedHelp,
        help=_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for name, module_name in _modules(only).items():
        module = import_module(module_name)
        app.command(name, cls=ConfiguredCommand, context_settings=getattr(module, "CONTEXT", None))(module.command)
    app.callback()(_before_commands)
    return app


def __getattr__(name: str) -> typer.Typer:
    """Return `app`, the command line with all commands: importing every one of them takes a while."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return command_line()


def _modules(only: str | None) -> dict[str, str]:
    """Return the module of each command: those of the core in the order of the help, then those of extensions.

    Where `only` is a command, its module alone; extensions are imported only for what the core has not.
    """
    home = Path(__file__).parent
    listed = {name: _OTHER_MODULES.get(name, name) for names in GROUPS.values() for name in names}
    core = {name: f"{__name__}.{module}" for name, module in listed.items() if (home / f"{module}.py").is_file()}
    if only in core:
        return {only: core[only]}
    added = {
        name: f"{extension.package}.{module}"
        for extension in installed()
        for name, module in extension.commands.items()
    }
    return {only: added[only]} if only in added else {**core, **added}


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"prism-bench {__version__}")
        raise typer.Exit


_Version = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
]


def _before_commands(version: _Version = False) -> None:
    """Define the options before any command."""


def _kept_elsewhere() -> records.RawSource | None:
    """Return the records of the history that the project configures; None without the extension that keeps them."""
    opened = offered("raw samples")
    return opened(None) if opened else None


@guarded
def main() -> None:
    """Run the command line; a mistake of the user or the machine ends with one line and an exit code, no traceback."""
    records.supply(_kept_elsewhere)
    try:
        refuse_empty(sys.argv[1:])
        with guarded_output(), extras_named():
            command_line(only=sys.argv[1] if len(sys.argv) > 1 else None)()
    except PrismBenchError as error:
        complain(str(error))
        sys.exit(error.exit_code)
    except OSError as error:  # a path that cannot be read or written, a full disk: no fault of the program
        complain(os_words(error))
        sys.exit(2)
    finally:
        gc.freeze()  # the process ends: do not search thousands of objects for cycles
