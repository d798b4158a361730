"""Installation of this package: where pip got it from, and the extras that the default installation leaves out.

`prism-bench` on the package index is another project, with our import name. Its name is in no command that this program
prints or writes: `pip_install` and `InstallSource` make all of them. An extra comes from where the package came from.
"""

import ctypes
import json
import os
import re
import shlex
import subprocess
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any
from urllib.parse import urlsplit

import prism_bench
from prism_bench.errors import ExtraMissing

DISTRIBUTION = "prism-gpu-bench"
_TAKEN = "prism-bench"  # the distribution of another project, which installs the folder prism_bench, too


@dataclass(frozen=True)
class InstallSource:
    """Where this package comes from: a `url` of pip, a `folder` of this machine, or else the package index."""

    version: str
    url: str = ""
    folder: Path | None = None
    is_editable: bool = False

    @property
    def is_local(self) -> bool:
        """Whether other machines cannot install from it."""
        return self.folder is not None or urlsplit(self.url).scheme.endswith("file")

    def requirement(self, extra: str = "") -> str:
        """Return what a requirements file names: `prism-gpu-bench[asv] @ git+https://...@commit`."""
        name = f"{DISTRIBUTION}[{extra}]" if extra else DISTRIBUTION
        url = self.folder.as_uri() if self.folder else self.url
        return f"{name} @ {url}" if url else f"{name}=={self.version}"

    def pip_arguments(self, extra: str = "") -> list[str]:
        """Return the arguments of `pip install`; an editable folder stays editable."""
        if self.folder and self.is_editable:
            return ["-e", f"{self.folder}[{extra}]" if extra else str(self.folder)]
        return [self.requirement(extra)]

    def anywhere(self) -> "InstallSource":
        """Return the source that another machine can install from: the exact version for a local one."""
        return InstallSource(self.version) if self.is_local else self


@cache
def source() -> InstallSource:
    """Return where this installation came from, by the `direct_url.json` that pip keeps (PEP 610)."""
    version = prism_bench.__version__
    with suppress(metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        return source_of(version, json.loads(metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "{}"))
    return InstallSource(version)


def source_of(version: str, facts: Mapping[str, Any]) -> InstallSource:
    """Return the source that a `direct_url.json` describes; the version on the index where it is gone."""
    from urllib.request import url2pathname  # it imports the HTTP client, which few commands need

    url = str(facts.get("url", ""))
    local = Path(url2pathname(urlsplit(url).path)) if url.startswith("file:") else None
    if "vcs_info" in facts:
        below = f"#subdirectory={facts['subdirectory']}" if "subdirectory" in facts else ""
        return InstallSource(version, f"{facts['vcs_info']['vcs']}+{url}@{facts['vcs_info']['commit_id']}{below}")
    if not url or (local and not local.exists()):
        return InstallSource(version)
    if "dir_info" in facts and local:
        return InstallSource(version, folder=local, is_editable=bool(facts["dir_info"].get("editable")))
    digests: Mapping[str, str] = facts.get("archive_info", {}).get("hashes", {})
    digest = f"#sha256={digests['sha256']}" if "sha256" in digests else ""
    return InstallSource(version, f"{url}{digest}")


def pip_install(extra: str = "", *, anywhere: bool = False) -> str:
    """Return the command that installs this package with an extra from where it came from.

    `anywhere` gives the command for other machines, without a path of this machine, for texts in records.
    """
    here = source().anywhere() if anywhere else source()
    return shlex.join(["pip", "install", *here.pip_arguments(extra)])


def published_source() -> tuple[InstallSource, str | None]:
    """Return the source that a file for other machines names, and why it differs from this installation's source.

    A local checkout gives the commit at its remote `origin` where that has it, else the exact version.
    """
    here = source()
    if not here.is_local:
        return here, None
    place, address, pushed, commit = here.folder or here.url, "", "", ""
    if here.folder and (here.folder / ".git").exists():
        address = git_output(here.folder, "remote", "get-url", "origin")
        address = re.sub(r"^([\w.-]+@[\w.-]+):(?!/)", r"ssh://\1/", address)
        commit = git_output(here.folder, "rev-parse", "HEAD")
        pushed = git_output(here.folder, "branch", "--remotes", "--list", "origin/*", "--contains", "HEAD")
    if pushed and address.startswith(("https://", "ssh://")):
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2] if parts.scheme == "https" else parts.netloc  # no password in a file
        shared = replace(here.anywhere(), url=f"git+{parts._replace(netloc=host).geturl()}@{commit}")
    else:
        shared = here.anywhere()
    return shared, f"{place} is on this machine only: what was written installs {shared.requirement()}"


def strangers() -> list[str]:
    """Return the installed distributions that put files into our package's folder, or have its old name."""
    names = {name.lower().replace("_", "-") for name in metadata.packages_distributions().get("prism_bench", ())}
    with suppress(metadata.PackageNotFoundError):
        names.add(metadata.distribution(_TAKEN).name.lower().replace("_", "-"))
    return sorted(f"{name} {metadata.version(name)}" for name in names - {DISTRIBUTION})


def git_output(
    folder: Path,
    *arguments: str,
    lines: Iterable[str] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
    timeout: float = 30.0,
) -> str:
    """Return the output of a git command in the folder, which reads `lines`; an empty text where it fails.

    `variables` are added to those of the environment.
    """
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            input="".join(f"{line}\n" for line in lines),
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        return done.stdout.strip() if done.returncode == 0 else ""
    return ""


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


# Why no GPU can be used here. A missing driver, a missing device and a missing package have different cures.

NO_DRIVER = "this machine has no NVIDIA driver; install it (in a container: start it with --gpus all)"
NO_DEVICE = "the driver finds no GPU; compare nvidia-smi with CUDA_VISIBLE_DEVICES"
_CUDA_ERROR_NO_DEVICE = 100
WITHOUT_GPU = "references, the emulator, stored records and reports work without it"


def cuda_driver() -> ctypes.CDLL | None:
    """Return the driver's library; None where no driver is installed."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def why_no_gpu(package: str, extra: str) -> str:
    """Return the first cause: no driver, no device, or else the package, which could not be imported."""
    driver = cuda_driver()
    if driver is None:
        return f"{NO_DRIVER}; {WITHOUT_GPU}"
    count = ctypes.c_int()
    if driver.cuInit(0) == _CUDA_ERROR_NO_DEVICE or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return f"{NO_DEVICE}; {WITHOUT_GPU}"
    return f"{package} is not installed; {pip_install(extra)}; {WITHOUT_GPU}"


# SciPy's special functions for arrays of NumPy: most references use none of them, and need no SciPy.
host_special: ModuleType = _LateModule("scipy.special")
