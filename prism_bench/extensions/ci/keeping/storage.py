"""Storage of a history: names of the kept files, and a bucket of files named by content with a manifest per keep."""

import hashlib
import json
import platform
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from prism_bench.errors import ResultsError, UsageError
from prism_bench.io.documents import as_kind, json_line, json_text
from prism_bench.io.files import ENDING, confined, create_file, path_part
from prism_bench.io.installation import pip_install
from prism_bench.record.store.records import in_order, numbered
from prism_bench.record.store.shards import ENDING as SHARD

# Names of the files of a history: a folder of PLACES, and the path in it; records may be in any folder here.

RECORDS, LEDGERS, ASV, ALERTS = _PLACES = ("runs", "nights", "asv-nights", "alerts")


def is_kept(name: str) -> bool:
    """Return whether the name belongs to a history: a file in one of _PLACES, by a path that stays there."""
    parts = PurePosixPath(name).parts
    return len(parts) > 1 and parts[0] in _PLACES and ".." not in parts and str(PurePosixPath(name)) == name


def is_merged(name: str) -> bool:
    """Return whether two contents of the file are merged: ledgers and the state of alerts."""
    return name.startswith((f"{LEDGERS}/", f"{ALERTS}/"))


def is_record(name: str) -> bool:
    """Return whether the file is a run record, which only its writer replaces."""
    return name.startswith(f"{RECORDS}/") and not is_shard(name)


def is_shard(name: str) -> bool:
    """Return whether the file is a shard of records: derived from them, so that the last written shard counts."""
    return name.startswith(f"{RECORDS}/") and name.endswith(SHARD)


def _folder(runs: Path, place: str) -> Path:
    """Return the folder of a place: records are in `runs`, whatever its name; the other folders are next to it."""
    return runs if place == RECORDS else runs.parent / place


def local_files(runs: Path) -> dict[str, Path]:
    """Return the files that are kept, by name, where the records are below `runs`."""
    files: dict[str, Path] = {}
    for place in _PLACES:
        folder = _folder(runs, place)
        for path in sorted(folder.rglob("*")):
            relative = path.relative_to(folder)
            hidden = path.name.endswith(ENDING) or any(part.startswith(".") for part in relative.parts)
            if path.is_file() and not path.is_symlink() and not hidden:
                files[f"{place}/{relative.as_posix()}"] = path
    return files


def local_path(runs: Path, name: str) -> Path:
    """Return where the file of that name is; raise a ResultsError for a name that is not kept."""
    if not is_kept(name):
        raise ResultsError(f"{name!r:.80} is no name of a history: its folder is one of {', '.join(_PLACES)}")
    place, _, rest = name.partition("/")
    return confined(_folder(runs, place), rest)


def require_records(runs: Path) -> None:
    """Raise UsageError if `runs` is no folder, or holds files and no record of any machine."""
    if not runs.is_dir():
        raise UsageError(f"{runs}: no such folder; name that of the run records, such as --runs reports/runs")
    held = any(path.is_file() for path in runs.rglob("*"))
    if held and not any(runs.glob("*/*.json.gz")) and not any(runs.glob(f"*/**/*{SHARD}")):
        raise UsageError(f"{runs}: no run record is in a folder of it; name the folder above those of the machines")


def family(name: str) -> tuple[str, str]:
    """Return the common key of records that began in the same second: the folder, and the first name."""
    path = Path(name)
    return path.parent.as_posix(), in_order(path)[0]


def free_name(name: str, taken: Container[str]) -> str:
    """Return the first free name of a record with -2, -3 and so on, as records of the same second have them."""
    return next(path.as_posix() for path in islice(numbered(Path(name)), 1, None) if path.as_posix() not in taken)


# Storage of a bucket: files are created and never changed, in a folder or at an fsspec URL.

_S3 = {"config_kwargs": {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 3}}}

# Object stores, where making a folder would create the bucket whose name was mistyped.
_WITHOUT_FOLDERS = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss"}


