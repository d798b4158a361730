"""A site is written so that whoever looks at it, at any moment, sees pages that are whole and belong together.

Everything is rendered and written next to the old site first; a report that is interrupted until then leaves the old
one as it was. What changed is then moved into place in one short go that no signal interrupts: data, named after
its content, before the pages that load them, the first page last; and only afterwards goes what no page needs.
"""

import json
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prism_bench.io.documents import json_text

_LIST = "site.json"  # which files of the folder are the site's: everything else in it is somebody else's
_FIRST_PAGE = "index.html"
_STAGE = ".new-"
_ABANDONED = 3600.0  # seconds: no report takes so long


@dataclass(frozen=True)
class Written:
    """How many files the site has, and the names of those that were `changed` and `removed` by this writing."""

    files: int
    changed: tuple[str, ...]
    removed: tuple[str, ...]


def write_site(folder: Path, files: Iterable[tuple[str, bytes | None]]) -> Written:
    """Make the site in `folder` consist of these files, by name; what is not the site's own there stays.

    A file whose content is there already is not touched; one whose content is None is known to be. An OSError leaves
    the old site whole.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _clear(folder)
    stage = Path(tempfile.mkdtemp(dir=folder, prefix=_STAGE))
    try:
        names, changed = _staged(folder, stage, files)
        removed = sorted(set(_own(folder)) - names)
        if changed or removed:
            _stage(stage / _LIST, json_text(sorted(names), indent=0).encode())
            with _uninterrupted():
                _move(folder, stage, [*changed, _LIST], removed)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return Written(len(names), tuple(changed), tuple(removed))


def _clear(folder: Path) -> None:
    """Remove temporary files left by an interrupted report."""
    for stage in folder.glob(f"{_STAGE}*"):
        if time.time() - stage.stat().st_mtime > _ABANDONED:
            shutil.rmtree(stage, ignore_errors=True)


def _staged(folder: Path, stage: Path, files: Iterable[tuple[str, bytes | None]]) -> tuple[set[str], list[str]]:
    """Return the names of all files, and of those that were written to `stage` because they are new."""
    names, changed = set(), []
    for name, content in files:
        names.add(name)
        if content is not None and not _is_there(folder / name, content):
            _stage(stage / name, content)
            changed.append(name)
    return names, sorted(changed, key=_turn)


def _is_there(path: Path, content: bytes) -> bool:
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def _stage(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _turn(name: str) -> tuple[bool, bool, str]:
    """Sort pages after what they load, the first page last."""
    return name.endswith(".html"), name == _FIRST_PAGE, name


def _move(folder: Path, stage: Path, changed: Iterable[str], removed: Sequence[str]) -> None:
    for name in changed:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(stage / name, folder / name)
    for name in removed:
        (folder / name).unlink(missing_ok=True)
    for parent in sorted({parent for name in removed for parent in _parents(name)}, key=len, reverse=True):
        _remove_empty(folder / parent)


def _parents(name: str) -> Iterator[str]:
    return (parent.as_posix() for parent in Path(name).parents if parent != Path())


def _remove_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _own(folder: Path) -> list[str]:
    """Return the files that the last writing left; none where there is no list, or none that can be read."""
    try:
        listed = json.loads((folder / _LIST).read_text("utf-8"))
    except (OSError, ValueError):
        return []
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    return [name for name in names if (folder / name).resolve().is_relative_to(folder.resolve())]


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold signals that ask for an end until the files have been moved, which takes milliseconds."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's: none reaches this one
        return
    waiting: list[int] = []
    ends = (signal.SIGINT, signal.SIGTERM)
    before = {one: signal.signal(one, lambda number, _: waiting.append(number)) for one in ends}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler or signal.SIG_DFL)
        for one in waiting:
            signal.raise_signal(one)
