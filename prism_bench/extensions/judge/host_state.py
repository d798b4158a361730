"""State of the judging process before and after a judgement: its processes, environment, files and descriptors."""

import os
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path

from prism_bench.workers.child import children_of

EVIDENCE = "judging process afterwards"
_OURS = "prism-judge-*"  # folders that a judgement makes in the system's temporary folder


@dataclass(frozen=True)
class HostState:
    """What a judgement must leave as it was; a part that the system does not show is empty.

    `folders` are those of judgements in the temporary folder.
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
            frozenset(path.name for path in temporary.glob(_OURS)),
        )  # fmt: skip

    def evidence(self, before: "HostState") -> str:
        """Return in words whether it is as before, and what is not."""
        parts = {one.name: getattr(self, one.name) == getattr(before, one.name) for one in fields(self)}
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
