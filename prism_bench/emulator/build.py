"""Builds of a source for the CPU: translated to C++, compiled in a mode, cached by content."""

import errno
import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path

from prism_bench.errors import BackendUnavailable, CompilationFailed, SpecError
from prism_bench.io import files
from prism_bench.io.files import first_in, lock

# The host C++ compiler, and its options in each mode.

_HERE = Path(__file__).parent
INCLUDE = _HERE / "include"
RUNTIME = _HERE / "runtime"

# CUDA sources pun types, count on wrapping integers, and contract nothing that the author did not write.
_COMMON = (
    "-std=c++17 -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti -fno-strict-aliasing -ffp-contract=off "
    "-fdata-sections -fno-math-errno -fno-trapping-math -fno-finite-loops -fno-stack-protector -Wno-attributes -w"
).split()
_SANITIZE = "-fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer"
_LINES = "-g1 -gdwarf-4"
# An instance of a template compiles in 25 ms at -O1 and in 45 ms at -O2, and runs as fast: what takes the time is to
# switch threads. The sanitizers' passes compile ten times as long at -O1: a Kalman filter 29 s.
_KERNEL = {
    "fast": f"-O1 {_LINES} -fwrapv".split(),
    "race": f"-O1 {_LINES} -fwrapv -fsanitize=thread".split(),
    "address": f"-O0 {_LINES} {_SANITIZE}".split(),
}
# Splitting float4 into scalars would hide that it is one access; a static array that is known not to be aliased,
# as most shared ones are, would not be watched at all.
_RACE_GCC = ("-fno-tree-sra", "-fno-ipa-reference-addressable", "--param", "tsan-distinguish-volatile=1")
_RACE_CLANG = ("-mllvm", "-tsan-distinguish-volatile=1")
# A library with a unique symbol is never unloaded; places of variables for a debugger take a fifth of the time.
_GCC = ("-fno-gnu-unique", "-fno-var-tracking")
_LINK = {"fast": [], "race": [], "address": ["-fsanitize=address,undefined"]}
MODES = tuple(_KERNEL)


@dataclass(frozen=True)
class Compiler:
    """A host compiler that was found, and its version line."""

    command: str
    version: str

    @property
    def is_clang(self) -> bool:
        """Whether it takes clang's options."""
        return "clang" in self.version


def find_compiler(variables: Mapping[str, str] | None = None) -> Compiler:
    """Return the compiler named by CXX, else g++, else clang++; BackendUnavailable names what to install.

    With the `variables` of another process it is the one that is found there, by its path.
    """
    if variables is None:
        return _probe(os.environ.get("CXX", ""), os.environ.get("PATH", ""))
    path = variables.get("PATH", "")
    found = _probe(variables.get("CXX", ""), path)
    return replace(found, command=shutil.which(found.command, path=path) or found.command)


@cache
def _probe(chosen: str, path: str) -> Compiler:
    tried = [chosen] if chosen else ["g++", "clang++"]
    for command in tried:
        place = shutil.which(command, path=path or None)
        if place:
            asked = subprocess.run([place, "--version"], capture_output=True, text=True)
            return Compiler(command, asked.stdout.split("\n")[0])
    raise BackendUnavailable(
        f"the emulator needs a C++17 compiler and found none (tried {', '.join(tried)}); install g++ (Debian, Ubuntu: "
        "apt install g++) or set CXX. Without it kernels cannot run on the CPU; the compile check and the GPU work."
    )


def sanitizer_library() -> str:
    """Return the address sanitizer's library, to be preloaded; BackendUnavailable where the compiler has none."""
    compiler = find_compiler()
    name = f"libclang_rt.asan-{platform.machine()}.so" if compiler.is_clang else "libasan.so"
    asked = subprocess.run(
        [compiler.command, f"-print-file-name={name}"], capture_output=True, text=True
    ).stdout.strip()
    if not Path(asked).is_absolute():
        raise BackendUnavailable(
            f"{compiler.command} has no {name}; install its sanitizers. The fast and race modes work without."
        )
    return os.path.realpath(asked)


def _runtime_options(compiler: Compiler) -> list[str]:
    """Return the options that the runtime is compiled with in every mode."""
    return [*_common(compiler), "-O2", "-g1"]


def _compile_options(compiler: Compiler, mode: str) -> list[str]:
    """Return the options that a kernel's source is compiled with in a mode, without the include folders."""
    race = _RACE_CLANG if compiler.is_clang else _RACE_GCC
    return [*_common(compiler), *_KERNEL[mode], *(race if mode == "race" else ())]