class Storage(Protocol):
    """Named contents at one address."""

    @property
    def address(self) -> str:
        """The address, for messages."""
        ...

    def sizes(self) -> dict[str, int]:
        """Return the size of every file in bytes, by name; empty if there is nothing."""
        ...

    def read(self, names: Iterable[str]) -> Iterator[bytes | ResultsError]:
        """Yield the contents of files, in their order; an error with the reason for a file that cannot be read."""
        ...

    def create(self, name: str, data: bytes) -> None:
        """Create a file; an existing file of that name has the same content, because the name holds its digest."""
        ...


class FolderStorage:
    """A folder; files are written next to their places and moved there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address = str(folder)
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"--to {folder}: it is a file; name a folder")

    def sizes(self) -> dict[str, int]:
        """Return the size of every file in bytes, by name."""
        with _named(self.address):
            paths = (path for path in self._folder.rglob("*") if path.is_file() and not path.name.endswith(ENDING))
            return {path.relative_to(self._folder).as_posix(): path.stat().st_size for path in paths}

    def read(self, names: Iterable[str]) -> Iterator[bytes | ResultsError]:
        """Yield the contents of files, or errors."""
        for name in names:
            try:
                yield confined(self._folder, name).read_bytes()
            except OSError as error:
                yield ResultsError(f"{self.address}/{name}: {error.strerror or error}")

    def create(self, name: str, data: bytes) -> None:
        """Create a file, whole or not at all."""
        path = confined(self._folder, name)
        with _named(str(path)):
            if path.is_file() and path.read_bytes() != data:
                path.unlink()  # damaged: its name holds the digest of what it should be
            try:
                create_file(path, data)
            except FileExistsError:
                return


class UrlStorage:
    """A URL of fsspec, such as `s3://bucket/prefix`."""

    def __init__(self, address: str, files: Any, root: str) -> None:
        self.address, self._files, self._root = address, files, root.rstrip("/")

    def sizes(self) -> dict[str, int]:
        """Return the size of every file in bytes, by name."""
        with _reachable(self.address):
            self._files.invalidate_cache()
            try:
                sizes = self._files.find(self._root, detail=True)
            except FileNotFoundError:
                return {}
            return {path[len(self._root) + 1 :]: int(facts.get("size") or 0) for path, facts in sizes.items()}

    def read(self, names: Iterable[str]) -> Iterator[bytes | ResultsError]:
        """Yield the contents of files, or errors; a group of them is read at a time."""
        wanted = [f"{self._root}/{name}" for name in names]
        for begin in range(0, len(wanted), 64):
            group = wanted[begin : begin + 64]
            with _reachable(self.address):
                contents: dict[str, object] = self._files.cat(group, on_error="return")
            for path in group:
                data = contents.get(path, FileNotFoundError("missing"))
                yield data if isinstance(data, bytes) else ResultsError(f"{self.address}: {path}: {data or 'missing'}")

    def create(self, name: str, data: bytes) -> None:
        """Create a file; an object store writes it whole or not at all."""
        path = f"{self._root}/{name}"
        with _reachable(self.address):
            protocol: str | tuple[str, ...] = self._files.protocol
            if _WITHOUT_FOLDERS.isdisjoint({protocol} if isinstance(protocol, str) else protocol):
                self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(path, data)


def url_storage(address: str, options: Mapping[str, object]) -> UrlStorage:
    """Return the storage of a URL; UsageError if fsspec, or its package for the protocol, is not installed."""
    try:
        import fsspec
    except ImportError:
        raise UsageError(f"--to {address} needs fsspec: {pip_install('history')}") from None
    defaults = _S3 if address.startswith(("s3://", "s3a://")) else {}
    try:
        files, root = fsspec.core.url_to_fs(address, **{**defaults, **options})
    except ImportError as error:
        raise UsageError(f"--to {address}: {error}; for s3: {pip_install('history')}") from None
    except (ValueError, TypeError) as error:
        raise UsageError(f"--to {address}: fsspec does not take it ({error})") from None
    return UrlStorage(address, files, root)


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Raise ResultsError that names the place for any error of the system."""
    try:
        yield
    except OSError as error:
        raise ResultsError(f"{place}: {error.strerror or error}") from error


