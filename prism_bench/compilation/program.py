"""One source file through its compiler, cached on disk by everything that decides the result."""

import ast
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from prism_bench.compilation import compilers as bindings
from prism_bench.compilation.compilers import Compilation, compile_by_nvcc, include_folders, nvcc_version
from prism_bench.compilation.cubin import function_of, missing_entry, resources, sass_hash
from prism_bench.compilation.host_source.device_side import C_HEADERS
from prism_bench.compilation.listing import CompiledEntry
from prism_bench.compilation.prebuilt import Compiled, prebuilt_code
from prism_bench.compilation.sources import python_texts, without_comments
from prism_bench.errors import CompilationFailed
from prism_bench.io.documents import json_text
from prism_bench.io.files import cache_errors, cache_folder, first_in, shared_with, write_atomically

if TYPE_CHECKING:
    from prism_bench.compilation.host_source.device_side import DeviceSide


# Options of a source's compiler. Which compiler it is goes with them, as the first one.

CompilerName = Literal["nvrtc", "nvcc"]
_MARK = "--compiler="
_PREBUILT = (".cubin", ".fatbin", ".so", ".o", ".a", ".pyd", ".dll")  # machine code: there is nothing to compile


@dataclass(frozen=True)
class Toolchain:
    """A compiler and the options that it gets."""

    compiler: CompilerName
    options: tuple[str, ...]

    @property
    def folders(self) -> tuple[Path, ...]:
        """Folders of headers among the options."""
        return tuple(Path(option[2:]) for option in self.options if option.startswith("-I"))

    @property
    def names_standard(self) -> bool:
        """Whether the options name the version of C++."""
        return any(option.startswith(("-std", "--std")) for option in self.options)


def marked(compiler: CompilerName, options: Iterable[str]) -> tuple[str, ...]:
    """Return options that name their compiler; those of NVRTC, which is the usual one, stay as they are."""
    return (*([] if compiler == "nvrtc" else [f"{_MARK}{compiler}"]), *options)


def toolchain_of(options: Sequence[str]) -> Toolchain:
    """Return the compiler that options name, and the rest of them."""
    named = next((option[len(_MARK) :] for option in options if option.startswith(_MARK)), "nvrtc")
    compiler: CompilerName = "nvcc" if named == "nvcc" else "nvrtc"
    return Toolchain(compiler, tuple(option for option in options if not option.startswith(_MARK)))


def compilers() -> tuple[str, ...]:
    """Return the names of the compilers that a spec may name."""
    return get_args(CompilerName)


def is_prebuilt(source: Path) -> bool:
    """Return whether a source is machine code already."""
    return source.suffix in _PREBUILT or ".so." in source.name


# What a compiler is given of a source: its own text, or the device side of one that holds host code.

_PLACE = re.compile(r'^#line (\d+) ".*?([^"/\\]+)"$', re.MULTILINE)


def cut_source(source: Path, entries: Sequence[str], options: Sequence[str] = ()) -> "DeviceSide | None":
    """Return the device side of a source; None where it holds no host code.

    SpecError, with the line in the way, where it cannot separate the two.
    """
    from prism_bench.compilation.host_source.device_side import device_side

    return device_side(source, toolchain_of(options).folders, entries, shared_with(source))


def _without_places(text: str) -> str:
    """Return the text of a device side without the folders of its files: where they are changes no machine code."""
    return _PLACE.sub(r'#line \1 "\2"', text)


# One source file through its compiler, cached on disk by everything that can change the result.

_LANGUAGE = ("-std=c++17", "--device-as-default-execution-space")
_BASE_OPTIONS = (*_LANGUAGE, "-lineinfo", "--ptxas-options=-v")
_OWN_FEATURES = {"90": "90a"}  # a cubin is for one device anyway: with it, the instructions that no other has
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)


def compiler_of(source: Path, options: Sequence[str]) -> str:
    """Return the compiler of a source and its version, `NVRTC 13.5`; `prebuilt` of machine code that exists already."""
    if is_prebuilt(source):
        return "prebuilt"
    by_nvcc = toolchain_of(options).compiler == "nvcc"
    return f"nvcc {nvcc_version()}" if by_nvcc else f"NVRTC {nvrtc_version()}"


def nvrtc_version() -> str:
    """`13.5`; BackendUnavailable where there is no NVRTC."""
    return ".".join(str(part) for part in bindings.load().version())


def nvrtc_architectures() -> tuple[int, ...]:
    """Return the compute capabilities that NVRTC compiles for, such as 90; BackendUnavailable where there is none."""
    return bindings.load().architectures()


