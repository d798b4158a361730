"""A new project: what is planned, written, shown, and left to its author."""

import os
import platform
import re
import shlex
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from rich.console import Group, RenderableType
from rich.text import Text

from prism_bench.catalogue.loading import require_definition
from prism_bench.errors import SpecError, UsageError
from prism_bench.extensions.init.sources.found import FoundKernel, FoundOperator, Skeleton
from prism_bench.extensions.init.sources.skeleton import operator_skeleton, scan, skeleton
from prism_bench.io import project
from prism_bench.io.documents import quoted
from prism_bench.io.files import SHARED, create_file, write_atomically
from prism_bench.io.installation import git_output, pip_install, published_source
from prism_bench.run.builds import default_branch

if TYPE_CHECKING:
    from jinja2 import Environment


# Writer of a project's files: all of them or none, and never over a file that exists.

_EXISTS = "exists"
_DRAFT = ".draft"  # the ending of a spec that does not load yet: one broken file would fail every command


@dataclass(frozen=True)
class PlannedFile:
    """A file of a project: its path from the root, and its text, which is `appended` to what is there or a new file."""

    path: Path
    text: str
    appended: bool = False


@dataclass(frozen=True)
class LeftFile:
    """A file that was not written, and why."""

    path: Path
    reason: str = _EXISTS


@dataclass(frozen=True)
class WrittenFiles:
    """What was written, and what was left as it is, from the project's root."""

    wrote: tuple[Path, ...] = ()
    left: tuple[LeftFile, ...] = ()


def write(root: Path, files: Iterable[PlannedFile]) -> WrittenFiles:
    """Write the files below `root`, and leave those that exist.

    Raise UsageError, and write nothing, where a file is where a folder has to be. What was written is removed again
    where one of them cannot be.
    """
    planned = list(files)
    _require_folders(root, planned)
    undo = _Undo()
    wrote: list[Path] = []
    left: list[LeftFile] = []
    try:
        for one in sorted(planned, key=lambda one: one.appended):  # a file of the user's is changed last
            if undo.write(root, one):
                wrote.append(one.path)
            else:
                left.append(LeftFile(one.path))
    except BaseException:
        undo.undo()
        raise
    return WrittenFiles(tuple(wrote), tuple(left))


def _require_folders(root: Path, planned: Sequence[PlannedFile]) -> None:
    for one in planned:
        for folder in (root / one.path).parents:
            if folder.exists() and not folder.is_dir():
                raise UsageError(
                    f"{folder} is a file, and {one.path} needs a folder there; move it or choose another folder"
                )
        if (root / one.path).is_dir():
            raise UsageError(f"{root / one.path} is a folder, and a file of that name is needed")


@dataclass
class _Undo:
    """Files and folders that were created, for the case that one of them cannot be."""

    _created: list[Path] = field(default_factory=list[Path])

    def write(self, root: Path, planned: PlannedFile) -> bool:
        """Write one file; return False where it exists."""
        path, data = root / planned.path, planned.text.encode()
        if planned.appended:
            write_atomically(path, path.read_bytes() + data)
            return True
        if os.path.lexists(path):
            return False
        self._make(path.parent)
        try:
            create_file(path, data)
        except FileExistsError:
            return False
        self._created.append(path)
        return True

    def _make(self, folder: Path) -> None:
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir(exist_ok=True)
            self._created.append(one)

    def undo(self) -> None:
        """Remove what was created; a folder stays where another program has put something into it."""
        for path in reversed(self._created):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()


# Parts of a project: its configuration, an example, and what continuous integration and other tools need.

_TEMPLATES, _ENDING = Path(__file__).parent / "templates", ".jinja"
_SUITES = ("__init__.py", "listing.py", "measured.py", "times.py")
_EXAMPLE, _CATALOGUE, _TEXT = "example", "catalogue", "configuration.toml"
PARTS = tuple(sorted(one.name for one in _TEMPLATES.iterdir() if one.is_dir() and one.name != _EXAMPLE))
_CONFIGURED = "is configured already"
# By commit: a tag can be moved to other code, which would run with a workflow's token.
_ACTIONS = {
    "checkout": "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2",
    "setup_python": "actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0",
    "upload_artifact": "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2",
}
_REMOTE = ("github", "gitlab", "nightly")  # parts whose files install this package on other machines


@dataclass(frozen=True)
class ProjectFacts:
    """What templates may ask for: name, catalogue and branch of the project, this host, and where records are kept."""

    name: str
    catalogue: str = "kernels"
    branch: str = "main"
    host: str = "runner-1"
    storage: str = project.STORAGE

    @classmethod
    def of(cls, root: Path) -> "ProjectFacts":
        """Return the facts of the project at `root`, which may not exist yet."""
        found = _own(root)
        catalogue = (found.keys.catalogue if found else None) or _free_catalogue(root)
        name, host = root.resolve().name or "project", platform.node() or cls.host
        return cls(name, catalogue, _branch(root), host, found.keys.storage if found else cls.storage)


