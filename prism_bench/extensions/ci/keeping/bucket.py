"""A history in a bucket: files named by content, and a manifest for each keep.

    prism-bench-history.json              the format
    files/<folder>/<digest>/<name>        a content; created once, never changed
    keeps/<UTC>-<host>-<digest>.json      a manifest: what the keep wrote, and the keeps before it that it had read

A keep writes its contents, then its manifest. So an interrupted one is not seen, nobody overwrites what another wrote,
and two at once are two manifests that did not read each other. The index is derived: of each name the versions that no
later keep, which had read them, replaced.
"""

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath

from prism_bench.errors import ResultsError, UsageError
from prism_bench.extensions.ci.keeping.names import is_kept
from prism_bench.extensions.ci.keeping.storage import Storage
from prism_bench.extensions.ci.keeping.targets import Content, HistoryState, Keep
from prism_bench.io.documents import as_kind, json_line, json_text
from prism_bench.io.files import path_part

MARKER, SCHEMA = "prism-bench-history.json", 1
_MARK = json_line({"what": "history of nightly runs of Prism Bench", "schema": SCHEMA}).encode() + b"\n"


@dataclass(frozen=True)
class Manifest:
    """One keep: when, by which host, the digests of the files that it wrote, and the newest keeps that it had read."""

    when: str
    host: str
    files: dict[str, str]
    after: tuple[str, ...]


class Bucket:
    """A history in a storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage, self.address = storage, storage.address
        self._ignored: list[str] = []

    def digest(self, data: bytes) -> str:
        """Return the SHA-256 of the content."""
        return hashlib.sha256(data).hexdigest()

    def read(self) -> HistoryState:
        """Read every manifest; raise a UsageError for a place that holds something else."""
        manifests = self._manifests(self._names())
        live = live_versions(manifests)
        return HistoryState(live, json_line(heads(manifests)))

    def _names(self) -> dict[str, int]:
        sizes = self._storage.sizes()
        if sizes and MARKER not in sizes:
            few = next(iter(sorted(sizes)))
            raise UsageError(f"{self.address} is no history, it has {few!r}: name an empty place")
        if sizes and _sound(next(iter(self._storage.read([MARKER])))) != _MARK:
            raise ResultsError(
                f"{self.address}/{MARKER}: of another format; upgrade prism-bench, or name another place"
            )
        return sizes

    def _manifests(self, names: Iterable[str]) -> dict[str, Manifest]:
        """Return the manifests by name, oldest first; those that are half-written or foreign are only reported."""
        wanted = sorted(name for name in names if name.startswith("keeps/"))
        found: dict[str, Manifest] = {}
        self._ignored = []
        for name, data in zip(wanted, self._storage.read(wanted), strict=True):
            try:
                found[name] = _decoded(name, _sound(data))
            except ValueError as error:
                self._ignored.append(f"{name}: no complete manifest ({error}); its keep counts as interrupted")
        return found

    def contents(self, files: Iterable[tuple[str, str]]) -> Iterator[bytes | ResultsError]:
        """Yield the contents of files by name and digest."""
        return self._storage.read(_place(name, digest) for name, digest in files)

    def write(self, state: HistoryState, changes: Mapping[str, Content]) -> str:
        """Create the contents, then the manifest; nothing that is there already is changed."""
        self._storage.create(MARKER, _MARK)
        digests: dict[str, str] = {}
        for name, content in changes.items():
            data = content if isinstance(content, bytes) else content.read_bytes()
            digests[name] = self.digest(data)
            self._storage.create(_place(name, digests[name]), data)
        now = datetime.now(UTC)
        after = tuple(json.loads(state.version)) if state.version else ()
        manifest = Manifest(now.isoformat(timespec="microseconds"), platform.node(), digests, after)
        data = json_text(asdict(manifest), indent=1).encode()
        name = f"keeps/{now:%Y%m%dT%H%M%S.%f}Z-{path_part(manifest.host)}-{self.digest(data)[:16]}.json"
        self._storage.create(name, data)
        return name

    def keeps(self) -> list[Keep]:
        """Return the manifests, the newest first."""
        found = self._manifests(self._names())
        return [Keep(name, one.when, one.host, len(one.files)) for name, one in reversed(found.items())]

    def problems(self) -> list[str]:
        """Return what is half-written, and what a manifest names and nobody has, of contents only former ones."""
        sizes = self._names()
        manifests = self._manifests(sizes)
        wanted = {_place(file, digest): name for name, one in manifests.items() for file, digest in one.files.items()}
        live = {_place(file, digest) for file, own in live_versions(manifests).items() for digest in own}
        gone = [f"{place}: missing; {name} names it" for place, name in wanted.items() if place not in {*sizes, *live}]
        lost = [f"{before}: missing; {name} had read it" for name, one in manifests.items()
                for before in one.after if before not in manifests]  # fmt: skip
        return [*self._ignored, *gone, *lost]


def _sound(data: bytes | ResultsError) -> bytes:
    """Return the content; raise the error that is in its place."""
    if isinstance(data, bytes):
        return data
    raise data


def _decoded(name: str, data: bytes) -> Manifest:
    """Return a manifest; raise a ValueError for one that is incomplete, foreign, or names what is not kept."""
    if not name.endswith(f"-{hashlib.sha256(data).hexdigest()[:16]}.json"):
        raise ValueError("its content does not fit its name")
    found = as_kind(json.loads(data), Manifest)
    if odd := next((file for file in found.files if not is_kept(file)), None):
        raise ValueError(f"{odd!r:.80} is no name of a history")
    if odd := next((digest for digest in found.files.values() if not _is_digest(digest)), None):
        raise ValueError(f"{odd!r:.80} is no digest")
    return found


def _is_digest(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def _place(name: str, digest: str) -> str:
    path = PurePosixPath(name)
    return f"files/{path.parent}/{digest}/{path.name}"


def heads(manifests: Mapping[str, Manifest]) -> list[str]:
    """Return the keeps that no other one had read, oldest first."""
    read = {before for one in manifests.values() for before in one.after}
    return [name for name in manifests if name not in read]


def live_versions(manifests: Mapping[str, Manifest]) -> dict[str, tuple[str, ...]]:
    """Return the digests of each file that no later keep replaced which had read them, oldest first."""
    number = {name: i for i, name in enumerate(manifests)}
    before = _ancestors(manifests, number)
    writers: dict[str, list[str]] = {}
    for name, one in manifests.items():
        for file in one.files:
            writers.setdefault(file, []).append(name)
    live: dict[str, tuple[str, ...]] = {}
    for file, names in writers.items():
        replaced = 0
        for name in names:
            replaced |= before[name]
        left = [name for name in names if not replaced >> number[name] & 1]
        live[file] = tuple(dict.fromkeys(manifests[name].files[file] for name in left))
    return live


def _ancestors(manifests: Mapping[str, Manifest], number: Mapping[str, int]) -> dict[str, int]:
    """Return for each keep a set of bits: the keeps that it, or one that it had read, had read."""
    found: dict[str, int] = {}
    waiting = list(manifests)
    while waiting:  # a clock may be wrong, so the order of the names is not that of reading
        ready = [name for name in waiting if all(one in found or one not in number for one in manifests[name].after)]
        if not ready:
            raise ResultsError("the manifests of the history name each other in a circle: run 'history verify'")
        for name in ready:
            known = [one for one in manifests[name].after if one in number]
            found[name] = 0
            for one in known:
                found[name] |= found[one] | 1 << number[one]
        waiting = [name for name in waiting if name not in found]
    return found
