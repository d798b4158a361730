"""Copies of the package that tests change, check out and measure: the modules of a worker are compiled already.

What Python compiles it finds again by a source's time, which every checkout sets anew: each of them would compile two
hundred modules, three times as long as a worker takes to start. These are found by the source's content.
"""

import importlib.util
import shutil
import sys
from pathlib import Path

import prism_bench.run.worker  # noqa: F401 - what it imports is what is compiled

PACKAGE = Path(prism_bench.__file__).parent
_ABOVE = ("analysis", "api", "cli", "extensions", "pytest_plugin", "report", "workflows")
_HEADER = 16  # bytes before a compiled module's code: a number of the version, flags, and what the source is known by
_CHECKED = (0b11).to_bytes(4, "little")  # by a hash of the source, which is compared at each import
_LOADED = tuple(Path(str(one.__file__)) for name, one in sys.modules.items() if name.partition(".")[0] == "prism_bench")


def copy_package(folder):
    """Copy what a worker may import to `folder`/prism_bench, with its compiled modules for any time of the sources."""
    target = folder / "prism_bench"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__", *_ABOVE))
    keep_compiled(target, _LOADED)
    return target


def keep_compiled(target, sources=None):
    """Copy to a copy of the package the compiled modules of these sources, or of all."""
    for source in sources or PACKAGE.rglob("*.py"):
        _keep_compiled(source, target)


def _keep_compiled(source, target):
    """Copy the compiled module of a source where there is one of its present text; Python compiles the others."""
    compiled = Path(importlib.util.cache_from_source(source))
    copy = target / compiled.relative_to(PACKAGE)
    if not compiled.is_file() or not copy.parent.parent.is_dir():
        return
    content, state = compiled.read_bytes(), source.stat()
    known = [int(state.st_mtime) & 0xFFFFFFFF, state.st_size & 0xFFFFFFFF]
    if content[4:_HEADER] != bytes(4) + b"".join(number.to_bytes(4, "little") for number in known):
        return
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(content[:4] + _CHECKED + importlib.util.source_hash(source.read_bytes()) + content[_HEADER:])