def _configuration_file(root: Path, facts: ProjectFacts) -> PlannedFile | LeftFile:
    """Return the configuration: a table for a pyproject.toml, else a file; the one that exists stays as it is.

    Raise UsageError if one of the files is not right.
    """
    found, shared = _own(root), root / project.SHARED_FILE
    if found:
        return LeftFile(found.file.relative_to(root.absolute()), _CONFIGURED)
    text = _rendered(f"{_TEXT}{_ENDING}", facts)
    if not shared.is_file():
        return PlannedFile(Path(project.OWN_FILE), text)
    comment, _, keys = text.partition("\n")
    table = f"\n{comment}\n[tool.{project.TABLE}]\n{keys}"
    _require_appendable(shared, table)
    return PlannedFile(Path(project.SHARED_FILE), table, appended=True)


def part_files(part: str, facts: ProjectFacts) -> list[PlannedFile]:
    """Return the files of one part, in the order of their paths."""
    found = sorted(path.relative_to(_TEMPLATES) for path in (_TEMPLATES / part).rglob(f"*{_ENDING}"))
    files = [PlannedFile(_place(path, facts), _rendered(path.as_posix(), facts)) for path in found]
    suites = _suites() if part == "asv" else []
    return files + [PlannedFile(Path("suites", path.name), path.read_text("utf-8")) for path in suites]


def _suites() -> list[Path]:
    """Return the files of the asv suites: inside the package when installed, next to it in a checkout."""
    package = Path(__file__).parents[2]
    folder = next(one for one in (package / "suites", package.parent / "suites") if one.is_dir())
    return [folder / name for name in _SUITES]


def _example_files(facts: ProjectFacts) -> list[PlannedFile]:
    """Return the kernel that a new catalogue begins with."""
    return part_files(_EXAMPLE, facts)


def _own(root: Path) -> project.Project | None:
    """Return the configuration in this very folder."""
    found = project.current(root.absolute()) if root.is_dir() else None
    return found if found and found.root.samefile(root) else None


def _free_catalogue(root: Path) -> str:
    """Return the first name whose folder is not the project's own: it is missing, empty, or holds specs already."""
    names = (ProjectFacts.catalogue, "prism_kernels", *(f"prism_kernels_{number}" for number in range(2, 100)))
    return next((name for name in names if not _is_foreign(root / name)), names[-1])


def _is_foreign(folder: Path) -> bool:
    """Return whether a folder has files and none of them is a spec."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return False
    for path in [*folder.glob("*/*.py"), *folder.glob(f"*/*.py{_DRAFT}")]:
        with suppress(SpecError, ValueError, SyntaxError, OSError):
            require_definition(path, "spec", "spec")
            return False
    return True


def _place(template: Path, facts: ProjectFacts) -> Path:
    parts = [facts.catalogue if part == _CATALOGUE else part for part in template.parts[1:]]
    return Path(*parts).with_suffix("")


def _require_appendable(path: Path, table: str) -> None:
    """Raise UsageError if the file is no TOML, or could not hold our table at its end."""
    try:
        text = path.read_text("utf-8")
        before, after = tomllib.loads(text), tomllib.loads(text + table)
    except ValueError as error:
        raise UsageError(
            f"{path}: cannot take [tool.{project.TABLE}] ({error}); correct it, or create {project.OWN_FILE}"
        ) from error
    after["tool"].pop(project.TABLE)
    assert {**before, "tool": before.get("tool", {})} == after, "appending changed what was there"


def _branch(root: Path) -> str:
    """Return the default branch of the repository at `root`; where it is not known, the one that is checked out."""
    try:
        return default_branch(root).removeprefix("origin/")
    except UsageError:
        return git_output(root, "symbolic-ref", "--short", "HEAD") or ProjectFacts.branch


def _rendered(name: str, facts: ProjectFacts) -> str:
    """Return the text of a template. asv runs on this machine, runners of a workflow elsewhere."""
    command = f"in-dir={{env_dir}} python -m {pip_install('asv').replace('{', '{{').replace('}', '}}')}"

    def published(extra: str = "") -> str:
        return shlex.quote(published_source()[0].requirement(extra))

    return (
        _environment().get_template(name).render(**_ACTIONS, **asdict(facts), published=published, asv_install=command)
    )


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Workflows hold ${{ ... }}, kernels << and [[...]]: ours have other marks.
    found = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
        variable_start_string="@{",
        variable_end_string="}",
        block_start_string="@%",
        block_end_string="%@",
        comment_start_string="@#",
        comment_end_string="#@",
        trim_blocks=True,
    )
    found.filters.update(quoted=quoted, expression=_expression, branch_filter=_branch_filter)
    return found


def _expression(text: str) -> str:
    """Return the text as a string in a workflow of GitHub, where `${{` would begin an expression."""
    return quoted(text.replace("${{", "${{ '${{' }}"))


def _branch_filter(name: str) -> str:
    """Return the pattern of a workflow's `branches` that matches this name alone."""
    return quoted(re.sub(r"([*?+!\[\]\\])", r"\\\1", name))


