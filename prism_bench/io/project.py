"""Configuration of the user's project: `[tool.prism-bench]` in pyproject.toml, or a file prism-bench.toml.

    catalogue = "kernels"            # the folder of <family>/<name>.cu and <name>.py
    labels = ["S0", "S1"]            # what commands choose among without --label
    backend = "cuda"                 # what --backend would say
    storage = "reports"              # the folder of records, noise floors, choices and pages
    budgets = "kernels/budgets"      # the folder of budgets and baselines
    machine = { runner-3 = "h200" }  # names of machines in records, by host name; or one name for all

    [nightly]                        # a table for a command, in pyproject.toml [tool.prism-bench.nightly]

Both have the same keys. Paths are relative to the file. The file is searched from the current folder upward, to the
root of the repository; options of the command line and PRISM_BENCH_MACHINE win over it.
"""

import os
import platform
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, cast

from prism_bench.errors import PrismBenchError, UsageError
from prism_bench.io.documents import as_kind, text_of

OWN_FILE, SHARED_FILE, TABLE = "prism-bench.toml", "pyproject.toml", "prism-bench"
# Tables of commands: `Project.section` reads one as the type that its command defines.
_SECTIONS = ("nightly", "history", "pull-request", "pytest", "asv")
STORAGE = "reports"  # where records go without a configuration: options default to folders below it

_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class ProjectKeys:
    """Keys of the configuration that every command shares, as they are written."""

    catalogue: str | None = None
    labels: tuple[str, ...] = ()
    backend: str | None = None
    storage: str = STORAGE
    budgets: str | None = None
    machine: str | dict[str, str] | None = None

    def __post_init__(self) -> None:
        from prism_bench.spec.workload import LABELS  # loads NumPy, which most commands' help does without

        for label in self.labels:
            if label not in LABELS:
                raise ValueError(f"labels: '{label}' is no label; choose among {', '.join(LABELS)}")


@dataclass(frozen=True)
class Project:
    """A configuration: its `file`, where in that file it is (`where`), its keys, and the tables of commands."""

    file: Path
    where: str
    keys: ProjectKeys
    tables: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def root(self) -> Path:
        """The folder of the file, which its paths are relative to."""
        return self.file.parent

    @property
    def catalogue(self) -> Path | None:
        """The folder of the catalogue, None for the bundled one; raise a UsageError where it is no folder."""
        if self.keys.catalogue is None:
            return None
        folder = self.root / self.keys.catalogue
        if not folder.is_dir():
            raise UsageError(f"{self.where}: catalogue: there is no folder {folder}; create it or correct the key")
        return folder

    @property
    def storage(self) -> Path:
        """The folder of what is measured."""
        return self.root / self.keys.storage

    @property
    def budgets(self) -> Path | None:
        """The folder of budgets and baselines; None for the catalogue's own. A UsageError where it is a file."""
        folder = self.root / self.keys.budgets if self.keys.budgets is not None else None
        if folder and folder.exists() and not folder.is_dir():
            raise UsageError(f"{self.where}: budgets: {folder} is a file; name the folder of <device>.toml")
        return folder

    @property
    def machine(self) -> str | None:
        """The name of this machine in records; None without a configured name for this host."""
        names = self.keys.machine
        return names.get(platform.node()) if isinstance(names, dict) else names

    def section(self, name: str, kind: type[_Kind]) -> _Kind:
        """Return the table of a command as a dataclass, whose defaults are what is not configured.

        A key is written with dashes where a field has underscores. Raise a UsageError for an unknown key, one of
        another type, or one that is missing.
        """
        if name not in _SECTIONS:
            raise ValueError(f"'{name}' is not in project.SECTIONS")
        return _as_keys(self.tables.get(name, {}), kind, f"{self.where}: {name}")

    def has(self, folder: Path) -> bool:
        """Return whether the folder is the configured catalogue."""
        return self.keys.catalogue is not None and folder.resolve() == (self.root / self.keys.catalogue).resolve()


