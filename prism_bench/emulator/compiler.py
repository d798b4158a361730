"""The host C++ compiler, and its options in each mode."""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from prism_bench.errors import BackendUnavailable

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
RUNTIME = HERE / "runtime"

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


def runtime_options(compiler: Compiler) -> list[str]:
    """Return the options that the runtime is compiled with in every mode."""
    return [*_common(compiler), "-O2", "-g1"]


def compile_options(compiler: Compiler, mode: str) -> list[str]:
    """Return the options that a kernel's source is compiled with in a mode, without the include folders."""
    race = _RACE_CLANG if compiler.is_clang else _RACE_GCC
    return [*_common(compiler), *_KERNEL[mode], *(race if mode == "race" else ())]


def _common(compiler: Compiler) -> list[str]:
    return [*_COMMON, *(() if compiler.is_clang else _GCC)]


def link_options(compiler: Compiler, mode: str) -> list[str]:
    """Return the options that link a kernel's object and the runtime's into a library."""
    shared = ["-shared-libasan"] if compiler.is_clang and mode == "address" else []
    return ["-shared", f"-Wl,-T,{RUNTIME / 'places.ld'}", *_LINK[mode], *shared]


def complaint(command: list[str]) -> str:
    """Return what the compiler prints when it fails, or nothing."""
    # A sanitizer preloaded for the kernel must not slow down, or stop, the compiler.
    quiet = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, capture_output=True, text=True, env=quiet)
    return done.stderr.strip() or f"exit status {done.returncode}" if done.returncode else ""
