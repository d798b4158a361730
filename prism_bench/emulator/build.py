"""Builds of a source with the runtime of a mode: cached by content, and made once however many processes ask."""

import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from prism_bench.emulator.compiler import (
    HERE,
    INCLUDE,
    RUNTIME,
    Compiler,
    compile_options,
    complaint,
    find_compiler,
    link_options,
    runtime_options,
)
from prism_bench.errors import BackendUnavailable, CompilationFailed, SpecError
from prism_bench.io import files
from prism_bench.io.files import lock

_PRELUDE = "cuda_on_cpu.h"
_CALLS_OF_MODE = {"fast": 0, "race": 1, "address": 2}  # that the sanitizer itself has in each object file
# What g++, its assembler and clang++ say of inline PTX that no reader of the source saw: a macro pasted the word.
_OF_ASSEMBLY = re.compile(
    r"Assembler messages:|[‘'`]asm[’']|inline a(?:sm|ssembly)\b|\bin asm\b"
    r"|\b(?:impossible|(?:in|out)put|operand) constraints?\b"
)


def cache_folder() -> Path:
    """Return the folder of built libraries, and create it where it is missing."""
    folder = files.cache_folder("emulator")
    with files.cache_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


class RunsWhenLoaded(SpecError):
    """A source has code that runs when its library is loaded, or unloaded, not when a kernel is launched."""


def build(text: str, mode: str, defines: tuple[str, ...] = (), *, only_kernels: bool = False) -> Path:
    """Return the shared library of a host source; it is compiled only if no build of the same content is cached.

    CompilationFailed has the compiler's message; BackendUnavailable where it cannot assemble inline PTX. A source of
    `only_kernels` has no constructors and the like: RunsWhenLoaded names them, and no library is made.
    """
    compiler = find_compiler()
    options = [*compile_options(compiler, mode), *(f"-D{define}" for define in defines)]
    parts = (text, *options, compiler.version, _own_content(), *(["only kernels"] if only_kernels else []))
    library = cache_folder() / f"{_digest(*parts)}.so"
    return _once(library, lambda unit: _build(compiler, text, options, mode, unit, only_kernels))


def _once(built: Path, make: Callable[[Path], None]) -> Path:
    """Return `built`, which one process makes under another name while the others that need it wait."""
    if built.exists():
        return built
    unit = built.with_suffix(f".{os.getpid()}{built.suffix}")
    with files.cache_errors(built.parent), _locked(built.with_suffix(".lock")):
        try:
            if not built.exists():
                make(unit)
                os.replace(unit, built)
        finally:
            unit.unlink(missing_ok=True)
    return built


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of that name. It is removed afterwards: a process that waited for it finds the finished file."""
    with path.open("w") as file:
        lock(file.fileno())
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _build(compiler: Compiler, text: str, options: list[str], mode: str, library: Path, only_kernels: bool) -> None:
    runtime = _runtime(compiler, mode)
    source, code = library.with_suffix(".cpp"), library.with_suffix(".o")
    source.write_text(text, encoding="utf-8")
    link = [compiler.command, *link_options(compiler, mode), str(code), str(runtime), "-lm", "-lrt", "-o", str(library)]
    try:
        words = _compile(compiler, mode, options, source, code)
        if only_kernels and not words:
            _refuse_running(code.read_bytes(), mode)
        words = words or complaint(link)
    finally:
        source.unlink(missing_ok=True)
        code.unlink(missing_ok=True)
    _refuse_full(words, library.parent)
    if _OF_ASSEMBLY.search(words):
        raise BackendUnavailable(f"not emulated: inline PTX, which {compiler.command} cannot assemble:\n{words}")
    if words:
        raise CompilationFailed(f"{compiler.command} refused the source (emulator, {mode} mode):\n{words}")


def _refuse_running(code: bytes, mode: str) -> None:
    """Raise RunsWhenLoaded where an object file has code that a loader calls, apart from its mode's sanitizer."""
    from prism_bench.compilation.symbols import called_by_loaders  # its reader of ELF files is for judges alone

    called = called_by_loaders(code)
    if sum(called.values()) > _CALLS_OF_MODE[mode]:
        raise RunsWhenLoaded(
            "it has host code that would run when it is loaded, before any launch: constructors or destructors, or "
            f"variables that only code can initialize ({', '.join(called)}); a kernel's source has none"
        )


def _refuse_full(words: str, folder: Path) -> None:
    """Raise CacheUnavailable where the compiler complains about the machine, not about the source."""
    with files.cache_errors(folder):
        for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            if os.strerror(number) in words:
                raise OSError(number, os.strerror(number))


def _compile(compiler: Compiler, mode: str, options: list[str], source: Path, code: Path) -> str:
    """Return what the compiler complains about. A precompiled header that does not fit, for any reason, is left out."""
    rest = [*options, f"-I{INCLUDE}", "-c", str(source), "-o", str(code)]
    words = complaint([compiler.command, *_prelude(compiler, mode), *rest])
    return complaint([compiler.command, *rest]) if "PCH" in words else words


def prepared(mode: str, variables: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Return what every build of a mode shares, made where it is missing: runtime and precompiled header.

    They fit the compiler that a process with these `variables` finds; this process, where there are none.
    """
    compiler = find_compiler(variables)
    folders = (Path(option.removeprefix("-I")) for option in _prelude(compiler, mode))
    return (_runtime(compiler, mode), *folders)


def _prelude(compiler: Compiler, mode: str) -> tuple[str, ...]:
    """Return the option that makes g++ find the precompiled header, which halves the time of a small kernel."""
    if compiler.is_clang:
        return ()
    options = compile_options(compiler, mode)
    folder = cache_folder() / f"prelude-{mode}-{_digest(compiler.version, *options, _own_content())}"
    folder.mkdir(exist_ok=True)
    command = [compiler.command, *options, f"-I{INCLUDE}", "-x", "c++-header", str(INCLUDE / _PRELUDE), "-o"]
    _once(folder / f"{_PRELUDE}.gch", lambda unit: _or_unavailable(compiler, [*command, str(unit)]))
    return (f"-I{folder}",)


def _runtime(compiler: Compiler, mode: str) -> Path:
    """Return the runtime's object file, built once per mode and compiler."""
    options = runtime_options(compiler)
    built = cache_folder() / f"{mode}-{_digest(compiler.version, *options, _own_content())}.runtime.o"
    command = [compiler.command, *options, "-c", str(RUNTIME / f"{mode}.cpp"), "-o"]
    return _once(built, lambda unit: _or_unavailable(compiler, [*command, str(unit)]))


def _or_unavailable(compiler: Compiler, command: list[str]) -> None:
    """Run the command; BackendUnavailable where the compiler cannot build the runtime."""
    words = complaint(command)
    _refuse_full(words, Path(command[-1]).parent)
    if words:
        raise BackendUnavailable(
            f"{compiler.command} ({compiler.version}) cannot build the emulator's runtime, which needs C++17 as of "
            f"g++ 9 or clang++ 10; install a newer one or set CXX. Its output: {words[:2000]}"
        )


def _digest(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:32]


@cache
def _own_content() -> str:
    """Return a digest of the emulator's headers and runtime, so that a change in them rebuilds everything.

    Their folder is part of it: a build names the lines of the headers it was made with, and the headers of another
    installation would look like a kernel author's files.
    """
    sources = sorted(path for folder in (INCLUDE, RUNTIME) for path in folder.rglob("*") if path.is_file())
    return _digest(str(HERE), *(f"{path.relative_to(HERE)}\n{path.read_text(encoding='utf-8')}" for path in sources))
