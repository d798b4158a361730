"""Extras: libraries that the default installation leaves out, each with the extra that brings it."""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType, ModuleType

from prism_bench.errors import ExtraMissing
from prism_bench.io.installation import pip_install

# What is imported, and the extra of this package that installs it.
EXTRAS: Mapping[str, str] = MappingProxyType({
    "asv": "asv", "asv_runner": "asv", "matplotlib": "plots", "scipy": "scipy", "pyarrow": "parquet",
    "prometheus_client": "monitor", "kernel_tuner": "tune", "dask": "fleet", "distributed": "fleet",
    "dask_jobqueue": "fleet-slurm", "asyncssh": "fleet-ssh",
})  # fmt: skip

NOT_INSTALLED = re.compile(r"is not installed; pip install [^;]*\[")


@contextmanager
def extras_named(*, anywhere: bool = False) -> Generator[None]:
    """Raise an ExtraMissing, which names the extra, where a library of an extra cannot be imported."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in EXTRAS:
            raise
        raise ExtraMissing(without(name, anywhere=anywhere)) from error


def is_installed(module: str) -> bool:
    """Return whether the library can be found, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def without(module: str, *, anywhere: bool = False) -> str:
    """Return that the library is not installed, and how to get it."""
    return f"{module} is not installed; {pip_install(EXTRAS[module], anywhere=anywhere)}"


class _LateModule(ModuleType):
    """A module of an extra that is imported when something of it is first used."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        with extras_named(anywhere=True):  # a reference asks: the reason is kept in a record
            return getattr(import_module(self.__name__), name)


# SciPy's special functions for arrays of NumPy: most references use none of them, and need no SciPy.
host_special: ModuleType = _LateModule("scipy.special")
