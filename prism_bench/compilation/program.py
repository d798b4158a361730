"""One source file through its compiler, cached on disk by everything that decides the result; its hashes and lines."""

import ast
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from prism_bench.compilation import compilers as compiler_module
from prism_bench.compilation.compilers import (
    Bindings,
    Compilation,
    added_options,
    compile_by_nvcc,
    header_advice,
    include_folders,
    nvcc_version,
)
from prism_bench.compilation.cubin import function_of, missing_entry, resources, sass_hash
from prism_bench.compilation.host_source.device_side import C_HEADERS, with_implied_names
from prism_bench.compilation.listing import CompiledEntry
from prism_bench.compilation.prebuilt import Compiled, prebuilt_code
from prism_bench.compilation.sources import python_texts, without_comments
from prism_bench.errors import BackendUnavailable, CompilationFailed, UsageError
from prism_bench.io.documents import json_text
from prism_bench.io.files import cache_errors, cache_folder, first_in, macro_advice, shared_with, write_atomically

if TYPE_CHECKING:
    from prism_bench.compilation.host_source.device_side import DeviceSide


# The compiler of a source, named by its first option, and the other options.

CompilerName = Literal["nvrtc", "nvcc"]
_MARK = "--compiler="
_PREBUILT = (".cubin", ".fatbin", ".so", ".o", ".a", ".pyd", ".dll")  # machine code, which is not compiled


@dataclass(frozen=True)
class Toolchain:
    """A compiler and its options."""

    compiler: CompilerName
    options: tuple[str, ...]

    @property
    def folders(self) -> tuple[Path, ...]:
        """Return the folders of headers among the options."""
        return tuple(Path(option[2:]) for option in self.options if option.startswith("-I"))

    @property
    def names_standard(self) -> bool:
        """Return whether the options name the version of C++."""
        return any(option.startswith(("-std", "--std")) for option in self.options)


def marked(compiler: CompilerName, options: Iterable[str]) -> tuple[str, ...]:
    """Return options that name their compiler; options of NVRTC, the default, stay unchanged."""
    return (*([] if compiler == "nvrtc" else [f"{_MARK}{compiler}"]), *options)


def toolchain_of(options: Sequence[str]) -> Toolchain:
    """Return the compiler that options name, with the other options."""
    named = next((option[len(_MARK) :] for option in options if option.startswith(_MARK)), "nvrtc")
    compiler: CompilerName = "nvcc" if named == "nvcc" else "nvrtc"
    return Toolchain(compiler, tuple(option for option in options if not option.startswith(_MARK)))


def compilers() -> tuple[str, ...]:
    """Return the names of the compilers that a spec may name."""
    return get_args(CompilerName)


def is_prebuilt(source: Path) -> bool:
    """Return whether a source is machine code."""
    return source.suffix in _PREBUILT or ".so." in source.name


def cut_source(source: Path, entries: Sequence[str], options: Sequence[str] = ()) -> "DeviceSide | None":
    """Return the device side of a source; None if it has no host code.

    Raise SpecError with the line that prevents the separation.
    """
    from prism_bench.compilation.host_source.device_side import device_side

    return device_side(source, toolchain_of(options).folders, entries, shared_with(source))


# Compilation.

_LANGUAGE = ("-std=c++17", "--device-as-default-execution-space")
_BASE_OPTIONS = (*_LANGUAGE, "-lineinfo", "--ptxas-options=-v")
_SPECIFIC = {"90": "90a"}  # a cubin is for one device anyway: use the instructions that only this architecture has
_REMARKS_OF_PTXAS = re.compile(r"^ *ptxas (?:info|  +\.).*\n?", re.MULTILINE)  # not about what it refuses
_QUOTED_SYMBOL = re.compile(r"'(_Z\w+)'")
_LINE = re.compile(r'^#line (\d+) ".*?([^"/\\]+)"$', re.MULTILINE)
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)


def compiler_of(source: Path, options: Sequence[str]) -> str:
    """Return the compiler of a source and its version, `NVRTC 13.5`; `prebuilt` for machine code."""
    if is_prebuilt(source):
        return "prebuilt"
    by_nvcc = toolchain_of(options).compiler == "nvcc"
    return f"nvcc {nvcc_version()}" if by_nvcc else f"NVRTC {nvrtc_version()}"


