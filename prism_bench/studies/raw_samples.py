"""Raw samples of records that are not in the checkout any more: which may go, and where the others are read from.

Shards hold what a trend and a verdict need of a record. Its raw samples are in the record, which the project's history
(`prism-bench history`) may keep on a branch, in a folder or in a bucket.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.files import cache_folder, path_part, write_atomically
from prism_bench.store.shards import ShardFolder
from prism_bench.store.upkeep import removable
from prism_bench.studies.keeping import HistoryTarget, history_target


@dataclass(frozen=True)
class Pruned:
    """Records that were removed, or would be; why others that are old enough stay, by file; the bytes of the former."""

    removed: tuple[str, ...]
    stay: Mapping[str, str]
    bytes: int


class KeptRaw:
    """The records that a history keeps, read once, as far as shards of the checkout know them.

    `open_target` returns the history when it is first needed.
    """

    def __init__(self, open_target: Callable[[], HistoryTarget]) -> None:
        self._open_target = open_target

    @cached_property
    def _target(self) -> HistoryTarget:
        return self._open_target()

    @cached_property
    def _files(self) -> Mapping[str, tuple[str, ...]]:
        return self._target.read().files

    @cached_property
    def _readable(self) -> Mapping[str, tuple[str, ...]]:
        """The same; empty where there is no such history or it cannot be read: what is missing is only missing."""
        try:
            return self._files
        except PrismBenchError:
            return {}

    def holds(self, path: Path) -> bool:
        """Return whether the history has the content of the record at `path`; raise where it cannot be read."""
        return self._target.digest(path.read_bytes()) in self._files.get(_name(path), ())

    def has(self, path: Path) -> bool:
        """Return whether the history has a record that was at `path`, in a folder with shards."""
        return ShardFolder(path.parent.parent).exists(path.parent.name) and _name(path) in self._readable

    def copy(self, path: Path) -> Path | None:
        """Return the path of a copy in the user's cache; raise a ResultsError where it is not what was kept."""
        if not self.has(path):
            return None
        digest = self._files[_name(path)][0]
        place = cache_folder("raw") / path_part(digest) / path.name
        if not place.is_file():
            data = next(iter(self._target.contents([(_name(path), digest)])))
            if self._target.digest(data) != digest:
                raise ResultsError(f"{path}: its copy in {self._target.address} is not what was kept")
            write_atomically(place, data)
        return place


def _name(path: Path) -> str:
    """Return the name of a record in a history: its path from the folder of the runs on."""
    return "/".join(path.parts[-3:])


def configured_raw() -> KeptRaw:
    """Return the records of the history that the project configures, else of the default one."""
    return KeptRaw(lambda: history_target(None))


def prune(root: Path, before: str, used: Mapping[str, str], kept: KeptRaw | None, *, remove: bool) -> Pruned:
    """Remove the records below `root` from before a time (ISO 8601, UTC) that shards hold; only count without `remove`.

    Those that are `used` stay, by their names, and with `kept` those that this history has not.
    """
    found, stay = removable(root, before, used)
    removed: list[str] = []
    size = 0
    for path in found:
        file = path.relative_to(root).as_posix()
        if kept is not None and not kept.holds(path):
            stay[file] = "its raw samples are nowhere else: 'prism-bench history keep' keeps them"
            continue
        removed.append(file)
        size += path.stat().st_size
        if remove:
            path.unlink(missing_ok=True)
    return Pruned(tuple(removed), stay, size)