@contextmanager
def _reachable(address: str) -> Iterator[None]:
    """Raise ResultsError with the cure for whatever a library of fsspec raises; each has its own errors."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or "no reason"
        cure = "check the address, the network and the credentials"
        raise ResultsError(f"{address} cannot be used ({type(error).__name__}: {reason}): {cure}") from error


# Targets: the interface of a place that keeps a history.

BRANCH = "branch:"
DEFAULT = f"{BRANCH}prism-bench-history"
Content = Path | bytes  # a file's, read when it is needed


@dataclass(frozen=True)
class HistoryState:
    """State of a history: the digests of each file by name, several after simultaneous keeps, and a `version`."""

    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    version: str = ""


@dataclass(frozen=True)
class Keep:
    """Keep of a history: its name, its time (ISO 8601, UTC), its author, and the number of written files."""

    id: str
    when: str
    who: str
    files: int


class HistoryTarget(Protocol):
    """A place that keeps a history."""

    @property
    def address(self) -> str:
        """Its address, for messages."""
        ...

    def digest(self, data: bytes) -> str:
        """Return the digest by which this place names a content."""
        ...

    def read(self) -> HistoryState:
        """Return the kept state, which may be empty."""
        ...

    def contents(self, files: Iterable[tuple[str, str]]) -> Iterable[bytes | ResultsError]:
        """Yield the contents of files by name and digest, in their order; errors in place of those that are missing."""
        ...

    def write(self, state: HistoryState, changes: Mapping[str, Content]) -> str:
        """Keep the changes after `state`; return the keep's name, or raise HistoryMoved and write nothing."""
        ...

    def keeps(self) -> list[Keep]:
        """Return all keeps, the newest first."""
        ...

    def problems(self) -> list[str]:
        """Return a sentence for each thing that is missing or damaged here."""
        ...


def sound_contents(target: HistoryTarget, files: Sequence[tuple[str, str]]) -> Iterator[bytes | ResultsError]:
    """Yield the contents of files by name and digest; an error for a content that is missing or damaged."""
    for (name, digest), data in zip(files, target.contents(files), strict=True):
        damaged = isinstance(data, bytes) and target.digest(data) != digest
        yield ResultsError(f"{name}: its content is not what was kept") if damaged else data


# Buckets: files named by content, and a manifest for each keep.
#
#     prism-bench-history.json              the format
#     files/<folder>/<digest>/<name>        a content; created once, never changed
#     keeps/<UTC>-<host>-<digest>.json      a manifest: the files that the keep wrote, and the keeps that it had read
#
# A keep writes its contents, then its manifest. So an interrupted keep is invisible, no keep overwrites another, and
# two simultaneous keeps are two manifests that did not read each other. The index is derived: of each name, the
# versions that no later keep replaced after reading them.

MARKER, _SCHEMA = "prism-bench-history.json", 1
_MARK = json_line({"what": "history of nightly runs of Prism Bench", "schema": _SCHEMA}).encode() + b"\n"