def compile_source(
    source: Path, entries: Sequence[str], architecture: str, options: Sequence[str] = (), cache: bool = True
) -> Compiled:
    """Compile `source` for `architecture` (`90`) with the given entries: names, template instances or symbols.

    The options name the compiler (`toolchain.marked`); machine code that exists already is taken as it is.

    CompilationFailed holds the compiler's log with file and line; BackendUnavailable means that it is missing.
    """
    if is_prebuilt(source):
        return prebuilt_code(source, entries, architecture)
    chosen = toolchain_of(options)
    make = _by_nvcc if chosen.compiler == "nvcc" else _by_nvrtc
    job = make(source, tuple(entries), architecture, chosen)
    path = cache_folder("cubin") / f"{source.stem}-sm{architecture}-{job.key}.cubin"
    kept = _kept_program(path)
    if cache and kept:
        return kept
    started = time.perf_counter()
    cubin, lowered, log = job.compile()
    if cubin is None:
        code = "\n".join([job.text, *_included(source, job.text, chosen.folders)])
        raise CompilationFailed(
            missing_entry(map(function_of, entries), code, str(source))
            or f"{source} for sm_{architecture}:\n{log.strip()}"
        )
    seconds = time.perf_counter() - started
    if not kept:
        _to_cache(path, cubin, {"lowered": lowered, "log": log, "seconds": seconds})
    return Compiled(path, lowered, resources(log), log, seconds, cached=False)


@dataclass(frozen=True)
class _Job:
    """What is compiled: the hash of everything that decides the machine code, the text, and the call that does it."""

    key: str
    text: str
    compile: Callable[[], Compilation]


def _by_nvrtc(source: Path, entries: tuple[str, ...], architecture: str, chosen: Toolchain) -> _Job:
    nvrtc = bindings.load()
    cut = cut_source(source, entries, chosen.options)
    text = cut.text if cut else source.read_text()
    flags = _flags(architecture, chosen, nvrtc.version())
    words = (entries, flags, include_folders(), nvrtc.version())
    key = _key(words, _without_places(text), _included(source, text, (*chosen.folders, C_HEADERS)))
    return _Job(key, text, lambda: _named(nvrtc, text, source, entries, (*flags, *_folders(source))))


def _named(
    nvrtc: bindings.Bindings, text: str, source: Path, entries: Sequence[str], flags: Sequence[str]
) -> Compilation:
    """Compile with NVRTC, which knows functions and not symbols: of an entry that is a symbol it gets the name."""
    functions = {entry: function_of(entry) for entry in entries}
    cubin, lowered, log = nvrtc.compile(text, str(source), tuple(dict.fromkeys(functions.values())), flags)
    names = {entry: lowered[function] for entry, function in functions.items()} if cubin is not None else {}
    for entry, symbol in names.items():
        if entry.startswith("_Z") and entry != symbol:
            raise CompilationFailed(f"{source}: no kernel '{entry}'; {functions[entry]} is {symbol} here")
    return cubin, names, log


def _by_nvcc(source: Path, entries: tuple[str, ...], architecture: str, chosen: Toolchain) -> _Job:
    version, text = nvcc_version(), source.read_text()
    standard = () if chosen.names_standard else ("-std=c++17",)
    target = _OWN_FEATURES.get(architecture, architecture)
    flags = (f"-arch=sm_{target}", *standard, "-lineinfo", *chosen.options)
    key = _key((entries, flags, version), text, _included(source, text, chosen.folders))
    folders = [f"-I{folder}" for folder in (source.parent, *shared_with(source))]
    return _Job(key, text, lambda: compile_by_nvcc(source, entries, (*flags, *folders)))


def compile_to_ptx(source: Path, entries: Sequence[str], architecture: str) -> str:
    """Return the PTX of `source` for a compute capability; it contains no path and no line, so it is reproducible.

    CompilationFailed and BackendUnavailable as for compile_source.
    """
    nvrtc = bindings.load()
    flags = (f"-arch=compute_{_OWN_FEATURES.get(architecture, architecture)}", *_LANGUAGE, *_folders(source))
    text, _, log = nvrtc.ptx(source.read_text(), source.name, entries, flags)
    if text is None:
        raise CompilationFailed(f"{source} for compute_{architecture}:\n{log.strip()}")
    return text.decode()


