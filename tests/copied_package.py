"""Copies of the package that tests change, check out and measure: the modules of a worker are compiled already.

What Python compiles it finds again by a source's time, which every checkout sets anew: each of them would compile two
hundred modules, three times as long as a worker takes to start. These are found by the source's content.
"""

import _imp
import importlib.util
import shutil
import sys
from pathlib import Path

import prism_bench.run.worker  # noqa: F401 - what it imports is what is compiled

PACKAGE = Path(prism_bench.__file__).parent
_HEADER = 16  # bytes before a compiled module's code: a number of the version, flags, and what the source is known by
_CHECKED = (0b11).to_bytes(4, "little")  # by a hash of the source, which is compared at each import
_LOADED = tuple(name for name in sys.modules if name.partition(".")[0] == "prism_bench")


def copy_package(folder):
    """Copy the package to `folder`/prism_bench with the compiled modules of a worker, for any time of the sources."""
    target = folder / "prism_bench"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    for name in _LOADED:
        _keep_compiled(Path(str(sys.modules[name].__file__)), target)
    return target


def _keep_compiled(source, target):
    """Copy the compiled module of a source where there is one; Python compiles the others."""
    compiled = Path(importlib.util.cache_from_source(source))
    if not compiled.is_file() or not source.is_relative_to(PACKAGE):
        return
    known = _imp.source_hash(importlib.util._RAW_MAGIC_NUMBER, source.read_bytes())
    content = compiled.read_bytes()
    copy = target / compiled.relative_to(PACKAGE)
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(content[:4] + _CHECKED + known + content[_HEADER:])
