"""Writer of a project's files: all of them or none, and never over a file that exists."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from prism_bench.errors import UsageError
from prism_bench.io.files import create_file, write_atomically

EXISTS = "exists"
DRAFT = ".draft"  # the ending of a spec that does not load yet: one broken file would fail every command


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
    reason: str = EXISTS


@dataclass(frozen=True)
class WrittenFiles:
    """What was written, and what was left as it is, from the project's root."""

    wrote: tuple[Path, ...] = ()
    left: tuple[LeftFile, ...] = ()


def write(root: Path, files: Iterable[PlannedFile]) -> WrittenFiles:
    """Write the files below `root`, and leave those that exist.

    Raise a UsageError, and write nothing, where a file is where a folder has to be. What was written is removed again
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