def source_hash(source: Path) -> str:
    """Return a hash of the source and of the catalogue's own headers that it includes, without their comments.

    Of machine code that exists already it is a hash of the file.
    """
    if is_prebuilt(source):
        return hashlib.sha256(source.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    for text in _cuda_texts(source):
        digest.update(without_comments(text).encode())
    return digest.hexdigest()


def _cuda_texts(source: Path) -> Iterator[str]:
    """Yield the text of a source, then those of the catalogue's own headers that it includes, directly or not."""
    text = source.read_text()
    yield text
    yield from _included(source, text)


def cuda_files(source: Path) -> tuple[Path, ...]:
    """Return a source, then the catalogue's own headers that it includes, directly or not; machine code alone."""
    if is_prebuilt(source):
        return (source,)
    folders = (source.parent, *shared_with(source))
    return (source, *(path for path, _ in _reached(source, source.read_text(), folders, set())))


def content_hash(source: Path) -> str:
    """Return a hash of every character of the source and of the catalogue's own headers that it includes."""
    if is_prebuilt(source):
        return hashlib.sha256(source.read_bytes()).hexdigest()
    text = source.read_text()
    return _content_of(text, _included(source, text))


def _flags(architecture: str, chosen: Toolchain, version: tuple[int, ...]) -> tuple[str, ...]:
    """NVRTC's own cache (since 12.9) is off: what comes out of it has no log, and its time is not the compiler's."""
    own = ("-no-cache",) if version >= (12, 9) else ()
    target = _OWN_FEATURES.get(architecture, architecture)
    base = _BASE_OPTIONS[1:] if chosen.names_standard else _BASE_OPTIONS
    return (f"-arch=sm_{target}", *base, *own, *chosen.options)


def _folders(source: Path) -> tuple[str, ...]:
    folders = (str(source.parent), *map(str, shared_with(source)), *include_folders(), str(C_HEADERS))
    return tuple(f"-I{folder}" for folder in folders)


def _key(words: tuple[object, ...], text: str, included: Iterable[str]) -> str:
    """Return a hash of everything that decides the machine code; where the files are does not.

    Two checkouts of one commit share what was compiled; the lines that it names are then those of the first one.
    """
    return hashlib.sha256(repr((*words, _content_of(text, included))).encode()).hexdigest()[:20]


def _content_of(text: str, included: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in (text, *included):
        digest.update(part.encode())
    return digest.hexdigest()


def _included(source: Path, text: str, folders: Sequence[Path] = ()) -> Iterator[str]:
    """Return the texts of the project's own files that the source, with that text, includes, directly or not.

    They are next to it, among what its catalogue shares, or in `folders`.
    """
    return (body for _, body in _reached(source, text, (source.parent, *folders, *shared_with(source)), set()))


def _reached(path: Path, text: str, folders: Sequence[Path], seen: set[Path]) -> Iterator[tuple[Path, str]]:
    """Yield path and text of each header."""
    for bracket, name in _INCLUDE.findall(text):
        found = first_in((path.parent, *folders) if bracket == '"' else folders[1:], name)
        header = found and found.resolve()
        if header and header not in seen:
            seen.add(header)
            body = header.read_text("utf-8", "replace")
            yield header, body
            yield from _reached(header, body, folders, seen)


def _kept_program(path: Path) -> Compiled | None:
    """Return the program that the cache holds at `path`; None where it holds none that can be read."""
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


# Machine code that an earlier compilation left in the cache, found by the hash that a run record keeps of it.


def kept_entries(source: str, architecture: str, sass: str) -> dict[str, CompiledEntry]:
    """Return the entries of the code with that hash by their texts; empty where the cache does not hold it.

    `source` is the name of the source file without its ending, `architecture` one like `sm_90`.
    """
    found = next((path for path in _cubins(source, architecture) if _hash(path) == sass), None)
    program = _kept_program(found) if found else None
    if program is None:
        return {}
    return {
        entry: CompiledEntry(program.path, symbol, program.resources[symbol])
        for entry, symbol in program.lowered.items()
        if symbol in program.resources
    }


def _cubins(source: str, architecture: str) -> list[Path]:
    folder, start = cache_folder("cubin"), f"{source}-{architecture.replace('_', '')}-"
    if not folder.is_dir():
        return []
    return [path for path in _listed(folder, folder.stat().st_mtime_ns) if path.name.startswith(start)]


@lru_cache(2)
def _listed(folder: Path, _changed: int) -> tuple[Path, ...]:
    """Return the cubins of a folder; `_changed` is when it changed, so that a new file is seen."""
    return tuple(sorted(folder.glob("*.cubin")))


def _hash(path: Path) -> str | None:
    """Return the hash of a cubin's instructions; None where the file is not one."""
    from elftools.common.exceptions import ELFError

    try:
        return sass_hash(path.read_bytes())
    except (OSError, ELFError):
        return None


# Lines of a kernel's source that count: without comments, blank lines and docstrings.


def source_lines(source: Path) -> tuple[int, int] | None:
    """Return the lines of a kernel's file, and those of the catalogue's own files that it includes.

    Of Python only decorated functions count: a form's launch and its tests are no part of the kernel. None of machine
    code.
    """
    if is_prebuilt(source):
        return None
    is_python = source.suffix == ".py"
    counts = list(map(_of_python if is_python else _of_cuda, (python_texts if is_python else _cuda_texts)(source)))
    return counts[0], sum(counts[1:])


@lru_cache(maxsize=512)  # a site asks for the same files on many pages
def _of_cuda(text: str) -> int:
    return len(without_comments(text).splitlines())


@lru_cache(maxsize=512)
def _of_python(text: str) -> int:
    """Return the lines of all decorated functions; comments and blank lines have no node."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    lines: set[int] = set()
    for function in functions:
        if function.decorator_list:
            lines |= _lines(function)
    return len(lines)


def _lines(function: ast.FunctionDef) -> set[int]:
    """Return the lines that a function's nodes begin or end at, without those of its docstring."""
    first = function.body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    body = function.body[1:] if is_text else function.body
    parts: list[ast.AST] = [*function.decorator_list, function.args, *body]
    nodes = [node for part in parts for node in ast.walk(part) if hasattr(node, "lineno")]
    return {function.lineno} | {getattr(node, end) for node in nodes for end in ("lineno", "end_lineno")}
