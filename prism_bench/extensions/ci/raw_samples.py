"""Raw samples of records that are no longer in the checkout, and worker processes that only log."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.extensions.ci.keeping import HistoryTarget, history_target
from prism_bench.extensions.ci.keeping.storage import RECORDS, sound_contents
from prism_bench.io.files import cache_folder, path_part, write_atomically
from prism_bench.record.store.shards import ShardFolder

# Shards hold the parts of a record that trends and verdicts need. Its raw samples are in the record, which the
# project's history (`prism-bench store keep`) may keep on a branch, in a folder or in a bucket.

_AT_ONCE = 64  # copies that are read at once
_NOWHERE = "its raw samples are nowhere else: 'prism-bench store keep' keeps them"
_DAMAGED = "its copy is missing or damaged"


class KeptRaw:
    """Records of a history that shards of the checkout know; each is read once.

    `open_target` returns the history when it is first needed.
    """

    def __init__(self, open_target: Callable[[], HistoryTarget]) -> None:
        self._open_target = open_target
        self._copies: dict[Path, Path | ResultsError] = {}

    @cached_property
    def _target(self) -> HistoryTarget:
        return self._open_target()

    @cached_property
    def _files(self) -> Mapping[str, tuple[str, ...]]:
        return self._target.read().files

    def problems(self, paths: Sequence[Path]) -> Iterator[str | None]:
        """Yield for each record why its raw samples are not in the history; None if its copy is the same.

        Every copy is read: its name in the history's list is no proof. Raise if the list cannot be read.
        """
        for begin in range(0, len(paths), _AT_ONCE):
            group = paths[begin : begin + _AT_ONCE]
            files = [(_name(path), self._target.digest(path.read_bytes())) for path in group]
            listed = [digest in self._files.get(name, ()) for name, digest in files]
            copies = sound_contents(self._target, [file for file, known in zip(files, listed, strict=True) if known])
            for known in listed:
                damaged = known and not isinstance(next(copies), bytes)
                yield f"{_DAMAGED} in {self._target.address}" if damaged else None if known else _NOWHERE

    def has(self, path: Path) -> bool:
        """Return whether the history has a readable copy of the record that was at `path`, in a folder with shards."""
        try:
            return self.copy(path) is not None
        except (PrismBenchError, OSError):
            return False

    def copy(self, path: Path) -> Path | None:
        """Return the path of a copy in the user's cache; raise ResultsError if the kept copy is damaged.

        None if the history has no such record, or no history can be read.
        """
        if path not in self._copies and ShardFolder(path.parent.parent).exists(path.parent.name):
            with suppress(PrismBenchError):
                if digests := self._files.get(_name(path)):
                    self._copies[path] = self._copied(path, digests[0])
        copy = self._copies.get(path)
        if isinstance(copy, ResultsError):
            raise copy
        return copy

    def _copied(self, path: Path, digest: str) -> Path | ResultsError:
        place = cache_folder("raw") / path_part(digest) / path.name
        if not place.is_file() or self._target.digest(place.read_bytes()) != digest:
            data = next(sound_contents(self._target, [(_name(path), digest)]))
            if isinstance(data, ResultsError):
                return ResultsError(f"{path}: {_DAMAGED} in {self._target.address} ({data})")
            write_atomically(place, data)
        return place


def _name(path: Path) -> str:
    """Return the name of a record in a history: its path relative to the folder of the runs."""
    return "/".join((RECORDS, *path.parts[-2:]))


def kept_raw(address: str | None) -> KeptRaw:
    """Return the records of the history at the address, by default the configured history."""
    return KeptRaw(lambda: history_target(address))


def logged_process(
    program: str, arguments: Sequence[str], variables: Mapping[str, str], files: tuple[Path, Path]
) -> "subprocess.Popen[bytes]":
    """Start a module; `files` get its standard output and standard error, `variables` is its whole environment.

    It leads its own process group, so that a terminal's Ctrl-C reaches only its parent. Its standard input is a pipe
    without a writer: the pipe closes when the parent ends.
    """
    with files[0].open("wb") as output, files[1].open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", program, *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=log,
            env=variables,
            process_group=0,
        )
