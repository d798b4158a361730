"""Backends touch the device. They are found by file name, opened by name, and loaded only then."""

import re
from importlib import import_module
from pathlib import Path

from prism_bench.backends.base import Backend, Runnable, kept_build, kept_choice
from prism_bench.errors import BackendUnavailable, unknown

__all__ = ["Backend", "Runnable", "kept_build", "kept_choice", "names", "open_backend", "open_default"]

_HERE = Path(__file__).parent
_OPENS = re.compile(r"^(def|from \S+ import) open_backend\b", re.MULTILINE)


def names() -> tuple[str, ...]:
    """Every backend's name."""
    modules = {path.stem: path for path in _HERE.glob("*.py") if path != Path(__file__)}
    packages = {path.parent.name: path for path in _HERE.glob("*/__init__.py")}
    opened = (name for name, path in {**modules, **packages}.items() if _OPENS.search(path.read_text()))
    return tuple(sorted(opened))


def open_backend(name: str) -> Backend:
    """Open the backend `name`; BackendUnavailable names what is missing and what works without it."""
    if name not in names():
        raise unknown("backend", name, names())
    return import_module(f"prism_bench.backends.{name}").open_backend()


def open_default() -> tuple[Backend, str]:
    """Open `cuda` if a device answers, else `numpy_reference`; return it and a sentence with the reason."""
    try:
        backend = open_backend("cuda")
        return backend, f"backend cuda: {backend.facts()['device']}"
    except BackendUnavailable as error:
        return open_backend("numpy_reference"), f"backend numpy_reference, because {error}"
