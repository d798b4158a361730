"""A new project: what is planned, written, and left to its author."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prism_bench.errors import UsageError
from prism_bench.extensions.init.parts import REMOTE, ProjectFacts, configuration_file, example_files, part_files
from prism_bench.extensions.init.skeletons import FoundFiles, skeleton_files
from prism_bench.extensions.init.writing import LeftFile, PlannedFile, WrittenFiles, write
from prism_bench.io.installation import published_source


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

    Without it an empty catalogue gets an example. Raise a UsageError, with nothing written, where a file that exists is
    in the way or not right, or where no kernel is found.
    """
    if root.exists() and not root.is_dir():
        raise UsageError(f"{root} is a file; name the folder of the project")
    facts = ProjectFacts.of(root)
    configuration = configuration_file(root, facts)
    found = skeleton_files(source, root.absolute(), facts.catalogue) if source else None
    files = list(_files(root, facts, parts, found))
    already = (configuration,) if isinstance(configuration, LeftFile) else ()
    planned = [*([configuration] if isinstance(configuration, PlannedFile) else []), *files]
    written = write(root, planned)
    note = published_source()[1] if set(parts) & set(REMOTE) else None
    return NewProject(root, facts.catalogue, WrittenFiles(written.wrote, (*already, *written.left)), found, note)


def _files(root: Path, facts: ProjectFacts, parts: Sequence[str], found: FoundFiles | None) -> Iterable[PlannedFile]:
    if found:
        yield from (one.file for one in found.specs)
    elif not any((root / facts.catalogue).glob("*/*.py")):
        yield from example_files(facts)
    for part in dict.fromkeys(parts):
        yield from part_files(part, facts)
