"""State of the judging process before and after a judgement: its processes, environment, files and descriptors."""

import os
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path

from prism_bench.io.workers.child import children_of

EVIDENCE = "judging process afterwards"


def folder_prefix() -> str:
    """Return what names of this process's folders in the system's temporary folder begin with: others judge, too."""
    return f"prism-judge-{os.getpid()}-"


@dataclass(frozen=True)
class HostState:
    """What a judgement must leave as it was; a part that the system does not show is empty.

    `folders` are those of its judgements in the temporary folder.
    """

    processes: frozenset[int]
    descriptors: frozenset[str]
    environment: frozenset[tuple[str, str]]
    working_folder: str
    folders: frozenset[str]

    @classmethod
    def now(cls) -> "HostState":
        """Return the state of this process."""
        temporary = Path(tempfile.gettempdir())
        return cls(
            frozenset(children_of(os.getpid())), _descriptors(), frozenset(os.environ.items()), str(Path.cwd()),
            frozenset(path.name for path in temporary.glob(f"{folder_prefix()}*")),
        )  # fmt: skip

    def evidence(self, before: "HostState", leaving_out: Collection[str] = ()) -> str:
        """Return in words whether it is as before, and what is not, without the parts that are left out."""
        names = [one.name for one in fields(self) if one.name not in leaving_out]
        parts = {name: getattr(self, name) == getattr(before, name) for name in names}
        changed = [name for name, is_same in parts.items() if not is_same]
        words = ", ".join(changed or parts).replace("_", " ")
        return f"not as before: {words}" if changed else f"as before: {words}"


def _descriptors() -> frozenset[str]:
    """Return the open files, pipes and sockets by number, without the folder that is read for it."""
    folder = Path("/proc/self/fd")
    found: set[str] = set()
    for number in os.listdir(folder) if folder.is_dir() else ():
        try:
            found.add(f"{number} {os.readlink(folder / number)}")
        except OSError:  # of the listing itself
            continue
    return frozenset(found)
