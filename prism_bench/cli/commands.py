"""The commands: their groups in the help, their modules, and the defaults that the project's configuration gives."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from prism_bench import __version__
from prism_bench.errors import UsageError
from prism_bench.extension import installed, offered
from prism_bench.io import project

if TYPE_CHECKING:
    from prism_bench.record.store.records import RawSource

# The groups in their order, with their commands in the order of the help; commands of extensions are the last group.
GROUPS: dict[str, tuple[str, ...]] = {
    "Everyday": ("init", "run", "compare", "check", "report", "doctor"),
    "Kernels": ("list", "verify", "tune", "compile", "traffic", "profile", "ledger"),
    "History": (
        "trend",
        "bisect",
        "show",
        "comment",
        "nightly",
        "store",
        "import",
        "export",
    ),
    "GPU": ("monitor",),
}
EXTENSIONS = "Extensions"
# Commands that are now part of another one, for one release: what replaces them.
REPLACED = {
    "exporter": "monitor --serve PORT",
    "replay": "claim CLAIM",
    "digest": "comment --since 7d",
    "boards": "trend --boards",
    "fusion": "fuse",
    "baseline": "check --accept",
    "merge": "store merge",
    "noise": "compare --itself",
    "links": "python -m prism_bench.extensions.links",
    "history": "store fetch, keep, list or verify --to ADDRESS",
}
# Options that a command has no longer, for one release, and what its user does instead: "use --all".
REPLACED_OPTIONS: dict[str, dict[str, str]] = {}


class _GroupedHelp(TyperGroup):
    """The command line, whose help lists commands by group."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # of click, or of typer's own copy of it
        """Write one section for each group that has commands."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        limit = formatter.width - 6 - max(map(len, commands))
        grouped = {name for names in GROUPS.values() for name in names}
        rest = tuple(name for name in commands if name not in grouped)
        for title, names in {**GROUPS, EXTENSIONS: rest}.items():
            listed = [(name, commands.get(name)) for name in names]
            rows = [(name, command.get_short_help_str(limit)) for name, command in listed if command]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class _ConfiguredCommand(TyperCommand):
    """A command whose options, where they are not given, have the values of the project's configuration."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        refuse_replaced(self.name or "", args)
        if "--help" not in args:
            ctx.default_map = ConfiguredDefaults(
                {parameter.name: parameter.default for parameter in self.params if parameter.name}
            )
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, which finds records that only the history keeps; help needs no store, nor NumPy."""
        from prism_bench.record.store import records

        records.supply(_kept_elsewhere)
        return super().invoke(ctx)


class ConfiguredDefaults(Mapping[str, object]):
    """Defaults of a command's options by the project's configuration, which is read with the first of them.

    Whatever defaults to a path below `reports/` is below the project's storage.
    """

    def __init__(self, defaults: Mapping[str, object]) -> None:
        self._defaults = {name: value for name, value in defaults.items() if name == "backend" or _is_stored(value)}

    def __getitem__(self, name: str) -> object:
        default, configuration = self._defaults[name], project.current()
        if configuration is None:
            return default
        if isinstance(default, Path):
            return str(project.stored(default, configuration))
        return configuration.keys.backend or default

    def __iter__(self) -> Iterator[str]:
        return iter(self._defaults)

    def __len__(self) -> int:
        return len(self._defaults)


def _is_stored(value: object) -> bool:
    return isinstance(value, Path) and value.parts[:1] == (project.STORAGE,)


_HELP = (
    "Verify and time GPU kernels, keep every sample, and report what changed and why.\n\n"
    "Exit codes: 0 all well; 1 a finding is bad; 2 the command could not do its work, was interrupted, or could not "
    "keep its results; 3 what was measured cannot be trusted."
)
_OTHER_MODULES = {"list": "list_cases", "import": "import_results"}  # names that Python or its built-ins have


_PLAIN: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}


def command_alone(command: Callable[..., None]) -> typer.Typer:
    """Return a command line of its own for a command that is not among those of `prism-bench`."""
    app = typer.Typer(**_PLAIN)
    app.command(cls=_ConfiguredCommand)(command)
    return app


def command_line(only: str | None = None) -> typer.Typer:
    """Return the command line with all commands, or, so that it starts sooner, with that one alone."""
    app = typer.Typer(cls=_GroupedHelp, help=_HELP, no_args_is_help=True, **_PLAIN)
    for name, module_name in _modules(only).items():
        module = import_module(module_name)
        app.command(name, cls=_ConfiguredCommand, context_settings=getattr(module, "CONTEXT", None))(module.command)
    app.callback()(_before_commands)
    return app


def _modules(only: str | None) -> dict[str, str]:
    """Return the module of each command: those of the core in the order of the help, then those of extensions.

    Where `only` is a command, its module alone; extensions are imported only for what the core has not.
    """
    home = Path(__file__).parent
    listed = {name: _OTHER_MODULES.get(name, name) for names in GROUPS.values() for name in names}
    core = {name: f"{__package__}.{module}" for name, module in listed.items() if (home / f"{module}.py").is_file()}
    if only in core:
        return {only: core[only]}
    if only in REPLACED:
        used = REPLACED[only] if REPLACED[only].startswith("python ") else f"prism-bench {REPLACED[only]}"
        raise UsageError(f"'{only}' is no command any more; use '{used}'")
    added = {
        name: f"{extension.package}.{module}"
        for extension in installed()
        for name, module in extension.commands.items()
    }
    return {only: added[only]} if only in added else {**core, **added}


def refuse_replaced(command: str, arguments: Sequence[str]) -> None:
    """Raise a UsageError for an option that the command has no longer; what follows `--` is another program's."""
    replaced = REPLACED_OPTIONS.get(command, {})
    for word in arguments:
        option = word.partition("=")[0]
        if word == "--":
            return
        if option in replaced:
            raise UsageError(f"{command} has no option {option} any more; {replaced[option]}")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"prism-bench {__version__}")
        raise typer.Exit


_Version = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
]


def _before_commands(version: _Version = False) -> None:
    """Define the options before any command."""


def _kept_elsewhere() -> "RawSource | None":
    """Return the records of the history that the project configures; None without the extension that keeps them."""
    opened = offered("raw samples")
    return opened(None) if opened else None
