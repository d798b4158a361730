"""Help in groups, and defaults that the project's configuration gives."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

from prism_bench.io import project

# The groups in their order, with their commands in the order of the help; commands of extensions are the last group.
GROUPS: dict[str, tuple[str, ...]] = {
    "Everyday": ("init", "run", "compare", "check", "report", "doctor"),
    "Kernels": ("list", "verify", "tune", "compile", "traffic", "profile", "ledger"),
    "History": (
        "trend",
        "bisect",
        "baseline",
        "noise",
        "boards",
        "show",
        "digest",
        "comment",
        "nightly",
        "history",
        "store",
        "merge",
        "import",
        "export",
    ),
    "GPU": ("monitor", "exporter"),
}
EXTENSIONS = "Extensions"


class GroupedHelp(TyperGroup):
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


class ConfiguredCommand(TyperCommand):
    """A command whose options, where they are not given, have the values of the project's configuration."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--help" not in args:
            ctx.default_map = ConfiguredDefaults(
                {parameter.name: parameter.default for parameter in self.params if parameter.name}
            )
        return super().parse_args(ctx, args)


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
