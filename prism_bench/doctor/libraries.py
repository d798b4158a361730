"""Libraries other than CUDA: peers to compare with, asv, and what single commands need."""

from collections.abc import Iterator
from importlib.util import find_spec

from prism_bench.doctor.check import Check, broken, missing, note, works
from prism_bench.doctor.cuda import installed
from prism_bench.io.installation import pip_install
from prism_bench.spec.peer import LIBRARIES, Library

# Import name: package, what it is for, and the extra that installs it.
_WANTED = {
    "torch": ("torch", "the library peers that kernels are compared with", "peers"),
    "scipy": ("scipy", "references that call it, evaluated on the CPU", "scipy"),
    "matplotlib": ("matplotlib", "pictures of records and of fusion", "plots"),
    "asv": ("asv", "histories with 'asv run'", "asv"),
    "prometheus_client": ("prometheus-client", "'prism-bench exporter'", "monitor"),
    "cupti": ("cupti-python", "launches counted and timed without ncu", "cupti"),
    "ncu_report": ("ncu-report", "ncu reports read without ncu", "ncu"),
}


def checks() -> Iterator[Check]:
    """One check per package; none is imported, which could take seconds."""
    for module, (package, purpose, extra) in _WANTED.items():
        if find_spec(module) is None:
            yield missing(package, f"not installed; it is for {purpose}", pip_install(extra))
            continue
        version = (installed(package) or [package])[0].rpartition(" ")[2]
        if version.endswith("+cpu"):
            yield broken(package, version, "a build without CUDA: its peers cannot run", "install a CUDA build of it")
        else:
            yield works(package, version)
    yield from (_strong(library) for library in LIBRARIES.values() if library.is_strong)


def _strong(library: Library) -> Check:
    """Return a check of a library that only some peers ask for: a note where it is absent."""
    if library.is_installed():
        return works(library.distribution, library.installed_version() or "version unknown")
    cause = "not installed; peers that call it have no time"
    return note(library.distribution, "not here", cause, pip_install(library.extra))
