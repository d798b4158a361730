"""Modules of the package: each can be imported."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "prism_bench").rglob("*.py"))

# Modules that need a package with a GPU behind it, which the environment of the tests may lack.
NEED_GPU_PACKAGES = {"prism_bench.extensions.memory.cupy_pool": "cupy", "prism_bench.extensions.memory.worker": "cupy"}

# Modules of the standard library that Windows lacks, and the program that confines itself by one of them on Linux.
POSIX_ONLY = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "readline", "curses")
LINUX_PROGRAMS = {"prism_bench.extensions.judge.jail.confined"}


def test_every_module_is_imported_without_what_windows_lacks():
    """Import all of them in a new process, where no module is loaded yet."""
    names = {_module(path) for path in SOURCES if path.stem != "__main__"}
    assert len(names) > 100, "the modules were not found"
    assert set(NEED_GPU_PACKAGES) <= names, "a module that is named here does not exist"
    lacking = {name for name, package in NEED_GPU_PACKAGES.items() if find_spec(package) is None}
    assert names >= LINUX_PROGRAMS, "a program that is named here does not exist"
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({POSIX_ONLY}))\n"
        "from importlib import import_module; [import_module(name) for name in sys.argv[1:]]"
    )
    words = [sys.executable, "-c", script, *sorted(names - lacking - LINUX_PROGRAMS)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert 0 == done.returncode, done.stderr


def _module(path: Path) -> str:
    """Return the dotted name of a module of the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")