def _common(compiler: Compiler) -> list[str]:
    return [*_COMMON, *(() if compiler.is_clang else _GCC)]


def _link_options(compiler: Compiler, mode: str) -> list[str]:
    """Return the options that link a kernel's object and the runtime's into a library."""
    shared = ["-shared-libasan"] if compiler.is_clang and mode == "address" else []
    return ["-shared", f"-Wl,-T,{RUNTIME / 'places.ld'}", *_LINK[mode], *shared]


def complaint(command: list[str]) -> str:
    """Return what the compiler prints when it fails, or nothing."""
    # A sanitizer preloaded for the kernel must not slow down, or stop, the compiler.
    quiet = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, capture_output=True, text=True, env=quiet)
    return done.stderr.strip() or f"exit status {done.returncode}" if done.returncode else ""


# Builds of a source with the runtime of a mode: cached by content, and made once however many processes ask.

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
    options = [*_compile_options(compiler, mode), *(f"-D{define}" for define in defines)]
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
    link = [
        compiler.command,
        *_link_options(compiler, mode),
        str(code),
        str(runtime),
        "-lm",
        "-lrt",
        "-o",
        str(library),
    ]
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
    from prism_bench.compilation.cubin import called_by_loaders  # its reader of ELF files is for judges alone

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
    options = _compile_options(compiler, mode)
    folder = cache_folder() / f"prelude-{mode}-{_digest(compiler.version, *options, _own_content())}"
    folder.mkdir(exist_ok=True)
    command = [compiler.command, *options, f"-I{INCLUDE}", "-x", "c++-header", str(INCLUDE / _PRELUDE), "-o"]
    _once(folder / f"{_PRELUDE}.gch", lambda unit: _or_unavailable(compiler, [*command, str(unit)]))
    return (f"-I{folder}",)


def _runtime(compiler: Compiler, mode: str) -> Path:
    """Return the runtime's object file, built once per mode and compiler."""
    options = _runtime_options(compiler)
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
    return _digest(str(_HERE), *(f"{path.relative_to(_HERE)}\n{path.read_text(encoding='utf-8')}" for path in sources))


# Host C++ sources from CUDA sources, with their file names and line numbers.
#
# Project includes replace their `#include`, system includes move to the top, and the rest is put into an unnamed
# namespace: without it g++ refuses `__shared__` in a template next to `__shared__` in a plain function. Three things
# cannot be expressed with macros and are rewritten: `extern __shared__`, `extern "C"`, and `return;`, which notes that
# the thread leaves before the end: barriers wait for every thread that has not.

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"][^\n]*$')
_PLACE = re.compile(r'^#line (\d+) "(.*)"$')
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b.*$")
_DYNAMIC_SHARED = re.compile(
    r"extern\s+__shared__\s+(?:(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)\s*)?"
    r"(?P<type>[\w:<>,\s]+?)\s+(?:__align__\s*\([^)]*\)\s*)?(?P<name>\w+)\s*\[\s*\](?P<more>(?:\s*\[[^\]]*\])*)\s*;"
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_C_LINKAGE = re.compile(r'\bextern\s+"C"\s*(?P<block>\{)?')
_RETURN = re.compile(r"\breturn\s*;(?!\s*\n\})")  # one before a function's last brace leaves nothing out
_SYMBOL = re.compile(
    r"__(?:constant|device)__\s+(?:[\w:]+(?:<[^;{}()]*?>)?(?:\s*\([\d\s]*\))?[\s*&]+)+(?P<name>\w+)\s*(?:\[[^\]]*\]\s*)*[=;{]"
)


@dataclass(frozen=True)
class HostSource:
    """A translation unit for the host compiler."""

    text: str
    entries: tuple[str, ...]
    symbols: tuple[str, ...]


def host_source(path_or_text: Path | str, include_dirs: tuple[Path, ...], entries: tuple[str, ...]) -> HostSource:
    """Return the host source of a kernel file, or of source text, exporting `entries` and its global variables."""
    body, symbols, system = _body(_flat(path_or_text, include_dirs))
    hoisted = "".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in system)
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


# The passes of a verification read the same few sources again and again.
_KEPT: dict[tuple[Path | str, tuple[Path, ...]], _Flat] = {}


