"""Libraries whose calls kernels are raced against: how each is imported, named in a record and installed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from typing import Literal

from prism_bench.io.installation import pip_install

ArrayPackage = Literal["torch", "cupy", "jax"]


@dataclass(frozen=True)
class Library:
    """A library that a peer asks for by `name`.

    `module` is what is imported, `distribution` the package that installs it, `arrays` the package whose arrays its
    calls take, `extra` the extra of this package that installs it.
    """

    name: str
    module: str
    distribution: str
    arrays: ArrayPackage
    extra: str = "peers-strong"

    @property
    def is_strong(self) -> bool:
        """Whether it is one of the extra libraries, whose results must pass the kernel's own tolerance."""
        return self.extra == "peers-strong"

    def is_installed(self) -> bool:
        """Return whether its module can be found, without importing it."""
        try:
            return find_spec(self.module) is not None
        except (ImportError, ValueError):  # a parent package is missing or broken
            return False

    def installed_version(self) -> str | None:
        """Return the version of the installed package; None where its metadata is missing."""
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            names = distributions_of(self.module.partition(".")[0])
            return version(names[0]) if names else None

    @property
    def why_absent(self) -> str:
        """Why a peer of it has no time where it is not installed."""
        return f"{self.distribution} is not installed ({pip_install(self.extra, anywhere=True)})"


LIBRARIES: Mapping[str, Library] = {
    one.name: one
    for one in (
        Library("torch", "torch", "torch", "torch", extra="peers"),
        Library("cupy", "cupy", "cupy-cuda12x", "cupy", extra="cuda12"),
        Library("flash_attn", "flash_attn.cute", "flash-attn-4", "torch"),
        Library("flashinfer", "flashinfer", "flashinfer-python", "torch"),
        Library("liger", "liger_kernel.ops", "liger-kernel", "torch"),
        Library("nvmath", "nvmath", "nvmath-python", "torch"),
        # Its products raise Dynamo's recompile limit when they are imported: before a peer's state is remembered.
        Library("quack", "quack.gemm_interface", "quack-kernels", "torch"),
        Library("cub", "cuda.compute", "cuda-cccl", "cupy"),
        Library("cucim", "cucim", "cucim-cu13", "cupy"),
        Library("custatevec", "cuquantum", "custatevec-cu13", "cupy"),
        Library("cuvs", "cuvs", "cuvs-cu13", "cupy"),
        # Its arrays are CuPy's: a peer hands them over in each timed call, and its stream waits for ours there.
        Library("jax", "jax", "jax", "cupy"),
    )
}


def distributions_of(module: str) -> list[str]:
    """Return the names of the distributions that install a top-level module, without importing it."""
    return _distributions().get(module, [])


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()
