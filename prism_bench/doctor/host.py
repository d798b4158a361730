"""The host: Python, the emulator's compiler, git, and whether the machine is quiet."""

import os
import platform
import shutil
from collections.abc import Iterator

from prism_bench.doctor.check import Check, broken, missing, note, works
from prism_bench.emulator.compiler import find_compiler, sanitizer_library
from prism_bench.errors import BackendUnavailable, CacheUnavailable
from prism_bench.io.files import cache_folder, writable_cache
from prism_bench.io.installation import pip_install, source, strangers
from prism_bench.units import count_text

_BUSY = 0.5  # of the cores


def checks() -> Iterator[Check]:
    """From the interpreter to the load."""
    yield works("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield _package()
    yield from _compiler()
    yield (
        works("git", shutil.which("git"))
        if shutil.which("git")
        else missing("git", "not in PATH", "install git: records name the commit that they measured")
    )
    yield _cache()
    yield _load()


def _package() -> Check:
    """Check that no other project's package is in the place of this one: the index has one called `prism-bench`."""
    others = ", ".join(strangers())
    if others:
        cause = f"{others}: the same folder, prism_bench, so that its code may run in the place of this program's"
        names = " ".join(name.partition(" ")[0] for name in strangers())
        return broken("package", others, cause, f"pip uninstall {names}, then {pip_install()} --force-reinstall")
    return works("package", source().requirement())


def _compiler() -> Iterator[Check]:
    try:
        compiler = find_compiler()
    except BackendUnavailable as error:
        yield missing("compiler", str(error).split(";")[0], "install g++ (Debian, Ubuntu: apt install g++) or set CXX")
        return
    yield works("compiler", compiler.version)
    try:
        sanitizer_library()
        yield works("sanitizers", "the emulator finds bad accesses")
    except BackendUnavailable as error:
        yield missing("sanitizers", str(error), "install the compiler's sanitizers")


def _cache() -> Check:
    folder = cache_folder("doctor")
    try:
        return works("cache", writable_cache("doctor").parent)
    except CacheUnavailable as error:
        reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else None
        fix = "set PRISM_BENCH_CACHE to a folder that can be written"
        return broken("cache", str(folder.parent), reason or str(error), fix)


def _load() -> Check:
    """Host times (launch cost, end to end) suffer from neighbours on the CPU."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > _BUSY * cores:
        return note("load", f"{load:.1f} on {count_text(cores, 'core')}",
                    "other programs use the CPU; launch costs will scatter", "end them, or wait")  # fmt: skip
    return works("load", f"{load:.1f} on {count_text(cores, 'core')}")
