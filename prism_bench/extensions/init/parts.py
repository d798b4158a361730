"""Parts of a project: its configuration, an example, and what continuous integration and other tools need."""

import platform
import re
import shlex
import tomllib
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from prism_bench.catalogue.load import require_definition
from prism_bench.errors import SpecError, UsageError
from prism_bench.extensions.init.writing import DRAFT, LeftFile, PlannedFile
from prism_bench.io import project
from prism_bench.io.documents import quoted
from prism_bench.io.installation import git_output, pip_install, published_source
from prism_bench.run.worktree import default_branch

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES, _ENDING = Path(__file__).parent / "templates", ".jinja"
_SUITES = ("__init__.py", "listing.py", "measured.py", "times.py")
_EXAMPLE, _CATALOGUE, _TEXT = "example", "catalogue", "configuration.toml"
PARTS = tuple(sorted(one.name for one in _TEMPLATES.iterdir() if one.is_dir() and one.name != _EXAMPLE))
CONFIGURED = "is configured already"
# By commit: a tag can be moved to other code, which would run with a workflow's token.
ACTIONS = {
    "checkout": "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2",
    "setup_python": "actions/setup-python@a26af69be951a213d495a4c3e4e4022e16d87065 # v5.6.0",
    "upload_artifact": "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2",
}
REMOTE = ("github", "gitlab", "nightly")  # parts whose files install this package on other machines


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


def configuration_file(root: Path, facts: ProjectFacts) -> PlannedFile | LeftFile:
    """Return the configuration: a table for a pyproject.toml, else a file; the one that exists stays as it is.

    Raise a UsageError where one of the files is not right.
    """
    found, shared = _own(root), root / project.SHARED_FILE
    if found:
        return LeftFile(found.file.relative_to(root.absolute()), CONFIGURED)
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


def example_files(facts: ProjectFacts) -> list[PlannedFile]:
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
    for path in [*folder.glob("*/*.py"), *folder.glob(f"*/*.py{DRAFT}")]:
        with suppress(SpecError, ValueError, SyntaxError, OSError):
            require_definition(path, "spec", "spec")
            return False
    return True


def _place(template: Path, facts: ProjectFacts) -> Path:
    parts = [facts.catalogue if part == _CATALOGUE else part for part in template.parts[1:]]
    return Path(*parts).with_suffix("")


def _require_appendable(path: Path, table: str) -> None:
    """Raise a UsageError where the file is no TOML, or could not hold our table at its end."""
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
        _environment().get_template(name).render(**ACTIONS, **asdict(facts), published=published, asv_install=command)
    )


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    # Workflows hold ${{ ... }}, kernels << and [[...]]: ours have other marks.
    found = Environment(
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False,
        variable_start_string="@{", variable_end_string="}", block_start_string="@%", block_end_string="%@",
        comment_start_string="@#", comment_end_string="#@", trim_blocks=True,
    )  # fmt: skip
    found.filters.update(quoted=quoted, expression=_expression, branch_filter=_branch_filter)
    return found


def _expression(text: str) -> str:
    """Return the text as a string in a workflow of GitHub, where `${{` would begin an expression."""
    return quoted(text.replace("${{", "${{ '${{' }}"))


def _branch_filter(name: str) -> str:
    """Return the pattern of a workflow's `branches` that matches this name alone."""
    return quoted(re.sub(r"([*?+!\[\]\\])", r"\\\1", name))
