"""One source file through NVRTC, cached on disk by everything that can change the result."""

import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_bench.compilation import bindings
from prism_bench.compilation.code import Resources, resources
from prism_bench.compilation.code_text import without_comments
from prism_bench.compilation.headers import include_folders
from prism_bench.entry import missing_entry
from prism_bench.errors import CompilationFailed
from prism_bench.files import cache_errors, cache_folder, first_in, shared_with, write_atomically
from prism_bench.strict_json import json_text

LANGUAGE = ("-std=c++17", "--device-as-default-execution-space")
BASE_OPTIONS = (*LANGUAGE, "-lineinfo", "--ptxas-options=-v")
OWN_FEATURES = {"90": "90a"}  # a cubin is for one device anyway: with it, the instructions that no other has
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Compiled:
    """A compiled source: `path` of the CUBIN, the mangled name of every entry asked for, and what it takes.

    `seconds` is what the compiler took, whether now or when the cached file was made.
    """

    path: Path
    lowered: dict[str, str]
    resources: dict[str, Resources]
    log: str
    seconds: float
    cached: bool

    @property
    def cubin(self) -> bytes:
        return self.path.read_bytes()


def nvrtc_version() -> str:
    """`13.5`; BackendUnavailable where there is no NVRTC."""
    return ".".join(str(part) for part in bindings.load().version())


def compile_source(
    source: Path, entries: Sequence[str], architecture: str, options: Sequence[str] = (), cache: bool = True
) -> Compiled:
    """Compile `source` for `architecture` (`90`) with the given entries (names or template instances).

    CompilationFailed holds NVRTC's log with file and line; BackendUnavailable means that NVRTC is missing.
    """
    nvrtc = bindings.load()
    text = source.read_text()
    flags = _flags(architecture, options, nvrtc.version())
    key = _key(source, text, entries, flags, nvrtc.version())
    flags = (*flags, *_folders(source))
    path = cache_folder("cubin") / f"{source.stem}-sm{architecture}-{key}.cubin"
    kept = _from_cache(path)
    if cache and kept:
        return kept
    started = time.perf_counter()
    cubin, lowered, log = nvrtc.compile(text, str(source), entries, flags)
    if cubin is None:
        code = "\n".join([text, *_included(source, text)])
        raise CompilationFailed(
            missing_entry(entries, code, str(source)) or f"{source} for sm_{architecture}:\n{log.strip()}"
        )
    seconds = time.perf_counter() - started
    if not kept:
        _to_cache(path, cubin, {"lowered": lowered, "log": log, "seconds": seconds})
    return Compiled(path, lowered, resources(log), log, seconds, cached=False)


def compile_to_ptx(source: Path, entries: Sequence[str], architecture: str) -> str:
    """Return the PTX of `source` for a compute capability; it contains no path and no line, so it is reproducible.

    CompilationFailed and BackendUnavailable as for compile_source.
    """
    nvrtc = bindings.load()
    flags = (f"-arch=compute_{OWN_FEATURES.get(architecture, architecture)}", *LANGUAGE, *_folders(source))
    text, _, log = nvrtc.ptx(source.read_text(), source.name, entries, flags)
    if text is None:
        raise CompilationFailed(f"{source} for compute_{architecture}:\n{log.strip()}")
    return text.decode()


def source_hash(source: Path) -> str:
    """Return a hash of the source and of the catalogue's own headers that it includes, without their comments."""
    text = source.read_text()
    digest = hashlib.sha256(without_comments(text).encode())
    for part in _included(source, text):
        digest.update(without_comments(part).encode())
    return digest.hexdigest()


def content_hash(source: Path) -> str:
    """Return a hash of every character of the source and of the catalogue's own headers that it includes."""
    return _content_of(source, source.read_text())


def _flags(architecture: str, options: Sequence[str], version: tuple[int, ...]) -> tuple[str, ...]:
    """NVRTC's own cache (since 12.9) is off: what comes out of it has no log, and its time is not the compiler's."""
    own = ("-no-cache",) if version >= (12, 9) else ()
    target = OWN_FEATURES.get(architecture, architecture)
    return (f"-arch=sm_{target}", *BASE_OPTIONS, *own, *options)


def _folders(source: Path) -> tuple[str, ...]:
    folders = (str(source.parent), *map(str, shared_with(source)), *include_folders())
    return tuple(f"-I{folder}" for folder in folders)


def _key(source: Path, text: str, entries: Sequence[str], flags: Sequence[str], version: tuple[int, ...]) -> str:
    """Return a hash of everything that decides the machine code; where the files are does not.

    Two checkouts of one commit share what was compiled; the lines that it names are then those of the first one.
    """
    words = repr((tuple(entries), tuple(flags), include_folders(), version, _content_of(source, text)))
    return hashlib.sha256(words.encode()).hexdigest()[:20]


def _content_of(source: Path, text: str) -> str:
    digest = hashlib.sha256()
    for part in (text, *_included(source, text)):
        digest.update(part.encode())
    return digest.hexdigest()


def _included(source: Path, text: str) -> Iterator[str]:
    """Return the texts of the catalogue's own files that the source, with that text, includes, directly or not."""
    return _reached(source, text, (source.parent, *shared_with(source)), set())


def _reached(path: Path, text: str, folders: Sequence[Path], seen: set[Path]) -> Iterator[str]:
    for name in _INCLUDE.findall(text):
        found = first_in((path.parent, *folders), name)
        header = found and found.resolve()
        if header and header not in seen:
            seen.add(header)
            body = header.read_text()
            yield body
            yield from _reached(header, body, folders, seen)


def _from_cache(path: Path) -> Compiled | None:
    """Return what was kept, or None where nothing was or it cannot be read."""
    try:
        facts = json.loads(path.with_suffix(".json").read_text())
        kept = Compiled(path, facts["lowered"], resources(facts["log"]), facts["log"], facts["seconds"], cached=True)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return kept if path.is_file() else None


def _to_cache(path: Path, cubin: bytes, facts: Mapping[str, Any]) -> None:
    with cache_errors(path.parent):
        write_atomically(path, cubin)
        write_atomically(path.with_suffix(".json"), json_text(facts).encode())