# Spec files for kernels that were found in a user's sources.


@dataclass(frozen=True)
class SkeletonFile:
    """A spec for a person to complete: its file, what it is of, and what is to be written or confirmed."""

    file: PlannedFile
    kernel: FoundKernel | FoundOperator
    skeleton: Skeleton


@dataclass(frozen=True)
class FoundFiles:
    """Specs for what was found below a folder, and in words what there is no spec for."""

    specs: tuple[SkeletonFile, ...]
    without: tuple[str, ...]


def _skeleton_files(place: Path, root: Path, catalogue: str) -> FoundFiles:
    """Return a spec for each kernel and PyTorch operator below `place`, in a family named after its source's folder.

    Raise UsageError if there is no such folder, or nothing in it.
    """
    found = scan(place)
    specs = list(_specs([*found.kernels, *found.operators], root, catalogue))
    known = {id(spec.kernel) for spec in specs}
    without = [
        f"{operator.path}:{operator.line}: {operator.name}: neither a schema nor annotations give its arguments"
        for operator in found.operators
        if id(operator) not in known
    ]
    without += map(str, found.unread)
    if not specs:
        nothing = f"no CUDA kernel, Triton kernel or PyTorch operator below {place} that a spec can be written for"
        raise UsageError("; ".join([nothing, *without[:3]]))
    return FoundFiles(tuple(specs), tuple(without))


def _specs(kernels: Iterable[FoundKernel | FoundOperator], root: Path, catalogue: str) -> Iterable[SkeletonFile]:
    """Yield the specs; a kernel whose name another one has gets a number, because a catalogue names each once."""
    paths = sorted(path for ending in (".py", f".py{_DRAFT}") for path in (root / catalogue).glob(f"*/*{ending}"))
    taken = {path.name.partition(".")[0]: path for path in paths}
    own: set[str] = set()
    for kernel in kernels:
        folder = root / catalogue / _family(kernel.path)
        made = _made(kernel, root, folder)
        if made is None:
            continue
        stem = made.file_name.removesuffix(".py")
        names = (f"{stem}_{number}" if number > 1 else stem for number in count(1))
        name = next(one for one in names if one not in own and taken.get(one, folder / one).parent == folder)
        own.add(name)
        ending = ".py" if made.loads else f".py{_DRAFT}"
        yield SkeletonFile(PlannedFile((folder / f"{name}{ending}").relative_to(root), made.text), kernel, made)


def _made(kernel: FoundKernel | FoundOperator, root: Path, folder: Path) -> Skeleton | None:
    """Return the skeleton; None of an operator whose arguments are unknown."""
    below = root if isinstance(kernel, FoundOperator) else folder
    source = Path(os.path.relpath(kernel.path.resolve(), below.resolve())).as_posix()
    return operator_skeleton(kernel, source) if isinstance(kernel, FoundOperator) else skeleton(kernel, source)


def _family(source: Path) -> str:
    """Return the name of the folder of the source, as a Python package may be called."""
    name = "".join(letter if letter.isalnum() else "_" for letter in source.resolve().parent.name.lower())
    return name if name.isidentifier() and name not in SHARED else f"family_{name}"


# A new project: what is planned, written, and left to its author.


@dataclass(frozen=True)
class NewProject:
    """A project that was set up in `root`: its catalogue, what was written, and the specs of `--from`, if any."""

    root: Path
    catalogue: str
    written: WrittenFiles
    found: FoundFiles | None = None
    note: str | None = None  # what workflows install where this installation is of this machine only

    @property
    def kernel_files(self) -> tuple[Path, ...]:
        """The files of the catalogue that were written."""
        return tuple(path for path in self.written.wrote if path.is_relative_to(self.catalogue))


