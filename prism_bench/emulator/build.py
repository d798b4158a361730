"""Builds of a source for the CPU: translated to host C++, compiled in a mode, cached by content."""

import errno
import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path

from prism_bench.emulator.ptx import translate
from prism_bench.errors import BackendUnavailable, CompilationFailed, SpecError
from prism_bench.io import files
from prism_bench.io.files import first_in, lock
from prism_bench.io.workers import run_program

# The host C++ compiler, and its options in each mode.

_HERE = Path(__file__).parent
INCLUDE = _HERE / "include"
RUNTIME = _HERE / "runtime"

# CUDA sources pun types and rely on wrapping integers; only operations that the author contracted are contracted.
# Shared arrays of a class such as __half have a guard, as they are static here: one thread at a time runs.
_COMMON = (
    "-std=c++17 -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti -fno-strict-aliasing -ffp-contract=off "
    "-fdata-sections -fno-math-errno -fno-trapping-math -fno-finite-loops -fno-stack-protector "
    "-fno-threadsafe-statics -Wno-attributes -w"
).split()
_SANITIZE = "-fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer"
_LINES = "-g1 -gdwarf-4"
# -O2 takes almost twice as long as -O1 to compile an instance of a template, which runs no faster, because switching
# threads takes most of the time. The sanitizers' passes take ten times as long at -O1 as at -O0. Fast mode checks no
# alignment, because kernels would run for half as long again.
_KERNEL = {
    "fast": f"-O1 {_LINES} -fwrapv".split(),
    "race": f"-O1 {_LINES} -fwrapv -fsanitize=thread,alignment".split(),
    "address": f"-O0 {_LINES} {_SANITIZE}".split(),
}
# Splitting float4 into scalars would hide that it is one access; a static array that is known not to be aliased, as
# most shared arrays are, would not be watched at all.
_RACE_GCC = ("-fno-tree-sra", "-fno-ipa-reference-addressable", "--param", "tsan-distinguish-volatile=1")
_RACE_CLANG = ("-mllvm", "-tsan-distinguish-volatile=1")
# A library with a unique symbol is never unloaded; tracking variables for a debugger takes a fifth of the time.
_GCC = ("-fno-gnu-unique", "-fno-var-tracking")
# Characters of a source, above which comparing indices with arrays can take as long as all other compiling.
_SMALL = 20_000
_LINK = {"fast": [], "race": [], "address": ["-fsanitize=address,undefined"]}
MODES = tuple(_KERNEL)


@dataclass(frozen=True)
class Compiler:
    """A host compiler, and its version line."""

    command: str
    version: str

    @property
    def is_clang(self) -> bool:
        """Return whether it takes clang's options."""
        return "clang" in self.version


def find_compiler(variables: Mapping[str, str] | None = None) -> Compiler:
    """Return the compiler named by CXX, else g++, else clang++; raise BackendUnavailable with the package to install.

    With the environment `variables` of another process, return the path of the compiler that this process would use.
    """
    if variables is None:
        return _probe(os.environ.get("CXX", ""), os.environ.get("PATH", ""))
    path = variables.get("PATH", "")
    compiler = _probe(variables.get("CXX", ""), path)
    return replace(compiler, command=shutil.which(compiler.command, path=path) or compiler.command)


@cache
def _probe(chosen: str, path: str) -> Compiler:
    tried = [chosen] if chosen else ["g++", "clang++"]
    for command in tried:
        program = shutil.which(command, path=path or None)
        if program:
            version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            return Compiler(command, version.split("\n")[0])
    raise BackendUnavailable(
        f"the emulator needs a C++17 compiler and found none (tried {', '.join(tried)}); install g++ (Debian, Ubuntu: "
        "apt install g++) or set CXX. Without it kernels cannot run on the CPU; the compile check and the GPU work."
    )


def sanitizer_library() -> str:
    """Return the address sanitizer's library, to be preloaded; raise BackendUnavailable if the compiler lacks it."""
    compiler = find_compiler()
    name = f"libclang_rt.asan-{platform.machine()}.so" if compiler.is_clang else "libasan.so"
    command = [compiler.command, f"-print-file-name={name}"]
    library = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    if not Path(library).is_absolute():
        raise BackendUnavailable(
            f"{compiler.command} has no {name}; install its sanitizers. The fast and race modes work without."
        )
    return os.path.realpath(library)