def nvrtc_version() -> str:
    """Return NVRTC's version, `13.5`; raise BackendUnavailable without NVRTC."""
    return ".".join(str(part) for part in compiler_module.load().version())


def nvrtc_architectures() -> tuple[int, ...]:
    """Return the compute capabilities for which NVRTC compiles, such as 90; raise BackendUnavailable without NVRTC."""
    return compiler_module.load().architectures()


def require_numbers(architectures: Iterable[str]) -> None:
    """Raise UsageError for an architecture that is not a number such as 90."""
    for architecture in architectures:
        if not architecture.rstrip("af").isdigit():
            raise UsageError(f"architecture '{architecture}' is not a number such as 90")


def require_known(architectures: Sequence[str]) -> None:
    """Raise UsageError for an architecture that is not a number such as 90, or unknown to the compiler, if any."""
    try:
        known = nvrtc_architectures()
    except BackendUnavailable:
        known = ()
    require_numbers(architectures)
    for architecture in architectures:
        if known and int(architecture.rstrip("af")) not in known:
            listed = ", ".join(map(str, known))
            raise UsageError(f"architecture '{architecture}' is none that NVRTC {nvrtc_version()} knows: {listed}")


def compile_source(
    source: Path, entries: Sequence[str], architecture: str, options: Sequence[str] = (), cache: bool = True
) -> Compiled:
    """Compile `source` for `architecture` (`90`) with these entries: names, template instances or symbols.

    The options name the compiler (`marked`); machine code is not compiled.

    Raise CompilationFailed with the compiler's log, which has file and line, or BackendUnavailable without a compiler.
    """
    if is_prebuilt(source):
        return prebuilt_code(source, entries, architecture)
    chosen = toolchain_of(options)
    prepare = _prepare_nvcc if chosen.compiler == "nvcc" else _prepare_nvrtc
    key, text, run = prepare(source, tuple(entries), architecture, chosen)
    path = cache_folder("cubin") / f"{source.stem}-sm{architecture}-{key}.cubin"
    kept = _kept_program(path)
    if cache and kept:
        return kept
    started = time.perf_counter()
    cubin, lowered, log = run()
    if cubin is None:
        code = "\n".join([text, *_included(source, text, chosen.folders)])
        errors = _QUOTED_SYMBOL.sub(lambda symbol: f"'{function_of(symbol[1])}'", _REMARKS_OF_PTXAS.sub("", log))
        advice = (header_advice(log) if chosen.compiler == "nvrtc" else "") or macro_advice(log)
        words = f"{errors.strip()}\n{advice}"
        raise CompilationFailed(
            missing_entry(map(function_of, entries), code, str(source))
            or f"{source} for sm_{architecture}:\n{words.strip()}"
        )
    seconds = time.perf_counter() - started
    if not kept:
        with cache_errors(path.parent):
            write_atomically(path, cubin)
            facts = {"lowered": lowered, "log": log, "seconds": seconds}
            write_atomically(path.with_suffix(".json"), json_text(facts).encode())
    return Compiled(path, lowered, resources(log), log, seconds, cached=False)


# Hash of everything that decides the machine code, text of the source, and the call that compiles it.
_Prepared = tuple[str, str, Callable[[], Compilation]]


def _prepare_nvrtc(source: Path, entries: tuple[str, ...], architecture: str, chosen: Toolchain) -> _Prepared:
    nvrtc = compiler_module.load()
    cut = cut_source(source, entries, chosen.options)
    text = cut.text if cut else source.read_text()
    # NVRTC's own cache (since 12.9) is off: its results have no log, and their time is not the compiler's.
    no_cache = ("-no-cache",) if nvrtc.version() >= (12, 9) else ()
    base = _BASE_OPTIONS[1:] if chosen.names_standard else _BASE_OPTIONS
    flags = (
        f"-arch=sm_{_SPECIFIC.get(architecture, architecture)}",
        *base,
        *no_cache,
        *chosen.options,
        *added_options(),
    )
    settings = (entries, flags, include_folders(), nvrtc.version())
    in_any_folder = _LINE.sub(r'#line \1 "\2"', text)  # folders of files change no machine code
    key = _key(settings, in_any_folder, _included(source, text, (*chosen.folders, C_HEADERS)))
    return key, text, lambda: _compile_entries(nvrtc, text, source, entries, (*flags, *_folders(source)))


