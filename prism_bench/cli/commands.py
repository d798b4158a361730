"""The commands: their groups in the help, their modules, and the defaults that the project's configuration gives."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from prism_bench import __version__
from prism_bench.errors import UsageError
from prism_bench.extension import installed, offered
from prism_bench.io import project

if TYPE_CHECKING:
    from prism_bench.io.documents import RawSource

# The groups in their order, with their commands in the order of the help; commands of extensions are the last group.
GROUPS: dict[str, tuple[str, ...]] = {
    "Everyday": ("init", "run", "compare", "check", "report", "doctor"),
    "Kernels": ("list", "verify", "tune", "compile", "traffic", "profile"),
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
    "ledger": "profile FILE, or profile --tool cupti",
    "overlap": "profile --overlap",
    "precision": "tune --precision",
    "select": "tune --policy",
}
# Options that a command has no longer, for one release, and what its user does instead: "use --all".
REPLACED_OPTIONS: dict[str, dict[str, str]] = {
    "run": {
        "--peer-timeout": "use --timeout: a peer may be silent for a third of it",
        "--hertz": "use --interval SECONDS",
        "--all-first-calls": "use --all",
    },
    "compare": {
        "--all-cases": "use --all",
        "--most-processes": "use --processes with a range, such as 3-15",
        "--env-a": "use --env A:NAME=VALUE",
        "--env-b": "use --env B:NAME=VALUE",
    },
    "check": {
        "--markdown": "use --output FILE.md",
        "--junit": "use --output FILE.xml",
        "--github": "in a job of GitHub Actions it prints annotations",
        "--alert-state": "the folder alerts next to that of --runs has it",
        "--require-device": "use --machine NAME",
    },
    "compile": {
        "--table": "use --against TABLE",
        "--update": "use --write",
        "--show-cut": "use --verbose",
    },
    "trend": {
        "--recent": "a slowdown is bad for 30 records",
        "--asv": "use 'prism-bench import' with the folder",
    },
    "bisect": {
        "--case": "name the case after both commits, or use --filter",
        "--most-measurements": "use --time-limit SECONDS",
    },
    "export": {"--all-records": "use --all"},
    "monitor": {
        "--duration": "use --seconds",
        "--once": "use --seconds 0",
        "--csv": "use --output FILE.csv",
        "--min-calls": "use --sort-by calls and --limit",
    },
    "comment": {
        "--page": "set PRISM_BENCH_PAGE, or page in the configuration",
        "--markdown": "use --output FILE.md",
        "--html": "use --output FILE.html",
    },
    "nightly": {"--gpus": "use --workers", "--site": "use --output FOLDER"},
    "claim": {
        "--case": "name the case after both sides, or use --filter",
        "--sign": "use --signature",
        "--signed-by": "use --signature",
        "--html": "use --output FILE.html",
        "--badge": "use --output FILE.svg",
    },
    "fuse": {
        "--record": "use --from FILE",
        "--runs": "use --from FOLDER",
        "--emulate": "use --backend emulator",
        "--latencies": "the newest file is read",
        "--counters": "the newest counters of each case are read",
        "--picture": "use --output FILE.png",
        "--check": "use --write --dry-run",
        "--ptx": "it is kept where NVRTC is installed",
        "--no-ptx": "it is kept where NVRTC is installed",
    },
    "judge": {
        "--task": "name the task after the card",
        "--secret": "use --seed",
        "--many": "name a folder of cards, and use --output FOLDER",
        "--html": "use --output FILE.html",
    },
    "memory": {
        "--demo": "use --from TRACE, which counts a trace",
        "--count": "use --from TRACE",
        "--trace": "name the file as an argument",
        "--allocator": "name the allocator as an argument",
    },
    "pipeline": {"--form": "name the form as an argument"},
    "init": {"--from": "name the path after the folder: init . src"},
    "profile": {
        "--from": "name the file: profile FILE",
        "--set": "use --counters core, all or traffic",
        "--counter": "use --counters METRIC",
        "--lines": "use --counters lines",
        "--reports": "use --output FOLDER",
        "--into": "leave it out: every command finds the newest counters of a case",
        "--emulate": "use 'prism-bench traffic CASES'",
        "--clock-control": "leave it out: clocks are never held",
        "--verify": "leave it out: launches are always compared with the reference",
        "--no-verify": "leave it out: launches are always compared with the reference",
    },
    "tune": {
        "--strategy": "leave it out: spaces above --budget are searched by a genetic algorithm",
        "--few": "leave it out: the best 3 are timed again",
        "--store": "leave it out: choices are in the project's storage, reports/tuning without one",
        "--keep": "leave it out: choices are always kept",
        "--no-keep": "use --untuned where the choices are not wanted",
        "--restamp": "name the file: tune FILE",
    },
}


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

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options with a word for the value of each, not with the name of its type."""
        hints = get_type_hints(inspect.unwrap(self.callback)) if self.callback else {}
        for kind in ("argument", "option"):
            records = [(param, param.get_help_record(ctx)) for param in self.get_params(ctx)]
            rows = [
                (_spelled(param, hints.get(param.name or "")), record[1])
                for param, record in records
                if record and param.param_type_name == kind
            ]
            if rows:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, which finds records that only the history keeps; help needs no store, nor NumPy."""
        from prism_bench.io import documents

        documents.supply(_kept_elsewhere)
        return super().invoke(ctx)


def _spelled(param: Any, hint: object) -> str:
    """Return an argument by its name, or an option with the word for its value: its metavar, else by its type."""
    if param.param_type_name == "argument":
        return param.metavar or param.name.upper()
    spellings = " / ".join(
        filter(None, (", ".join(sorted(names, key=len)) for names in (param.opts, param.secondary_opts)))
    )
    if param.is_flag:
        return spellings
    kinds, text = _kinds(hint), param.help or ""
    word = "N" if int in kinds else "SECONDS" if "seconds" in text else "NUMBER" if float in kinds else "NAME"
    if Path in kinds:
        word = "FOLDER" if "folder" in text else "FILE"
    return f"{spellings} {param.metavar or word}"


def _kinds(hint: object) -> set[object]:
    """Return the types that a hint is made of: `list`, `str` and `None` of `list[str] | None`."""
    return {hint, *(kind for part in get_args(hint) for kind in _kinds(part))}


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
    """Return a command line with one command, which is not among those of `prism-bench`."""
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


COMPLETION = "_PRISM_BENCH_COMPLETE"  # of the shell: what it asks for, such as source_bash or complete_bash


def completing(environment: Mapping[str, str]) -> typer.Typer:
    """Return a command line that answers a shell's completion, with the one command whose options it asks for.

    Commands that are only named are not imported: a shell asks at every press of the key.
    """
    import_module("typer.completion").completion_init()  # without its two options in the help
    line = environment.get("COMP_WORDS") or environment.get("_TYPER_COMPLETE_ARGS") or ""
    command = line.split()[1:2]
    if command and not line.endswith(command[0]):
        with suppress(UsageError):  # of a command that is gone
            return command_line(command[0])
    app = typer.Typer(cls=_GroupedHelp, **_PLAIN)
    for name in _modules(None):
        app.command(name)(_before_commands)
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