def _compile_options(compiler: Compiler, mode: str) -> list[str]:
    """Return the options for compiling a kernel's source in a mode, without the include folders."""
    race = _RACE_CLANG if compiler.is_clang else _RACE_GCC
    return [*_common(compiler), *_KERNEL[mode], *(race if mode == "race" else ())]


def _common(compiler: Compiler) -> list[str]:
    return [*_COMMON, *(() if compiler.is_clang else _GCC)]


def _complaint(command: list[str]) -> str:
    """Return the compiler's output if it fails, else an empty string."""
    # A sanitizer preloaded for the kernel must not slow down, or stop, the compiler.
    quiet = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = run_program(command, variables=quiet)
    return done.stderr.strip() or f"exit status {done.returncode}" if done.returncode else ""


# Builds: a source with the runtime of a mode, cached by content, and built once for all processes.

_PRELUDE = "cuda_on_cpu.h"
_CALLS_OF_MODE = {"fast": 0, "race": 1, "address": 2}  # of the sanitizer, in each object file
# Messages of g++, its assembler and clang++ about inline PTX that the source hides: a macro pasted the word.
_OF_ASSEMBLY = re.compile(
    r"Assembler messages:|[‘'`]asm[’']|inline a(?:sm|ssembly)\b|\bin asm\b"
    r"|\b(?:impossible|(?:in|out)put|operand) constraints?\b"
)


def cache_folder() -> Path:
    """Return the folder of built libraries, and create it if it is missing."""
    folder = files.cache_folder("emulator")
    with files.cache_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


class RunsWhenLoaded(SpecError):
    """A source has code that runs when its library is loaded or unloaded, not when a kernel is launched."""


def build(
    text: str, mode: str, defines: tuple[str, ...] = (), *, standard: str = "", only_kernels: bool = False
) -> Path:
    """Return the shared library of a host source; it is compiled only if no build of the same content is cached.

    Raise CompilationFailed with the compiler's message, BackendUnavailable if it cannot assemble inline PTX. With
    `only_kernels` raise RunsWhenLoaded for a source with constructors and the like.
    """
    compiler = find_compiler()
    options = [*_compile_options(compiler, mode), *(f"-D{define}" for define in defines)]
    options += [f"-std={standard}"] if standard else []
    options += ["-fsanitize=object-size"] if mode == "race" and len(text) < _SMALL else []
    parts = (text, *options, compiler.version, _own_content(), *(["only kernels"] if only_kernels else []))
    library = cache_folder() / f"{_digest(*parts)}.so"
    return _once(library, lambda unit: _build(compiler, text, options, mode, unit, only_kernels))


def _once(built: Path, make: Callable[[Path], None]) -> Path:
    """Return `built`, which one process makes under another name while other processes wait for it."""
    if built.exists():
        return built
    unit, lock_path = built.with_suffix(f".{os.getpid()}{built.suffix}"), built.with_suffix(".lock")
    with files.cache_errors(built.parent), lock_path.open("w") as file:
        lock(file.fileno())
        try:
            if not built.exists():
                make(unit)
                os.replace(unit, built)
        finally:
            unit.unlink(missing_ok=True)
            lock_path.unlink(missing_ok=True)  # a process that waits for this lock then sees the finished file
    return built


def _build(compiler: Compiler, text: str, options: list[str], mode: str, library: Path, only_kernels: bool) -> None:
    runtime = _runtime(compiler, mode)
    source, code = library.with_suffix(".cpp"), library.with_suffix(".o")
    source.write_text(text, encoding="utf-8")
    rest = [*options, f"-I{INCLUDE}", "-c", str(source), "-o", str(code)]
    shared = ["-shared-libasan"] if compiler.is_clang and mode == "address" else []
    link = [compiler.command, "-shared", f"-Wl,-T,{RUNTIME / 'places.ld'}", *_LINK[mode], *shared]
    link += [str(code), str(runtime), "-lm", "-lrt", "-o", str(library)]
    try:
        output = _complaint([compiler.command, *_prelude(compiler, mode), *rest])
        if "PCH" in output:  # a precompiled header that does not fit, for any reason, is left out
            output = _complaint([compiler.command, *rest])
        if only_kernels and not output:
            _refuse_running(code.read_bytes(), mode)
        output = output or _complaint(link)
    finally:
        source.unlink(missing_ok=True)
        code.unlink(missing_ok=True)
    _refuse_full(output, library.parent)
    if _OF_ASSEMBLY.search(output):
        raise BackendUnavailable(f"not emulated: inline PTX, which {compiler.command} cannot assemble:\n{output}")
    if output:
        message = f"{output.strip()}\n{files.macro_advice(output)}".strip()
        raise CompilationFailed(f"{compiler.command} refused the source (emulator, {mode} mode):\n{message}")


