"""A new project: its planned, written and remaining files, and specs of existing kernels."""

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
from prism_bench.extensions.init.sources.kernels import FoundKernel, FoundOperator, Skeleton
from prism_bench.extensions.init.sources.skeleton import operator_skeleton, scan, skeleton
from prism_bench.io import project
from prism_bench.io.documents import quoted
from prism_bench.io.files import SHARED, create_file, write_atomically
from prism_bench.io.installation import git_output, pip_install, published_source
from prism_bench.run.builds import default_branch
from prism_bench.units import count_text

if TYPE_CHECKING:
    from jinja2 import Environment


# Writer of a project's files: it writes all of them or none, and never over an existing file.

_EXISTS = "exists"
_DRAFT = ".draft"  # the ending of a spec that does not load yet: a broken spec would fail every command


@dataclass(frozen=True)
class PlannedFile:
    """A file of a project: its path from the root, and its text, for a new file or `appended` to an existing file."""

    path: Path
    text: str
    appended: bool = False


@dataclass(frozen=True)
class LeftFile:
    """A file that was not written, and the reason."""

    path: Path
    reason: str = _EXISTS


@dataclass(frozen=True)
class WrittenFiles:
    """Paths of the written files and of the unchanged files, from the project's root."""

    wrote: tuple[Path, ...] = ()
    left: tuple[LeftFile, ...] = ()


def write(root: Path, files: Iterable[PlannedFile]) -> WrittenFiles:
    """Write the files below `root`, and leave existing files unchanged.

    Raise UsageError, and write nothing, if a file has the place of a folder. Remove the written files again if a file
    cannot be written.
    """
    planned = list(files)
    _require_folders(root, planned)
    undo = _Undo()
    wrote: list[Path] = []
    left: list[LeftFile] = []
    try:
        for file in sorted(planned, key=lambda file: file.appended):  # change the user's own file last
            if undo.write(root, file):
                wrote.append(file.path)
            else:
                left.append(LeftFile(file.path))
    except BaseException:
        undo.undo()
        raise
    return WrittenFiles(tuple(wrote), tuple(left))


def _require_folders(root: Path, planned: Sequence[PlannedFile]) -> None:
    for path in (file.path for file in planned):
        for folder in (root / path).parents:
            if folder.exists() and not folder.is_dir():
                raise UsageError(
                    f"{folder} is a file, and {path} needs a folder there; move it or choose another folder"
                )
        if (root / path).is_dir():
            raise UsageError(f"{root / path} is a folder, and a file of that name is needed")


