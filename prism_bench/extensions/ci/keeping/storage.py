"""Storage of a bucket: files that are created and never changed, in a folder or at an fsspec URL."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from prism_bench.errors import ResultsError, UsageError
from prism_bench.io.files import ENDING, confined, create_file
from prism_bench.io.installation import pip_install

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
        """Return the size of every file in bytes, by name; empty where there is nothing."""
        ...

    def read(self, names: Iterable[str]) -> Iterator[bytes | ResultsError]:
        """Yield the contents of files, in their order; in place of one that cannot be read an error with the reason."""
        ...

    def create(self, name: str, data: bytes) -> None:
        """Create a file; one of the same name has the same content, because the name holds its digest."""
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
            found = (path for path in self._folder.rglob("*") if path.is_file() and not path.name.endswith(ENDING))
            return {path.relative_to(self._folder).as_posix(): path.stat().st_size for path in found}

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
                found = self._files.find(self._root, detail=True)
            except FileNotFoundError:
                return {}
            return {path[len(self._root) + 1 :]: int(facts.get("size") or 0) for path, facts in found.items()}

    def read(self, names: Iterable[str]) -> Iterator[bytes | ResultsError]:
        """Yield the contents of files, or errors; a group of them is read at a time."""
        wanted = [f"{self._root}/{name}" for name in names]
        for begin in range(0, len(wanted), 64):
            group = wanted[begin : begin + 64]
            with _reachable(self.address):
                found: dict[str, object] = self._files.cat(group, on_error="return")
            for path in group:
                data = found.get(path, FileNotFoundError("missing"))
                yield data if isinstance(data, bytes) else ResultsError(f"{self.address}: {path}: {data or 'missing'}")

    def create(self, name: str, data: bytes) -> None:
        """Create a file; an object store writes it whole or not at all."""
        path = f"{self._root}/{name}"
        with _reachable(self.address):
            if not self._protocols & _WITHOUT_FOLDERS:
                self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(path, data)

    @property
    def _protocols(self) -> set[str]:
        found: str | tuple[str, ...] = self._files.protocol
        return {found} if isinstance(found, str) else set(found)


def url_storage(address: str, options: Mapping[str, object]) -> UrlStorage:
    """Return the storage of a URL; a UsageError where fsspec, or its package for the protocol, is not installed."""
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
    """Raise a ResultsError that names the place for any error of the system."""
    try:
        yield
    except OSError as error:
        raise ResultsError(f"{place}: {error.strerror or error}") from error


@contextmanager
def _reachable(address: str) -> Iterator[None]:
    """Raise a ResultsError with the cure for whatever a library of fsspec raises; each has its own errors."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or "no reason"
        cure = "check the address, the network and the credentials"
        raise ResultsError(f"{address} cannot be used ({type(error).__name__}: {reason}): {cure}") from error
