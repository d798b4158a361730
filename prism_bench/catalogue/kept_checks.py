"""Which built-in catalogue has passed its checks: building every case of it takes longer than loading it does."""

import hashlib
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import prism_bench
from prism_bench.errors import CacheUnavailable
from prism_bench.io.files import cache_folder, default_folder, hash_of_files, write_atomically

_MOST = 16  # states of the catalogue that are remembered
_passed: set[str] = set()  # in this process, whose cache may take no file


class KeptChecks:
    """Whether the catalogue at `root` has passed its checks as it is, with this package, Python and NumPy.

    Of the built-in catalogue alone: specs of others may import what is not in their folder.
    """

    def __init__(self, root: Path) -> None:
        self._key = _state_of(root) if root.resolve() == default_folder().resolve() else None

    def has_passed(self) -> bool:
        """Return whether it has; False where that is not known."""
        return self._key is not None and (self._key in _passed or (_folder() / self._key).is_file())

    def keep(self) -> None:
        """Remember that it has."""
        if self._key is None or self.has_passed():
            return
        _passed.add(self._key)
        with suppress(OSError, CacheUnavailable):
            _folder().mkdir(parents=True, exist_ok=True)
            for old in sorted(_folder().iterdir(), key=lambda file: file.stat().st_mtime)[: 1 - _MOST]:
                old.unlink(missing_ok=True)
            write_atomically(_folder() / self._key, b"")


def _folder() -> Path:
    return cache_folder("catalogue")


def _state_of(root: Path) -> str:
    """Return a digest of all Python files of the catalogue, and of size and time of those of this package."""
    digest = hashlib.sha256(f"{sys.version} {version('numpy')} {hash_of_files(root, root.rglob('*.py'))}".encode())
    package = Path(prism_bench.__file__).parent
    for path in sorted(package.rglob("*.py")):
        found = path.stat()
        digest.update(f"{path.relative_to(package)} {found.st_size} {found.st_mtime_ns} ".encode())
    return digest.hexdigest()[:32]