@dataclass
class _Undo:
    """Created files and folders, to remove after a failure."""

    _created: list[Path] = field(default_factory=list[Path])

    def write(self, root: Path, planned: PlannedFile) -> bool:
        """Write a file; return False if it exists."""
        path, data = root / planned.path, planned.text.encode()
        if planned.appended:
            write_atomically(path, path.read_bytes() + data)
            return True
        if os.path.lexists(path):
            return False
        missing = [folder for folder in path.parents if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            self._created.append(folder)
        try:
            create_file(path, data)
        except FileExistsError:
            return False
        self._created.append(path)
        return True

    def undo(self) -> None:
        """Remove the created files and folders; keep a folder into which another program has put a file."""
        for path in reversed(self._created):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()


# Parts of a project: its configuration, an example, and what continuous integration and other tools need.

_TEMPLATES, _ENDING = Path(__file__).parent / "templates", ".jinja"
_SUITES = ("__init__.py", "listing.py", "measured.py", "times.py")
_EXAMPLE, _CATALOGUE, _TEXT = "example", "catalogue", "configuration.toml"
PARTS = tuple(sorted(path.name for path in _TEMPLATES.iterdir() if path.is_dir() and path.name != _EXAMPLE))
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
    """Variables of templates: name, catalogue and branch of the project, this host, and the folder of records."""

    name: str
    catalogue: str = "kernels"
    branch: str = "main"
    host: str = "runner-1"
    storage: str = project.STORAGE

    @classmethod
    def of(cls, root: Path) -> "ProjectFacts":
        """Return the facts of the project at `root`, which may not exist yet."""
        configured = _configuration_in(root)
        catalogue = (configured.keys.catalogue if configured else None) or _free_catalogue(root)
        name, host = root.resolve().name or "project", platform.node() or cls.host
        try:
            branch = default_branch(root).removeprefix("origin/")
        except UsageError:  # without a remote: the checked-out branch
            branch = git_output(root, "symbolic-ref", "--short", "HEAD") or cls.branch
        return cls(name, catalogue, branch, host, configured.keys.storage if configured else cls.storage)


def _configuration_file(root: Path, facts: ProjectFacts) -> PlannedFile | LeftFile:
    """Return the configuration: a table for a pyproject.toml, else a file; an existing configuration stays unchanged.

    Raise UsageError if an existing file is invalid.
    """
    configured, shared = _configuration_in(root), root / project.SHARED_FILE
    if configured:
        return LeftFile(configured.file.relative_to(root.absolute()), _CONFIGURED)
    text = _rendered(f"{_TEXT}{_ENDING}", facts)
    if not shared.is_file():
        return PlannedFile(Path(project.OWN_FILE), text)
    comment, _, keys = text.partition("\n")
    table = f"\n{comment}\n[tool.{project.TABLE}]\n{keys}"
    _require_appendable(shared, table)
    return PlannedFile(Path(project.SHARED_FILE), table, appended=True)


def part_files(part: str, facts: ProjectFacts) -> list[PlannedFile]:
    """Return the files of a part, in the order of their paths."""
    files: list[PlannedFile] = []
    for template in sorted(path.relative_to(_TEMPLATES) for path in (_TEMPLATES / part).rglob(f"*{_ENDING}")):
        names = [facts.catalogue if name == _CATALOGUE else name for name in template.parts[1:]]
        files.append(PlannedFile(Path(*names).with_suffix(""), _rendered(template.as_posix(), facts)))
    if part == "asv":
        package = Path(__file__).parents[2]  # it holds the suites when installed, its parent in a checkout
        suites = next(path for path in (package / "suites", package.parent / "suites") if path.is_dir())
        files += [PlannedFile(Path("suites", name), (suites / name).read_text("utf-8")) for name in _SUITES]
    return files


def _configuration_in(root: Path) -> project.Project | None:
    """Return the configuration in this folder itself, not that of a folder above."""
    configured = project.current(root.absolute()) if root.is_dir() else None
    return configured if configured and configured.root.samefile(root) else None


def _free_catalogue(root: Path) -> str:
    """Return the first name without a foreign folder: the folder is missing, empty, or holds specs already."""
    names = (ProjectFacts.catalogue, "prism_kernels", *(f"prism_kernels_{number}" for number in range(2, 100)))
    return next((name for name in names if not _is_foreign(root / name)), names[-1])


def _is_foreign(folder: Path) -> bool:
    """Return whether a folder has files, but no spec."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return False
    for path in [*folder.glob("*/*.py"), *folder.glob(f"*/*.py{_DRAFT}")]:
        with suppress(SpecError, ValueError, SyntaxError, OSError):
            require_definition(path, "spec", "spec")
            return False
    return True


def _require_appendable(path: Path, table: str) -> None:
    """Raise UsageError if the file is no TOML, or cannot hold the table at its end."""
    try:
        text = path.read_text("utf-8")
        before, after = tomllib.loads(text), tomllib.loads(text + table)
    except ValueError as error:
        raise UsageError(
            f"{path}: cannot take [tool.{project.TABLE}] ({error}); correct it, or create {project.OWN_FILE}"
        ) from error
    after["tool"].pop(project.TABLE)
    assert {**before, "tool": before.get("tool", {})} == after, "appending changed what was there"


def _rendered(name: str, facts: ProjectFacts) -> str:
    """Return the text of a template. asv runs on this machine, runners of a workflow elsewhere."""
    command = f"in-dir={{env_dir}} python -m {pip_install('asv').replace('{', '{{').replace('}', '}}')}"

    def published(extra: str = "") -> str:
        return shlex.quote(published_source()[0].requirement(extra))

    template = _environment().get_template(name)
    return template.render(**_ACTIONS, **asdict(facts), published=published, asv_install=command)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Workflows hold ${{ ... }}, kernels << and [[...]]: templates need other marks.
    environment = Environment(
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
    environment.filters.update(quoted=quoted, expression=_expression, branch_filter=_branch_filter)
    return environment


def _expression(text: str) -> str:
    """Return the text as a string in a workflow of GitHub, where `${{` would begin an expression."""
    return quoted(text.replace("${{", "${{ '${{' }}"))


def _branch_filter(name: str) -> str:
    """Return the pattern of a workflow's `branches` that matches only this name."""
    return quoted(re.sub(r"([*?+!\[\]\\])", r"\\\1", name))


# Spec files for the kernels in a user's sources.


@dataclass(frozen=True)
class SkeletonFile:
    """A spec for a person to complete: its file, the kernel or operator, and the skeleton with the open points."""

    file: PlannedFile
    kernel: FoundKernel | FoundOperator
    skeleton: Skeleton


@dataclass(frozen=True)
class SourceSpecs:
    """Specs of the kernels and operators below a folder, and texts on parts of the sources without a spec."""

    specs: tuple[SkeletonFile, ...]
    without: tuple[str, ...]


def _skeleton_files(place: Path, root: Path, catalogue: str) -> SourceSpecs:
    """Return a spec for each kernel and PyTorch operator below `place`, in a family named after its source's folder.

    Raise UsageError if the folder is missing, or without kernels and operators.
    """
    sources = scan(place)
    specs = list(_specs([*sources.kernels, *sources.operators], root, catalogue))
    known = {id(spec.kernel) for spec in specs}
    without = [
        f"{operator.path}:{operator.line}: {operator.name}: neither a schema nor annotations give its arguments"
        for operator in sources.operators
        if id(operator) not in known
    ]
    without += [
        f"{kernel.path}:{kernel.line}: {kernel.name}: a helper of {kernel.helper_of}"
        for kernel in sources.kernels
        if kernel.helper_of
    ]
    without += map(str, sources.unread)
    if not specs:
        reason = f"no CUDA kernel, Triton kernel or PyTorch operator below {place} that a spec can be written for"
        raise UsageError("; ".join([reason, *without[:3]]))
    return SourceSpecs(tuple(specs), tuple(without))


def _specs(kernels: Iterable[FoundKernel | FoundOperator], root: Path, catalogue: str) -> Iterable[SkeletonFile]:
    """Yield the specs; a kernel gets a number if its name is taken, because names in a catalogue are unique."""
    paths = sorted(path for ending in (".py", f".py{_DRAFT}") for path in (root / catalogue).glob(f"*/*{ending}"))
    taken = {path.name.partition(".")[0]: path for path in paths}
    planned: set[str] = set()
    for kernel in kernels:
        if isinstance(kernel, FoundKernel) and kernel.helper_of:
            continue
        folder = root / catalogue / _family(kernel.path)
        below = root if isinstance(kernel, FoundOperator) else folder
        source = Path(os.path.relpath(kernel.path.resolve(), below.resolve())).as_posix()
        made = operator_skeleton(kernel, source) if isinstance(kernel, FoundOperator) else skeleton(kernel, source)
        if made is None:  # an operator with unknown arguments
            continue
        stem = made.file_name.removesuffix(".py")
        names = (f"{stem}_{number}" if number > 1 else stem for number in count(1))
        name = next(name for name in names if name not in planned and taken.get(name, folder / name).parent == folder)
        planned.add(name)
        ending = ".py" if made.loads else f".py{_DRAFT}"
        yield SkeletonFile(PlannedFile((folder / f"{name}{ending}").relative_to(root), made.text), kernel, made)


def _family(source: Path) -> str:
    """Return the name of the folder of the source, as a Python package may be called."""
    name = "".join(letter if letter.isalnum() else "_" for letter in source.resolve().parent.name.lower())
    return name if name.isidentifier() and name not in SHARED else f"family_{name}"


# A new project.


@dataclass(frozen=True)
class NewProject:
    """A project that was set up in `root`: its catalogue, the written files, and the specs of its sources, if any."""

    root: Path
    catalogue: str
    written: WrittenFiles
    source_specs: SourceSpecs | None = None
    note: str | None = None  # what workflows install if other machines cannot install this version

    @property
    def kernel_files(self) -> tuple[Path, ...]:
        """The written files of the catalogue."""
        return tuple(path for path in self.written.wrote if path.is_relative_to(self.catalogue))


def new_project(root: Path, parts: Sequence[str] = (), source: Path | None = None) -> NewProject:
    """Set up a project in `root`: configuration, catalogue, files of `parts`; with `source` specs of its kernels.

    Without `source` an empty catalogue gets an example. Raise UsageError, and write nothing, if an existing file is in
    the way or invalid, or if no kernel is found.
    """
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is a file; name the folder of the project")
    facts = ProjectFacts.of(root)
    configuration = _configuration_file(root, facts)
    source_specs = _skeleton_files(source, root.absolute(), facts.catalogue) if source else None
    planned = [configuration] if isinstance(configuration, PlannedFile) else []
    left = (configuration,) if isinstance(configuration, LeftFile) else ()
    if source_specs:
        planned += [spec.file for spec in source_specs.specs]
    elif not any((root / facts.catalogue).glob("*/*.py")):
        planned += part_files(_EXAMPLE, facts)
    for part in dict.fromkeys(parts):
        planned += part_files(part, facts)
    written = write(root, planned)
    note = published_source()[1] if set(parts) & set(_REMOTE) else None
    return NewProject(root, facts.catalogue, WrittenFiles(written.wrote, (*left, *written.left)), source_specs, note)


# View and JSON of a new project.

_MOST = 20  # lines on sources without a spec
_NEXT = {
    "prism-bench verify": "are the kernels right, on the GPU and emulated?",
    "prism-bench run": "time them, and keep a record",
    "prism-bench compare": "after a change: is anything slower?",
}


class LeftJson(TypedDict):
    """An unchanged file, and the reason."""

    path: str
    reason: str


class SpecJson(TypedDict):
    """A spec written from a source: its file, the kernel, whether it loads, and its open points."""

    path: str
    kernel: str
    source: str
    loads: bool
    open_points: list[str]


class NewProjectJson(TypedDict):
    """Written and unchanged files, the specs, sources without a spec, a note, and the next commands."""

    root: str
    catalogue: str
    wrote: list[str]
    left: list[LeftJson]
    specs: list[SpecJson]
    without: list[str]
    note: str | None
    next: list[str]


def new_project_json(made: NewProject) -> NewProjectJson:
    """Return the project as plain JSON values; paths are relative to the root."""
    specs, without = (made.source_specs.specs, made.source_specs.without) if made.source_specs else ((), ())
    return {
        "root": str(made.root),
        "catalogue": made.catalogue,
        "wrote": [path.as_posix() for path in made.written.wrote],
        "left": [{"path": left.path.as_posix(), "reason": left.reason} for left in made.written.left],
        "specs": [
            {
                "path": spec.file.path.as_posix(),
                "kernel": spec.kernel.name,
                "source": f"{spec.kernel.path}:{spec.kernel.line}",
                "loads": spec.skeleton.loads,
                "open_points": list(spec.skeleton.open_points),
            }
            for spec in specs
        ],
        "without": list(without),
        "note": made.note,
        "next": [*_enter(made), *_NEXT],
    }


def _enter(made: NewProject) -> list[str]:
    """Return the command that changes to the project's folder, unless this process runs there."""
    return [] if made.root.resolve() == Path.cwd() else [f"cd {made.root}"]


def new_project_view(made: NewProject) -> RenderableType:
    """Return a line for each file, the open points of each spec, and the next commands."""
    specs = {spec.file.path for spec in made.source_specs.specs} if made.source_specs else set[Path]()
    lines = [Text.assemble(("wrote  ", "green"), path.as_posix()) for path in made.written.wrote if path not in specs]
    lines += [
        Text.assemble(("left   ", "yellow"), f"{left.path.as_posix()}  ({left.reason})") for left in made.written.left
    ]
    if made.source_specs:
        lines += _specs_lines(made.source_specs, made.written)
    lines += [Text.assemble(("note   ", "yellow"), made.note)] if made.note else []
    lines += [Text(), Text("Next:"), *(Text(f"  {command}") for command in _enter(made))]
    return Group(*lines, *(Text(f"  {command:20}  # {purpose}") for command, purpose in _NEXT.items()))


def _specs_lines(sources: SourceSpecs, written: WrittenFiles) -> list[Text]:
    """Return a line for each spec, a second with the first reason of a draft, a total, and the parts without a spec."""
    specs = [spec for spec in sources.specs if spec.file.path in written.wrote]
    width = max((len(spec.kernel.name) for spec in specs), default=0)
    lines = [Text()]
    for spec in specs:
        line = Text.assemble((f"{spec.kernel.name:{width}}", "bold"), f"  {spec.kernel.path}:{spec.kernel.line}  ")
        if spec.skeleton.loads:
            lines.append(line.append("loads", "green"))
        else:
            lines += [line.append("draft", "yellow"), Text(f"  {spec.skeleton.open_points[0]}", "dim")]
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    drafts = sum(not spec.skeleton.loads for spec in specs)
    files = f"; complete a draft and remove its {_DRAFT}" if drafts else ""
    lines.append(
        Text(f"{count_text(len(specs), 'spec')}: {len(specs) - drafts} load, {count_text(drafts, 'draft')}{files}")
    )
    reasons = sources.without
    more = [f"... and {len(reasons) - _MOST} more, in --json"] if len(reasons) > _MOST else []
    return [*lines, *(Text(f"no spec: {reason}", "dim", overflow="fold") for reason in (*reasons[:_MOST], *more))]