def _compile_entries(
    nvrtc: Bindings, text: str, source: Path, entries: Sequence[str], flags: Sequence[str]
) -> Compilation:
    """Compile with NVRTC, which knows functions, not symbols: request the function of an entry that is a symbol."""
    functions = {entry: function_of(entry) for entry in entries}
    requested = tuple(dict.fromkeys(functions.values()))
    cubin, lowered, log = nvrtc.compile(text, str(source), requested, flags)
    if cubin is None and (more := with_implied_names(text, source, log)):
        cubin, lowered, log = nvrtc.compile(more, str(source), requested, flags)
    names = {entry: lowered[function] for entry, function in functions.items()} if cubin is not None else {}
    for entry, symbol in names.items():
        if entry.startswith("_Z") and entry != symbol:
            raise CompilationFailed(f"{source}: no kernel '{entry}'; {functions[entry]} is {symbol} here")
    return cubin, names, log


def _prepare_nvcc(source: Path, entries: tuple[str, ...], architecture: str, chosen: Toolchain) -> _Prepared:
    version, text = nvcc_version(), source.read_text()
    standard = () if chosen.names_standard else ("-std=c++17",)
    flags = (f"-arch=sm_{_SPECIFIC.get(architecture, architecture)}", *standard, "-lineinfo", *chosen.options)
    key = _key((entries, flags, version), text, _included(source, text, chosen.folders))
    folders = [f"-I{folder}" for folder in (source.parent, *shared_with(source))]
    return key, text, lambda: compile_by_nvcc(source, entries, (*flags, *folders))


def compile_to_ptx(source: Path, entries: Sequence[str], architecture: str) -> str:
    """Return the PTX of `source` for a compute capability; it contains no path and no line, so it is reproducible.

    Raise CompilationFailed and BackendUnavailable as compile_source does.
    """
    nvrtc = compiler_module.load()
    flags = (f"-arch=compute_{_SPECIFIC.get(architecture, architecture)}", *_LANGUAGE, *_folders(source))
    code = source.read_text()
    text, _, log = nvrtc.ptx(code, source.name, entries, flags)
    if text is None and (more := with_implied_names(code, Path(source.name), log)):
        text, _, log = nvrtc.ptx(more, source.name, entries, flags)
    if text is None:
        raise CompilationFailed(f"{source} for compute_{architecture}:\n{log.strip()}")
    return text.decode()


def source_hash(source: Path) -> str:
    """Return a hash of the source and the catalogue's headers that it includes, without comments.

    For machine code it is a hash of the file.
    """
    if is_prebuilt(source):
        return hashlib.sha256(source.read_bytes()).hexdigest()
    digest = hashlib.sha256()
    for text in _cuda_texts(source):
        digest.update(without_comments(text).encode())
    return digest.hexdigest()


def _cuda_texts(source: Path) -> Iterator[str]:
    """Yield the text of a source, then the texts of the catalogue's headers that it includes, directly or not."""
    text = source.read_text()
    yield text
    yield from _included(source, text)


def cuda_files(source: Path, options: Sequence[str] = ()) -> tuple[Path, ...]:
    """Return a source, then the project's headers that it includes, directly or not; only the file if prebuilt.

    Headers are looked for as `content_hash` does.
    """
    if is_prebuilt(source):
        return (source,)
    folders = (source.parent, *toolchain_of(options).folders, *shared_with(source))
    return (source, *(path for path, _ in _reached(source, source.read_text(), folders, set())))


def content_hash(source: Path, options: Sequence[str] = ()) -> str:
    """Return a hash of every character of the source and the project's headers that it includes.

    Headers are looked for in the catalogue's folders and in those that the options name.
    """
    if is_prebuilt(source):
        return hashlib.sha256(source.read_bytes()).hexdigest()
    text = source.read_text()
    return _content_of(text, _included(source, text, toolchain_of(options).folders))


def _folders(source: Path) -> tuple[str, ...]:
    folders = (str(source.parent), *map(str, shared_with(source)), *include_folders(), str(C_HEADERS))
    return tuple(f"-I{folder}" for folder in folders)