def _flat(path_or_text: Path | str, include_dirs: tuple[Path, ...]) -> _Flat:
    """Return the flat source; a file is read again when it, or a file that it includes, has changed."""
    key = (path_or_text, include_dirs)
    if key not in _KEPT or not _KEPT[key].is_fresh:
        reader = _Flattener(include_dirs)
        text = reader.read(path_or_text)
        _KEPT[key] = _Flat(text, tuple(reader.system), tuple(map(_state, reader.files)))
    return _KEPT[key]


def _state(path: Path) -> tuple[Path, int, int]:
    """Return what differs when a file has changed or is gone."""
    try:
        found = path.stat()
    except OSError:
        return path, 0, -1
    return path, found.st_mtime_ns, found.st_size


@lru_cache(maxsize=256)
def _body(flat: _Flat) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the rewritten text, its global variables, and the system includes."""
    body = _rewrite(flat.text)
    return body, tuple(_symbols(body)), flat.system


@lru_cache(maxsize=256)
def _without_comments(code: str) -> str:
    """Return the code without the contents of string literals, and a blank or newlines for each comment."""

    def blank(match: re.Match[str]) -> str:
        return '""' if match[0].startswith('"') else "\n" * match[0].count("\n") or " "

    return _COMMENT.sub(blank, code)


class _Flattener:
    """Reads a source with its project includes in place; `system` gathers the others in order."""

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
            include, place = _INCLUDE.match(line), _PLACE.match(line)
            number = int(place[1]) - 1 if place else number + 1
            name = place[2] if place else name
            if include:
                lines.append(self._include(include[1], include[2].strip(), folder, f'#line {number} "{name}"'))
                lines.append(f'#line {number + 1} "{name}"')
            else:
                lines.append("" if _ONCE.match(line) else line)
        return "\n".join(lines)

    def _include(self, bracket: str, name: str, folder: Path, place: str) -> str:
        beside = [folder] if folder and bracket == '"' else []
        found = first_in([*beside, *self.include_dirs], name)
        if found is None:
            if name not in self.system:
                self.system.append(name)
            if "assert" in name:
                return '#include "cuda_on_cpu/kernel_scope.h"'
            return "" if first_in([INCLUDE], name) else self._missing(name, folder, place)
        if found.resolve() in self.read_once:
            return ""
        if any(_ONCE.match(line) for line in found.read_text(encoding="utf-8").split("\n")):
            self.read_once.add(found.resolve())
        return self._file(found)

    def _missing(self, name: str, folder: Path, place: str) -> str:
        """Return lines that stop the host compiler at `place` unless it has the header itself.

        The compiler decides, not this reader: only it knows which branch of a condition is taken.
        """
        searched = ", ".join(str(one) for one in (folder, *self.include_dirs))
        words = f"'{name}' is neither in {searched} nor a header of the emulator or the host compiler"
        return f"#if !__has_include(<{name}>)\n{place}\n#error {words}\n#endif"


def _rewrite(text: str) -> str:
    """Replace what macros cannot express; every newline stays."""
    return _RETURN.sub(_noted_return, _C_LINKAGE.sub(_plain_linkage, _declare_shared(text)))


def _noted_return(match: re.Match[str]) -> str:
    return "{ ::cuda_cpu::leave_early(); return; }" + "\n" * match[0].count("\n")


def _declare_shared(text: str) -> str:
    """Declare dynamic shared memory as pointers; repeated declarations outside functions are left out."""
    parts: list[str] = []
    seen: set[str] = set()
    end = depth = 0
    for match in _DYNAMIC_SHARED.finditer(text):
        between = text[end : match.start()]
        code = _without_comments(between)
        depth += code.count("{") - code.count("}")
        again = depth == 0 and match["name"] in seen
        seen |= {match["name"]} if depth == 0 else set()
        parts += [between, "\n" * match[0].count("\n") if again else _dynamic_shared(match)]
        end = match.end()
    return "".join([*parts, text[end:]])


def _plain_linkage(match: re.Match[str]) -> str:
    newlines = "\n" * match[0].count("\n")
    return newlines + ("namespace {" if match["block"] else "")


def _dynamic_shared(match: re.Match[str]) -> str:
    kind, name, more = " ".join(match["type"].split()), match["name"], match["more"]
    newlines = "\n" * match[0].count("\n")
    return f"{kind} (* const {name}){more} = ({kind} (*){more})::cuda_cpu::dynamic_shared;{newlines}"


def _symbols(text: str) -> Iterator[str]:
    """Yield the names of `__constant__` and `__device__` variables at the outermost level."""
    code = _DIRECTIVE.sub("", _without_comments(text))
    seen: set[str] = set()
    for match in _SYMBOL.finditer(code):
        before = code[: match.start()]
        if before.count("{") == before.count("}") and match["name"] not in seen:
            seen.add(match["name"])
            yield match["name"]


def _tables(entries: tuple[str, ...], symbols: tuple[str, ...]) -> str:
    """Return launch table and symbol table; inside the namespace, where a kernel named `fma` hides the host's.

    The launch table is a function, so that nothing of an honest source runs when its library is loaded.
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