@dataclass(frozen=True)
class Manifest:
    """Manifest of a keep: time, host, the digests of the files that it wrote, and the newest keeps that it had read."""

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
        """Read every manifest; raise UsageError for a place that holds other files."""
        manifests = self._manifests(self._names())
        live = _live_versions(manifests)
        return HistoryState(live, json_line(heads(manifests)))

    def _names(self) -> dict[str, int]:
        sizes = self._storage.sizes()
        if sizes and MARKER not in sizes:
            first = min(sizes)
            raise UsageError(f"{self.address} is no history, it has {first!r}: name an empty place")
        if sizes and _sound(next(iter(self._storage.read([MARKER])))) != _MARK:
            raise ResultsError(
                f"{self.address}/{MARKER}: of another format; upgrade prism-bench, or name another place"
            )
        return sizes

    def _manifests(self, names: Iterable[str]) -> dict[str, Manifest]:
        """Return the manifests by name, oldest first; half-written or foreign ones are only reported."""
        wanted = sorted(name for name in names if name.startswith("keeps/"))
        manifests: dict[str, Manifest] = {}
        self._ignored = []
        for name, data in zip(wanted, self._storage.read(wanted), strict=True):
            try:
                manifests[name] = _decoded(name, _sound(data))
            except ValueError as error:
                self._ignored.append(f"{name}: no complete manifest ({error}); its keep counts as interrupted")
        return manifests

    def contents(self, files: Iterable[tuple[str, str]]) -> Iterator[bytes | ResultsError]:
        """Yield the contents of files by name and digest."""
        return self._storage.read(_place(name, digest) for name, digest in files)

    def write(self, state: HistoryState, changes: Mapping[str, Content]) -> str:
        """Create the contents, then the manifest; no existing file is changed."""
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
        manifests = self._manifests(self._names())
        return [
            Keep(name, manifest.when, manifest.host, len(manifest.files))
            for name, manifest in reversed(manifests.items())
        ]

    def problems(self) -> list[str]:
        """Return a sentence for each half-written manifest, missing former content and missing manifest.

        Missing current contents are found by reading them.
        """
        sizes = self._names()
        manifests = self._manifests(sizes)
        wanted = {
            _place(file, digest): name
            for name, manifest in manifests.items()
            for file, digest in manifest.files.items()
        }
        live = {_place(file, digest) for file, digests in _live_versions(manifests).items() for digest in digests}
        gone = [f"{place}: missing; {name} names it" for place, name in wanted.items() if place not in {*sizes, *live}]
        lost = [
            f"{before}: missing; {name} had read it"
            for name, manifest in manifests.items()
            for before in manifest.after
            if before not in manifests
        ]
        return [*self._ignored, *gone, *lost]


def _sound(data: bytes | ResultsError) -> bytes:
    """Return the content; raise it if it is an error."""
    if isinstance(data, bytes):
        return data
    raise data


def _decoded(name: str, data: bytes) -> Manifest:
    """Return a manifest; raise ValueError if it is incomplete, foreign, or names files that are not kept."""
    if not name.endswith(f"-{hashlib.sha256(data).hexdigest()[:16]}.json"):
        raise ValueError("its content does not fit its name")
    manifest = as_kind(json.loads(data), Manifest)
    if odd := next((file for file in manifest.files if not is_kept(file)), None):
        raise ValueError(f"{odd!r:.80} is no name of a history")
    for digest in manifest.files.values():
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise ValueError(f"{digest!r:.80} is no digest")
    return manifest


def _place(name: str, digest: str) -> str:
    path = PurePosixPath(name)
    return f"files/{path.parent}/{digest}/{path.name}"


def heads(manifests: Mapping[str, Manifest]) -> list[str]:
    """Return the keeps that no other keep had read, oldest first."""
    read = {before for manifest in manifests.values() for before in manifest.after}
    return [name for name in manifests if name not in read]


def _live_versions(manifests: Mapping[str, Manifest]) -> dict[str, tuple[str, ...]]:
    """Return the digests of each file, oldest first, without those that a later keep replaced after reading them."""
    number = {name: i for i, name in enumerate(manifests)}
    before = _ancestors(manifests, number)
    writers: dict[str, list[str]] = {}
    for name, manifest in manifests.items():
        for file in manifest.files:
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
    """Return for each keep, as bits, the keeps that it had read directly or indirectly."""
    ancestors: dict[str, int] = {}
    waiting = list(manifests)
    while waiting:  # a clock may be wrong, so the order of the names is not that of reading
        ready = [
            name
            for name in waiting
            if all(before in ancestors or before not in number for before in manifests[name].after)
        ]
        if not ready:
            raise ResultsError(
                "the manifests of the history name each other in a circle: run 'prism-bench store verify --to ADDRESS'"
            )
        for name in ready:
            known = [before for before in manifests[name].after if before in number]
            ancestors[name] = 0
            for before in known:
                ancestors[name] |= ancestors[before] | 1 << number[before]
        waiting = [name for name in waiting if name not in ancestors]
    return ancestors