def current(folder: Path | None = None) -> Project | None:
    """Return the configuration of the folder, by default the current one, or of the nearest folder above; else None.

    Raise a UsageError with file and key where it is not right, or where a folder has it in both files.
    """
    begin = (folder or Path.cwd()).absolute()
    for place in _upward(begin):
        tables = [
            (path, table) for path in (place / OWN_FILE, place / SHARED_FILE) if (table := _table(path)) is not None
        ]
        if len(tables) > 1:
            raise UsageError(
                f"{place}: both {OWN_FILE} and [tool.{TABLE}] in {SHARED_FILE} configure it; keep one of them"
            )
        if tables:
            return _project(*tables[0])
    return None


def relative(path: Path) -> Path:
    """Return the path as a user in the current folder would write it: relative, unless that is longer."""
    try:
        return min(Path(os.path.relpath(path)), path, key=lambda form: len(str(form)))
    except ValueError:  # another drive
        return path


def stored(path: Path, project: Project | None) -> Path:
    """Return where a default below `reports/` is in a project: below its storage; any other path as it is."""
    if project is None or path.parts[:1] != (STORAGE,):
        return path
    return relative(project.storage.joinpath(*path.parts[1:]))


def _upward(folder: Path) -> Iterator[Path]:
    """Yield the folder and those above it, up to the root of its repository."""
    for place in (folder, *folder.parents):
        yield place
        if (place / ".git").exists():
            return


def _table(path: Path) -> dict[str, Any] | None:
    """Return the configuration in a file; None where there is no such file or, in a shared one, no such table."""
    try:
        data = tomllib.loads(text_of(path, "readable TOML"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, PrismBenchError) as error:
        if path.name == SHARED_FILE and not _mentions(path):
            return None  # another tool's mistake
        raise UsageError(f"{relative(path)}: not readable TOML ({error})") from error
    if path.name == OWN_FILE:
        return data
    tools: object = data.get("tool", {})
    table = cast("dict[str, object]", tools).get(TABLE) if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"{relative(path)}: tool.{TABLE} is no table; write [tool.{TABLE}]")
    return cast("dict[str, Any] | None", table)


def _mentions(path: Path) -> bool:
    try:
        return f"tool.{TABLE}" in path.read_text(errors="replace")
    except OSError:
        return False


def _project(path: Path, table: Mapping[str, Any]) -> Project:
    name = relative(path)
    where = f"{name}: [tool.{TABLE}]" if path.name == SHARED_FILE else str(name)
    tables = {key: value for key, value in table.items() if key in _SECTIONS}
    rest = {key: value for key, value in table.items() if key not in _SECTIONS}
    return Project(path, where, _as_keys(rest, ProjectKeys, where, more=_SECTIONS), tables)


def _as_keys(table: object, kind: type[_Kind], where: str, more: tuple[str, ...] = ()) -> _Kind:
    """Return a table as a dataclass; a UsageError names a key that it has not, or that is of another type."""
    if not isinstance(table, dict):
        raise UsageError(f"{where}: it is {table!r:.40}, and has to be a table")
    values = cast("dict[str, object]", table)
    known = [key.name.replace("_", "-") for key in fields(cast("Any", kind))]
    for key in values:
        if key not in known:
            near = get_close_matches(key, [*known, *more], n=1, cutoff=0.4)
            cure = f"did you mean {near[0]}?" if near else f"keys are {', '.join([*known, *more])}"
            raise UsageError(f"{where}: unknown key '{key}'; {cure}")
    try:
        return as_kind({key.replace("-", "_"): value for key, value in values.items()}, kind)
    except ValueError as error:
        # msgspec writes "Expected `array`, got `str` - at `$.labels`".
        complaint, _, place = str(error).partition(" - at `$")
        key = place.strip("`.").replace("_", "-")
        text = f"{key}: {complaint[:1].lower()}{complaint[1:]}" if key else complaint
        raise UsageError(f"{where}: {text}") from error
