"""Finds a host C++ compiler, and builds a source together with the runtime of a mode; cached by content."""

import hashlib
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from prism_bench import files
from prism_bench.errors import BackendUnavailable, CompilationFailed

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
RUNTIME = HERE / "runtime"

# CUDA sources pun types, count on wrapping integers, and contract nothing that the author did not write.
_COMMON = (
    "-std=c++17 -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti -fno-strict-aliasing -ffp-contract=off "
    "-fdata-sections -fno-math-errno -fno-trapping-math -fno-finite-loops -fno-stack-protector -Wno-attributes -w"
).split()
_SANITIZE = "-fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer"
_KERNEL = {
    "fast": "-O2 -g1 -gdwarf-4 -fwrapv".split(),
    "race": "-O1 -g1 -gdwarf-4 -fwrapv -fsanitize=thread".split(),
    "address": ["-O0", "-g1", "-gdwarf-4", *_SANITIZE.split()],  # -O1 takes ten times as long: 29 s for a Kalman filter
}
# Splitting float4 into scalars would hide that it is one access; a static array that is known not to be aliased,
# as most shared ones are, would not be watched at all.
_RACE_GCC = ("-fno-tree-sra", "-fno-ipa-reference-addressable", "--param", "tsan-distinguish-volatile=1")
_RACE_CLANG = ("-mllvm", "-tsan-distinguish-volatile=1")
_LINK = {"fast": [], "race": [], "address": ["-fsanitize=address,undefined"]}
MODES = tuple(_KERNEL)


@dataclass(frozen=True)
class Compiler:
    """A host compiler that was found, and what it calls itself."""

    command: str
    version: str

    @property
    def is_clang(self) -> bool:
        """Whether it takes clang's options."""
        return "clang" in self.version


def find_compiler() -> Compiler:
    """The compiler named by CXX, else g++, else clang++. Raises BackendUnavailable, saying what to install."""
    return _probe(os.environ.get("CXX", ""), os.environ.get("PATH", ""))


@cache
def _probe(chosen: str, _path: str) -> Compiler:
    tried = [chosen] if chosen else ["g++", "clang++"]
    for command in tried:
        if shutil.which(command):
            asked = subprocess.run([command, "--version"], capture_output=True, text=True)
            return Compiler(command, asked.stdout.split("\n")[0])
    raise BackendUnavailable(
        f"the emulator needs a C++17 compiler and found none (tried {', '.join(tried)}); install g++ (Debian, Ubuntu: "
        "apt install g++) or set CXX. Without it kernels cannot run on the CPU; the compile check and the GPU work."
    )


def sanitizer_library() -> str:
    """The address sanitizer's library, to be loaded first; BackendUnavailable where the compiler came without it."""
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


def cache_folder() -> Path:
    """Where built libraries are kept; the folder is there afterwards."""
    folder = files.cache_folder("emulator")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def build(text: str, mode: str, defines: tuple[str, ...] = ()) -> Path:
    """The shared library of a host source; compiled only if no build of the same content is cached."""
    compiler = find_compiler()
    options = [*_options(compiler, mode), *(f"-D{define}" for define in defines)]
    library = cache_folder() / f"{_digest(text, *options, compiler.version, _own_content())}.so"
    if not library.exists():
        _build(compiler, text, options, mode, library)
    return library


def _options(compiler: Compiler, mode: str) -> list[str]:
    by_compiler = _RACE_CLANG if compiler.is_clang else _RACE_GCC
    return [*_COMMON, *_KERNEL[mode], *(by_compiler if mode == "race" else ()), f"-I{INCLUDE}"]


def _link_options(compiler: Compiler, mode: str) -> list[str]:
    shared = ["-shared-libasan"] if compiler.is_clang and mode == "address" else []
    return ["-shared", f"-Wl,-T,{RUNTIME / 'shared_memory.ld'}", *_LINK[mode], *shared]


def _build(compiler: Compiler, text: str, options: list[str], mode: str, library: Path):
    runtime = _runtime(compiler, mode)
    unit = library.with_suffix(f".{os.getpid()}")
    source, code = unit.with_suffix(unit.suffix + ".cpp"), unit.with_suffix(unit.suffix + ".o")
    source.write_text(text, encoding="utf-8")
    try:
        _run([compiler.command, *options, "-c", str(source), "-o", str(code)], mode)
        _run(
            [compiler.command, *_link_options(compiler, mode), str(code), str(runtime), "-lm", "-lrt", "-o", str(unit)],
            mode,
        )
        os.replace(unit, library)
    finally:
        source.unlink(missing_ok=True)
        code.unlink(missing_ok=True)


def _runtime(compiler: Compiler, mode: str) -> Path:
    """The runtime's object file, built once per mode and compiler."""
    built = cache_folder() / f"runtime-{mode}-{_digest(compiler.version, *_COMMON, _own_content())}.o"
    if not built.exists():
        unit = built.with_suffix(f".{os.getpid()}")
        words = _complaint(
            [compiler.command, *_COMMON, "-O2", "-g1", "-c", str(RUNTIME / f"{mode}.cpp"), "-o", str(unit)]
        )
        if words:
            raise BackendUnavailable(
                f"{compiler.command} ({compiler.version}) cannot build the emulator's runtime, which needs C++17 as of "
                f"g++ 9 or clang++ 10; install a newer one or set CXX. It said: {words[:2000]}"
            )
        os.replace(unit, built)
    return built


def _run(command: list[str], mode: str):
    words = _complaint(command)
    if words:
        raise CompilationFailed(f"{command[0]} refused the source (emulator, {mode} mode):\n{words}")


def _complaint(command: list[str]) -> str:
    """What the compiler says when it fails, or nothing."""
    # A sanitizer preloaded for the kernel must not slow down, or stop, the compiler.
    quiet = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, capture_output=True, text=True, env=quiet)
    return done.stderr.strip() or f"exit status {done.returncode}" if done.returncode else ""


def _digest(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:32]


@cache
def _own_content() -> str:
    """A digest of the emulator's own headers and runtime, so that a change of theirs rebuilds."""
    files = sorted(path for folder in (INCLUDE, RUNTIME) for path in folder.rglob("*") if path.is_file())
    return _digest(*(f"{path.relative_to(HERE)}\n{path.read_text(encoding='utf-8')}" for path in files))