def _key(settings: tuple[object, ...], text: str, included: Iterable[str]) -> str:
    """Return a hash of everything that decides the machine code; the folders of the files do not.

    Two checkouts of one commit share cached machine code; the paths in it are then those of the first checkout.
    """
    return hashlib.sha256(repr((*settings, _content_of(text, included))).encode()).hexdigest()[:20]


def _content_of(text: str, included: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in (text, *included):
        digest.update(part.encode())
    return digest.hexdigest()


def _included(source: Path, text: str, folders: Sequence[Path] = ()) -> Iterator[str]:
    """Return the texts of the project's files that the source, with that text, includes, directly or not.

    They are in the source's folder, in its catalogue's shared folders, or in `folders`.
    """
    return (body for _, body in _reached(source, text, (source.parent, *folders, *shared_with(source)), set()))


def _reached(path: Path, text: str, folders: Sequence[Path], seen: set[Path]) -> Iterator[tuple[Path, str]]:
    """Yield path and text of each included header, each once."""
    for bracket, name in _INCLUDE.findall(text):
        file = first_in((path.parent, *folders) if bracket == '"' else folders[1:], name)
        header = file and file.resolve()
        if header and header not in seen:
            seen.add(header)
            body = header.read_text("utf-8", "replace")
            yield header, body
            yield from _reached(header, body, folders, seen)


def _kept_program(path: Path) -> Compiled | None:
    """Return the program in the cache at `path`; None if it is absent or unreadable."""
    try:
        facts = json.loads(path.with_suffix(".json").read_text())
        kept = Compiled(path, facts["lowered"], resources(facts["log"]), facts["log"], facts["seconds"], cached=True)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return kept if path.is_file() else None


# Machine code in the cache, looked up by the hash in a run record.


def kept_entries(source: str, architecture: str, sass: str) -> dict[str, CompiledEntry]:
    """Return the entries of the code with that hash by their texts; empty if it is not in the cache.

    `source` is the name of the source file without its suffix, `architecture` such as `sm_90`.
    """
    folder, start = cache_folder("cubin"), f"{source}-{architecture.replace('_', '')}-"
    cubins = _listed(folder, folder.stat().st_mtime_ns) if folder.is_dir() else ()
    path = next((path for path in cubins if path.name.startswith(start) and _hash(path) == sass), None)
    program = _kept_program(path) if path else None
    if program is None:
        return {}
    return {
        entry: CompiledEntry(program.path, symbol, program.resources[symbol])
        for entry, symbol in program.lowered.items()
        if symbol in program.resources
    }


@lru_cache(2)
def _listed(folder: Path, _changed: int) -> tuple[Path, ...]:
    """Return the cubins of a folder; `_changed`, the time of its last change, makes the cache see new files."""
    return tuple(sorted(folder.glob("*.cubin")))


def _hash(path: Path) -> str | None:
    """Return the hash of a cubin's instructions; None if the file is no cubin."""
    from elftools.common.exceptions import ELFError

    try:
        return sass_hash(path.read_bytes())
    except (OSError, ELFError):
        return None


# Lines of a kernel's source, without comments, blank lines and docstrings.


def source_lines(source: Path) -> tuple[int, int] | None:
    """Return the lines of a kernel's file, and those of the catalogue's files that it includes; None for machine code.

    In Python only decorated functions count: a form's launch and its tests are no part of the kernel.
    """
    if is_prebuilt(source):
        return None
    is_python = source.suffix == ".py"
    counts = (
        [_lines_of_python(text) for text in python_texts(source)]
        if is_python
        else [len(without_comments(text).splitlines()) for text in _cuda_texts(source)]
    )
    return counts[0], sum(counts[1:])


@lru_cache(maxsize=512)  # a site shows the same files on many pages
def _lines_of_python(text: str) -> int:
    """Return the number of lines of all decorated functions; comments and blank lines have no node."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    lines: set[int] = set()
    for function in functions:
        if function.decorator_list:
            lines |= _lines(function)
    return len(lines)


def _lines(function: ast.FunctionDef) -> set[int]:
    """Return the lines at which a function's nodes begin or end, without those of its docstring."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    parts: list[ast.AST] = [*function.decorator_list, function.args, *body]
    nodes = [node for part in parts for node in ast.walk(part) if hasattr(node, "lineno")]
    return {function.lineno} | {getattr(node, end) for node in nodes for end in ("lineno", "end_lineno")}