def new_project(root: Path, parts: Sequence[str] = (), source: Path | None = None) -> NewProject:
    """Set up a project in `root`: configuration, catalogue, files of `parts`; with `source` specs of its kernels.

    Without it an empty catalogue gets an example. Raise UsageError, with nothing written, where a file that exists is
    in the way or not right, or where no kernel is found.
    """
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is a file; name the folder of the project")
    facts = ProjectFacts.of(root)
    configuration = _configuration_file(root, facts)
    found = _skeleton_files(source, root.absolute(), facts.catalogue) if source else None
    files = list(_files(root, facts, parts, found))
    already = (configuration,) if isinstance(configuration, LeftFile) else ()
    planned = [*([configuration] if isinstance(configuration, PlannedFile) else []), *files]
    written = write(root, planned)
    note = published_source()[1] if set(parts) & set(_REMOTE) else None
    return NewProject(root, facts.catalogue, WrittenFiles(written.wrote, (*already, *written.left)), found, note)


def _files(root: Path, facts: ProjectFacts, parts: Sequence[str], found: FoundFiles | None) -> Iterable[PlannedFile]:
    if found:
        yield from (spec.file for spec in found.specs)
    elif not any((root / facts.catalogue).glob("*/*.py")):
        yield from _example_files(facts)
    for part in dict.fromkeys(parts):
        yield from part_files(part, facts)


# A project that was set up, in the terminal and as plain values.

_MOST = 20  # lines of what has no spec


class LeftJson(TypedDict):
    """A file that stays as it is, and why."""

    path: str
    reason: str


class SpecJson(TypedDict):
    """A spec that was written from a source: its file, the kernel, whether it loads, and what its author has to do."""

    path: str
    kernel: str
    source: str
    loads: bool
    open_points: list[str]


class NewProjectJson(TypedDict):
    """What was written and left, the specs, what has no spec and why, a note, and the next commands."""

    root: str
    catalogue: str
    wrote: list[str]
    left: list[LeftJson]
    specs: list[SpecJson]
    without: list[str]
    note: str | None
    next: list[str]


def new_project_json(made: NewProject) -> NewProjectJson:
    """Return what was done as plain JSON values; paths are relative to the root."""
    return {
        "root": str(made.root),
        "catalogue": made.catalogue,
        "wrote": [path.as_posix() for path in made.written.wrote],
        "left": [{"path": one.path.as_posix(), "reason": one.reason} for one in made.written.left],
        "specs": [_spec(spec) for spec in made.found.specs] if made.found else [],
        "without": list(made.found.without) if made.found else [],
        "note": made.note,
        "next": _next_commands(made),
    }


def _spec(one: SkeletonFile) -> SpecJson:
    source = f"{one.kernel.path}:{one.kernel.line}"
    return {
        "path": one.file.path.as_posix(),
        "kernel": one.kernel.name,
        "source": source,
        "loads": one.skeleton.loads,
        "open_points": list(one.skeleton.open_points),
    }


def _next_commands(made: NewProject) -> list[str]:
    """Return the commands that come next."""
    enter = [] if made.root.resolve() == Path.cwd() else [f"cd {made.root}"]
    return [*enter, "prism-bench verify", "prism-bench run", "prism-bench compare"]


def new_project_view(made: NewProject) -> RenderableType:
    """Return a line for each file, what is open in each spec, and the next commands."""
    lines = [Text.assemble(("wrote  ", "green"), path.as_posix()) for path in made.written.wrote]
    lines += [
        Text.assemble(("left   ", "yellow"), f"{one.path.as_posix()}  ({one.reason})") for one in made.written.left
    ]
    if made.found:
        lines += [Text(), *_open(made.found.specs, made), *_without(made.found.without)]
    lines += [Text.assemble(("note   ", "yellow"), made.note)] if made.note else []
    return Group(*lines, Text(), *_next(made))


def _open(specs: tuple[SkeletonFile, ...], made: NewProject) -> list[Text]:
    wrote = [spec for spec in specs if spec.file.path in made.written.wrote]
    lines: list[Text] = []
    for one in wrote:
        broken = "" if one.skeleton.loads else f"  (a draft: complete it, and remove {_DRAFT})"
        lines.append(Text.assemble((one.kernel.name, "bold"), f" of {one.kernel.path}:{one.kernel.line}{broken}"))
        lines += [Text(f"  to do: {point}", overflow="fold") for point in one.skeleton.open_points]
    return lines


def _without(reasons: tuple[str, ...]) -> list[Text]:
    more = [f"... and {len(reasons) - _MOST} more, in --json"] if len(reasons) > _MOST else []
    return [Text(f"no spec: {reason}", "dim", overflow="fold") for reason in [*reasons[:_MOST], *more]]


def _next(made: NewProject) -> list[Text]:
    purposes = {
        "prism-bench verify": "are the kernels right, on the GPU and emulated?",
        "prism-bench run": "time them, and keep a record",
        "prism-bench compare": "after a change: is anything slower?",
    }
    lines = [Text("Next:")]
    return lines + [
        Text(f"  {next_command:20}  # {purposes[next_command]}" if next_command in purposes else f"  {next_command}")
        for next_command in _next_commands(made)
    ]