# Kernels that the emulator does not claim to run, and why.

# The first that matches names the reason, so the more specific ones are first.
_REASONS = (
    ("wgmma", r"\bwgmma\b"),
    ("tensor memory accelerator", r"\bCUtensorMap\b|\bcp\.async\.bulk\b|\bcp_async_bulk\w*"),
    ("fifth-generation tensor cores", r"\btcgen05\b"),
    ("mbarrier", r"\bmbarrier\b|\bcuda::barrier\b|\b__mbarrier_\w+"),
    ("thread block clusters", r"\b__cluster_dims__\b|\bthis_cluster\b|\bcluster_group\b|\b__cluster_\w+"),
    ("textures or surfaces", r"\bcuda(Texture|Surface)Object_t\b|\b(tex|surf)[123]D\w*\s*[<(]"),
    ("dynamic parallelism", r"<<<"),
    ("8-bit and smaller floating types", r"\b__nv_fp[468]\w*|\bcuda_fp[468]\.h\b"),
    ("libcu++", r"#\s*include\s*<cuda/(?!std/)"),
    ("named barriers", r"\b__barrier_(sync|sync_count|arrive)\b"),
    ("inline PTX", r"\b(?:asm|__asm|__asm__)\b"),  # the word alone: a macro may end, or be, the rest
)
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_CONTINUED = re.compile(r"\\\r?\n")  # a line that goes on in the next one, within a word too
_CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)$")


def not_emulated(path_or_text: Path | str, include_dirs: Iterable[Path | str] = ()) -> str | None:
    """Return why the emulator cannot run this source, or None if it can.

    Only the code that the CPU compiles counts: the device's branch of an `#ifdef CPU_CUDA` is ignored.
    """
    return _reason(flat_code(path_or_text, tuple(map(Path, include_dirs))))


def entry_not_emulated(entry: str, path_or_text: Path | str, include_dirs: Iterable[Path | str] = ()) -> str | None:
    """Return why the emulator lacks an entry of a source that it can run: a name in it is in a device's branch alone.

    `kernel<Thirds>` is such an entry where `struct Thirds` is within `#ifndef CPU_CUDA`, declared before it or not.
    """
    code = flat_code(path_or_text, tuple(map(Path, include_dirs)))
    for name in _NAME.findall(entry):
        if name not in ("true", "false") and _is_of_devices(name, code):
            return f"'{name}' is in code for devices alone"
    return None


@lru_cache(maxsize=1024)
def _is_of_devices(name: str, code: str) -> bool:
    seen, word = _seen_by_cpu(code), rf"\b{name}\b"
    definition = rf"\b(?:struct|class|union|enum)\s+{name}\b[^;{{}}()]*\{{"  # not a declaration ahead of it
    return any(re.search(one, code) and not re.search(one, seen) for one in (word, definition))


@lru_cache(maxsize=256)
def _reason(code: str) -> str | None:
    seen = _seen_by_cpu(code)
    return next((reason for reason, pattern in _REASONS if re.search(pattern, seen)), None)


@lru_cache(maxsize=64)
def _seen_by_cpu(code: str) -> str:
    """Return the lines outside the device's branches."""
    open_branches: list[bool | None] = []
    kept: list[str] = []
    for line in _CONTINUED.sub("", code).split("\n"):
        condition = _CONDITION.match(line)
        if condition:
            _follow(open_branches, condition[1], condition[2])
        elif False not in open_branches:
            kept.append(line)
    return "\n".join(kept)


def _follow(open_branches: list[bool | None], directive: str, rest: str) -> None:
    """Open or close a conditional: True where the CPU sees it, False where not, None where it is about other names."""
    if directive in ("if", "ifdef", "ifndef"):
        negated = directive == "ifndef" or "!" in rest
        open_branches.append(not negated if "CPU_CUDA" in rest else None)
    elif directive == "endif" and open_branches:
        open_branches.pop()
    elif open_branches and open_branches[-1] is not None:
        open_branches[-1] = not open_branches[-1]
