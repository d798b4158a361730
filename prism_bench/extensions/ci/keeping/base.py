"""What a checkout and its history had in common last: it shows who changed a file since."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prism_bench.extensions.ci.keeping.names import is_kept, is_merged
from prism_bench.io.files import Schema, write_atomically

_SCHEMA = Schema("what was common with a history", 1, "prism-bench history fetch")


class Base:
    """Digests by name and contents of what is merged, in `.prism-bench/history/<address>` of the checkout."""

    def __init__(self, folder: Path, address: str) -> None:
        digest = hashlib.sha256(address.encode()).hexdigest()[:16]
        self._folder = own_folder(folder) / "history" / digest
        plain: Mapping[str, Any] = _SCHEMA.read(self._folder / "base.json") or {}
        self._digests = _SCHEMA.kind_of(plain.get("files", {}), dict[str, str], self._folder / "base.json")

    def digest(self, name: str) -> str:
        """Return the digest of the common content; empty where there was none."""
        return self._digests.get(name, "")

    def content(self, name: str) -> bytes | None:
        """Return the common content of a file that is merged; None where there was none."""
        path = self._folder / "files" / name
        return path.read_bytes() if is_kept(name) and path.is_file() else None

    def write(self, digests: Mapping[str, str], contents: Mapping[str, bytes]) -> None:
        """Keep what is common now; the digests come last, so that an interrupted write leaves the state before."""
        for name, data in contents.items():
            if is_merged(name):
                write_atomically(self._folder / "files" / name, data)
        self._digests = {**self._digests, **digests}
        _SCHEMA.write(self._folder / "base.json", {"files": dict(sorted(self._digests.items()))})


def own_folder(folder: Path) -> Path:
    """Return `.prism-bench` in the folder, made with a `.gitignore` that leaves all of it out of git."""
    own = folder / ".prism-bench"
    if not (own / ".gitignore").is_file():
        write_atomically(own / ".gitignore", b"*\n")
    return own
