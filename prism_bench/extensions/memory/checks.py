"""Checks of the doctor: the allocators that can be compared here."""

from collections.abc import Iterator
from importlib.util import find_spec

from prism_bench.doctor import Check
from prism_bench.doctor.checks import missing, works
from prism_bench.io.installation import pip_install


def checks() -> Iterator[Check]:
    """Yield one check for each library that brings an allocator; none is imported, which could take seconds."""
    for module, cure in (("cupy", f"{pip_install('cuda13')}, or cuda12"), ("rmm", "install rmm-cu13")):
        if find_spec(module) is None:
            yield missing(f"allocators of {module}", "not installed; 'prism-bench memory' leaves them out", cure)
        else:
            yield works(f"allocators of {module}", "installed")