def _refuse_running(code: bytes, mode: str) -> None:
    """Raise RunsWhenLoaded if an object file has code that a loader calls, apart from its mode's sanitizer."""
    from prism_bench.compilation.cubin import called_by_loaders  # loads pyelftools, which only judges need

    called = called_by_loaders(code)
    if sum(called.values()) > _CALLS_OF_MODE[mode]:
        raise RunsWhenLoaded(
            "it has host code that would run when it is loaded, before any launch: constructors or destructors, or "
            f"variables that only code can initialize ({', '.join(called)}); a kernel's source has none"
        )


def _refuse_full(output: str, folder: Path) -> None:
    """Raise CacheUnavailable if the compiler reports a problem of the machine, not of the source."""
    with files.cache_errors(folder):
        for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            if os.strerror(number) in output:
                raise OSError(number, os.strerror(number))


def prepared(mode: str, variables: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Return the files that every build of a mode shares, runtime and precompiled header, and make missing ones.

    They are for the compiler of a process with these environment `variables`; without them, of this process.
    """
    compiler = find_compiler(variables)
    folders = (Path(option.removeprefix("-I")) for option in _prelude(compiler, mode))
    return (_runtime(compiler, mode), *folders)


def _prelude(compiler: Compiler, mode: str) -> tuple[str, ...]:
    """Return the option with which g++ finds the precompiled header; it halves the time to compile a small kernel."""
    if compiler.is_clang:
        return ()
    options = _compile_options(compiler, mode)
    folder = cache_folder() / f"prelude-{mode}-{_digest(compiler.version, *options, _own_content())}"
    folder.mkdir(exist_ok=True)
    command = [compiler.command, *options, f"-I{INCLUDE}", "-x", "c++-header", str(INCLUDE / _PRELUDE), "-o"]
    _once(folder / f"{_PRELUDE}.gch", lambda unit: _or_unavailable(compiler, [*command, str(unit)]))
    return (f"-I{folder}",)


def _runtime(compiler: Compiler, mode: str) -> Path:
    """Return the runtime's object file, built once per mode and compiler."""
    options = [*_common(compiler), "-O2", "-g1"]
    built = cache_folder() / f"{mode}-{_digest(compiler.version, *options, _own_content())}.runtime.o"
    command = [compiler.command, *options, "-c", str(RUNTIME / f"{mode}.cpp"), "-o"]
    return _once(built, lambda unit: _or_unavailable(compiler, [*command, str(unit)]))


def _or_unavailable(compiler: Compiler, command: list[str]) -> None:
    """Run the command; raise BackendUnavailable if the compiler cannot build the runtime."""
    output = _complaint(command)
    _refuse_full(output, Path(command[-1]).parent)
    if output:
        raise BackendUnavailable(
            f"{compiler.command} ({compiler.version}) cannot build the emulator's runtime, which needs C++17 as of "
            f"g++ 9 or clang++ 10; install a newer one or set CXX. Its output: {output[:2000]}"
        )


def _digest(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:32]


@cache
def _own_content() -> str:
    """Return a digest of the emulator's headers and runtime, so that a change in them rebuilds everything.

    Their folder is part of it, because a build names the paths of its headers, and headers of another installation
    would look like a kernel author's files.
    """
    sources = sorted(path for folder in (INCLUDE, RUNTIME) for path in folder.rglob("*") if path.is_file())
    return _digest(str(_HERE), *(f"{path.relative_to(_HERE)}\n{path.read_text(encoding='utf-8')}" for path in sources))


# Host C++ sources from CUDA sources, with their file names and line numbers.
#
# Project includes replace their `#include`, system includes move to the top, and the rest is put into an unnamed
# namespace: without it g++ refuses `__shared__` in a template next to `__shared__` in a plain function. Five things
# cannot be expressed with macros and are rewritten: `extern __shared__`, `extern "C"`, `return;`, which must note that
# the thread leaves early, because barriers wait for every other thread, `__launch_bounds__` and `__cluster_dims__`,
# which are checked where the kernel begins, and inline PTX that the emulator knows.

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"][^\n]*$')
_HAS_INCLUDE = re.compile(r'__has_include\s*\(\s*([<"])([^>"\n]+)[>"]\s*\)')
_LINE = re.compile(r'^#line (\d+) "(.*)"$')
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b.*$")
_DYNAMIC_SHARED = re.compile(
    r"extern\s+__shared__\s+(?:(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)\s*)?"
    r"(?P<type>[\w:<>,\s]+?)\s+(?:__align__\s*\([^)]*\)\s*)?(?P<name>\w+)\s*\[\s*\](?P<more>(?:\s*\[[^\]]*\])*)\s*;"
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_STATIC_SHARED = re.compile(r"\bstatic\s+(?=__shared__\b)|(?<=\b__shared__)\s+static\b")  # __shared__ is static here
_ALIGNED_SHARED = re.compile(r"(\b__shared__\s+)(alignas\s*\((?:[^()]|\([^()]*\))*\)\s*)")  # C++ has it first
_C_LINKAGE = re.compile(r'\bextern\s+"C"\s*(?P<block>\{)?')
_RETURN = re.compile(r"\breturn\s*;(?!\s*\n\})")  # before a function's last brace it skips nothing
_NESTED = r"(?:[^()#]|\((?:[^()#]|\([^()#]*\))*\))+"
_CHECKED = re.compile(
    rf"\b__(?P<what>launch_bounds|cluster_dims)__\s*\((?P<arguments>{_NESTED})\)(?=[^;{{}}#]*?\)\s*(?P<body>\{{))"
)
_SYMBOL = re.compile(
    r"__(?:constant|device)__\s+(?:[\w:]+(?:<[^;{}()]*?>)?(?:\s*\([\d\s]*\))?[\s*&]+)+(?P<name>\w+)\s*(?:\[[^\]]*\]\s*)*[=;{]"
)

_BLOCK = re.compile(r"\bnamespace\s*(?P<namespace>[\w:]*)\s*\{|[{}]")


@dataclass(frozen=True)
class HostSource:
    """A translation unit for the host compiler."""

    text: str
    entries: tuple[str, ...]
    symbols: tuple[str, ...]


def host_source(path_or_text: Path | str, include_dirs: tuple[Path, ...], entries: tuple[str, ...]) -> HostSource:
    """Return the host source of a kernel file, or of source text, exporting `entries` and its global variables."""
    flat = _flat(path_or_text, include_dirs)
    body, symbols = _body(flat)
    hoisted = "".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in flat.system)
    opening = f'#include "cuda_on_cpu.h"\n{hoisted}namespace {{\n#include "cuda_on_cpu/kernel_scope.h"\n'
    return HostSource(f"{opening}{body}\n{_tables(entries, symbols)}", entries, symbols)


def flat_code(path_or_text: Path | str, include_dirs: tuple[Path, ...]) -> str:
    """Return the source with its project includes in place, its system includes at the end, without comments."""
    flat = _flat(path_or_text, include_dirs)
    return _without_comments(flat.text + "".join(f"\n#include <{name}>" for name in flat.system))


@dataclass(frozen=True)
class _Flat:
    """A source with its project includes in place, the names of its system includes, and the state of all its files."""

    text: str
    system: tuple[str, ...]
    files: tuple[tuple[Path, int, int], ...]

    @property
    def is_fresh(self) -> bool:
        return all(_state(path) == (path, *state) for path, *state in self.files)


# The passes of a verification read the same few sources repeatedly.
_KEPT: dict[tuple[Path | str, tuple[Path, ...]], _Flat] = {}


def _flat(path_or_text: Path | str, include_dirs: tuple[Path, ...]) -> _Flat:
    """Return the flat source; a file is read again when it, or a file that it includes, has changed."""
    key = (path_or_text, include_dirs)
    if key not in _KEPT or not _KEPT[key].is_fresh:
        reader = _Flattener(include_dirs)
        text = translate(reader.read(path_or_text))
        _KEPT[key] = _Flat(text, tuple(reader.system), tuple(map(_state, reader.files)))
    return _KEPT[key]


def _state(path: Path) -> tuple[Path, int, int]:
    """Return path, time and size of a file, which differ if it has changed or is gone."""
    try:
        status = path.stat()
    except OSError:
        return path, 0, -1
    return path, status.st_mtime_ns, status.st_size


@lru_cache(maxsize=256)
def _body(flat: _Flat) -> tuple[str, tuple[str, ...]]:
    """Return the text without constructs that macros cannot express, with every newline, and its global variables."""

    def plain_linkage(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n") + ("namespace {" if match["block"] else "")

    def noted_return(match: re.Match[str]) -> str:
        return "{ ::cuda_cpu::leave_early(); return; }" + "\n" * match[0].count("\n")

    text = _STATIC_SHARED.sub(lambda match: " " + "\n" * match[0].count("\n"), flat.text)
    bounded = _check_bounds(_ALIGNED_SHARED.sub(r"\2\1", _declare_shared(text)))
    body = _RETURN.sub(noted_return, _C_LINKAGE.sub(plain_linkage, bounded))
    return body, tuple(_symbols(body))


@lru_cache(maxsize=256)
def _without_comments(code: str) -> str:
    """Return the code without the contents of string literals, and a blank or newlines for each comment."""

    def blank(match: re.Match[str]) -> str:
        return '""' if match[0].startswith('"') else "\n" * match[0].count("\n") or " "

    return _COMMENT.sub(blank, code)


class _Flattener:
    """Reader of a source with its project includes in place; `system` collects the other includes in order."""

    def __init__(self, include_dirs: tuple[Path, ...]) -> None:
        self.include_dirs = include_dirs
        self.system: list[str] = []
        self.files: list[Path] = []
        self.read_once: set[Path] = set()

    def read(self, path_or_text: Path | str) -> str:
        if isinstance(path_or_text, str) and "\n" in path_or_text:
            return self._lines(path_or_text, "kernel.cu", Path.cwd())
        path = Path(path_or_text)
        if not path.is_file():
            raise SpecError(f"no kernel source at {path}")
        return self._file(path)

    def _file(self, path: Path) -> str:
        self.files.append(path)
        return self._lines(path.read_text(encoding="utf-8"), str(path), path.parent)

    def _lines(self, text: str, name: str, folder: Path) -> str:
        lines = [f'#line 1 "{name}"']
        number = 0
        for line in text.split("\n"):
            include, directive = _INCLUDE.match(line), _LINE.match(line)
            number = int(directive[1]) - 1 if directive else number + 1
            name = directive[2] if directive else name
            if include:
                lines.append(self._include(include[1], include[2].strip(), folder, f'#line {number} "{name}"'))
                lines.append(f'#line {number + 1} "{name}"')
            else:
                lines.append("" if _ONCE.match(line) else _HAS_INCLUDE.sub(partial(self._has, folder), line))
        return "\n".join(lines)

    def _has(self, folder: Path, asked: re.Match[str]) -> str:
        """Return 1 for a file that the reader finds; the compiler, without these folders, answers for others."""
        folders = [folder, *self.include_dirs] if asked[1] == '"' else self.include_dirs
        return asked[0] if first_in(folders, asked[2].strip()) is None else "1"

    def _include(self, bracket: str, name: str, folder: Path, line_directive: str) -> str:
        """Return the included file's text, or lines that replace the include."""
        beside = [folder] if folder and bracket == '"' else []
        path = first_in([*beside, *self.include_dirs], name)
        if path is None:
            if name not in self.system:
                self.system.append(name)
            if "assert" in name:
                return '#include "cuda_on_cpu/kernel_scope.h"'
            if first_in([INCLUDE], name):
                return ""
            # The compiler decides whether it has the header: only it knows which branch of a condition is taken.
            searched = ", ".join(map(str, (folder, *self.include_dirs)))
            error = f"'{name}' is neither in {searched} nor a header of the emulator or the host compiler"
            return f"#if !__has_include(<{name}>)\n{line_directive}\n#error {error}\n#endif"
        if path.resolve() in self.read_once:
            return ""
        if any(_ONCE.match(line) for line in path.read_text(encoding="utf-8").split("\n")):
            self.read_once.add(path.resolve())
        return self._file(path)


def _declare_shared(text: str) -> str:
    """Declare dynamic shared memory as pointers; leave out repeated declarations outside functions."""
    parts: list[str] = []
    seen: set[str] = set()
    end = depth = 0
    for match in _DYNAMIC_SHARED.finditer(text):
        between = text[end : match.start()]
        code = _without_comments(between)
        depth += code.count("{") - code.count("}")
        kind, name, more = " ".join(match["type"].split()), match["name"], match["more"]
        is_repeated = depth == 0 and name in seen
        seen |= {name} if depth == 0 else set()
        declaration = f"{kind} (* const {name}){more} = ({kind} (*){more})::cuda_cpu::dynamic_shared;"
        parts += [between, "" if is_repeated else declaration, "\n" * match[0].count("\n")]
        end = match.end()
    return "".join([*parts, text[end:]])


def _check_bounds(text: str) -> str:
    """Let each kernel with `__launch_bounds__` or `__cluster_dims__` begin with a check of its launch."""
    code = _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text)  # every character keeps its place
    parts: list[str] = []
    end = 0
    for kernel in _CHECKED.finditer(code):
        only = _first_argument if kernel["what"] == "launch_bounds" else _on_one_line
        check = f" ::cuda_cpu::check_{kernel['what']}(CUDA_CPU_CALLER, {only(kernel['arguments'])});"
        parts += [text[end : kernel.end("body")], check]
        end = kernel.end("body")
    return "".join([*parts, text[end:]])


def _first_argument(arguments: str) -> str:
    """Return the first argument on one line; all of them where a comparison hides where it ends."""
    depth = 0
    for place, character in enumerate(arguments):
        depth += (character in "(<") - (character in ")>")
        if character == "," and depth == 0:
            arguments = arguments[:place]
            break
    return _on_one_line(arguments)


def _on_one_line(arguments: str) -> str:
    return " ".join(arguments.replace("\\\n", " ").split())


def _symbols(text: str) -> Iterator[str]:
    """Yield the names of `__constant__` and `__device__` variables outside of functions and types, with namespaces."""
    code = _DIRECTIVE.sub("", _without_comments(text))
    seen: set[str] = set()
    around: list[str | None] = []  # namespaces, "" without a name; None for any other block
    at = 0
    for match in _SYMBOL.finditer(code):
        for bracket in _BLOCK.finditer(code, at, match.start()):
            if bracket[0] != "}":
                around.append(bracket["namespace"] if bracket["namespace"] is not None else None)
            elif around:
                around.pop()
        at = match.start()
        name = "::".join([*filter(None, around), match["name"]])
        if None not in around and name not in seen:
            seen.add(name)
            yield name


def _tables(entries: tuple[str, ...], symbols: tuple[str, ...]) -> str:
    """Return launch table and symbol table; inside the namespace, where a kernel named `fma` hides the host's `fma`.

    The launch table is a function, so that loading the library of an honest source runs no code.
    """
    kernels = "".join(
        f'    case {number}: return ::cuda_cpu::make_entry("{entry}", {entry});\n'
        for number, entry in enumerate(entries)
    )
    variables = "".join(
        f'    {{"{name}", const_cast<void*>(static_cast<const volatile void*>(&{name})), sizeof({name})}},\n'
        for name in symbols
    )
    return (
        '#line 1 "launch table"\nCUDA_CPU_UNCHECKED ::cuda_cpu::Entry cuda_cpu_entry_of(size_t cuda_cpu_number) {\n'
        f"    switch (cuda_cpu_number) {{\n{kernels}    default: return {{}};\n    }}\n}}\n"
        f"const ::cuda_cpu::Symbol cuda_cpu_symbols[] = {{\n{variables}    {{}}}};\n"
        "}  // namespace\n"
        "namespace cuda_cpu {\n"
        "Entry entry_of(size_t number) { return ::cuda_cpu_entry_of(number); }\n"
        f"extern const size_t entry_count = {len(entries)};\n"
        "extern const Symbol* const symbols = ::cuda_cpu_symbols;\n"
        f"extern const size_t symbol_count = {len(symbols)};\n"
        "}\n"
    )


# Kernels that the emulator cannot run.

_BULK = (  # after `cp_`, of cuda::device::experimental
    r"async_bulk_(?:global_to_shared|shared_to_global|commit_group|wait_group_read"
    r"|tensor_[1-5]d_(?:global_to_shared|shared_to_global))"
)
# The first match is the reason, so more specific patterns come first.
_REASONS = (
    ("wgmma", r"\bwgmma\b"),
    ("tensor memory accelerator", rf"\bcp_(?!{_BULK}\b)(?:reduce_)?async_(?:reduce_)?bulk\w*|\bcuTensorMap\w+"),
    ("fifth-generation tensor cores", r"\btcgen05\b"),
    ("mbarrier", r"\bcuda::device::barrier_(?!(?:arrive_tx|expect_tx|native_handle)\b)\w+|\b__mbarrier_\w+"),
    ("thread block clusters", r"\bthis_cluster\b|\bcluster_group\b|\b__cluster_(?!dims__)\w+"),
    ("textures or surfaces", r"\bcuda(Texture|Surface)Object_t\b|\b(tex|surf)[123]D\w*\s*[<(]"),
    ("dynamic parallelism", r"(?m:^(?!\s*#\s*define\b).*<<<)"),  # a macro of the host may launch
    ("6-bit and 4-bit floating types", r"\b__nv_fp[46]\w*|\bcuda_fp[46]\.h\b"),
    ("libcu++", r"#\s*include\s*<cuda/(?!std/|barrier>)"),
    ("inline PTX", r"\b(?:asm|__asm|__asm__)\b"),  # only the keyword: a macro may be the rest
)
_ANY_REASON = re.compile("|".join(pattern for _, pattern in _REASONS))
# Each reason's pattern has one of these: a search for words is quick.
_HINTS = (
    "wgmma", "cuTensorMap", "bulk", "tcgen05", "barrier", "cluster", "Object_t", "1D", "2D", "3D", "<<<", "_fp", "asm",
    "<cuda/",
)  # fmt: skip
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_CONTINUED = re.compile(r"\\\r?\n")  # a line continues in the next line, even within a word
_CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)$")


def not_emulated(path_or_text: Path | str, include_dirs: Iterable[Path | str] = ()) -> str | None:
    """Return why the emulator cannot run this source, or None if it can.

    Only the code that the CPU compiles counts: the device's branch of an `#ifdef CPU_CUDA` is ignored.
    """
    return _reason(flat_code(path_or_text, tuple(map(Path, include_dirs))))


def is_suspect(text: str) -> bool:
    """Return whether a source's text has a word for which `not_emulated` may refuse it; its includes are not read."""
    return any(hint in text for hint in _HINTS) and bool(_ANY_REASON.search(text))


def entry_not_emulated(entry: str, path_or_text: Path | str, include_dirs: Iterable[Path | str] = ()) -> str | None:
    """Return why the emulator lacks an entry of a source that it can run: only a device's branch defines a name in it.

    `kernel<Thirds>` is such an entry if `struct Thirds` is defined within `#ifndef CPU_CUDA`.
    """
    code = flat_code(path_or_text, tuple(map(Path, include_dirs)))
    for name in _NAME.findall(entry):
        if name not in ("true", "false") and _is_of_devices(name, code):
            return f"'{name}' is in code for devices alone"
    return None


@lru_cache(maxsize=1024)
def _is_of_devices(name: str, code: str) -> bool:
    seen, word = _seen_by_cpu(code), rf"\b{name}\b"
    definition = rf"\b(?:struct|class|union|enum)\s+{name}\b[^;{{}}()]*\{{"  # not a forward declaration
    return any(re.search(pattern, code) and not re.search(pattern, seen) for pattern in (word, definition))


@lru_cache(maxsize=256)
def _reason(code: str) -> str | None:
    seen = _seen_by_cpu(code)
    return next((reason for reason, pattern in _REASONS if re.search(pattern, seen)), None)


@lru_cache(maxsize=64)
def _seen_by_cpu(code: str) -> str:
    """Return the lines outside the device's branches."""
    open_branches: list[bool | None] = []  # whether the CPU compiles it; None for conditions on other names
    kept: list[str] = []
    for line in _CONTINUED.sub("", code).split("\n"):
        condition = _CONDITION.match(line)
        if condition is None:
            if False not in open_branches:
                kept.append(line)
        elif condition[1] in ("if", "ifdef", "ifndef"):
            negated = condition[1] == "ifndef" or "!" in condition[2]
            open_branches.append(not negated if "CPU_CUDA" in condition[2] else None)
        elif condition[1] == "endif" and open_branches:
            open_branches.pop()
        elif open_branches and open_branches[-1] is not None:
            open_branches[-1] = not open_branches[-1]
    return "\n".join(kept)
