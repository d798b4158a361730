"""What each kernel's entries take on each architecture, from the stored table of compiled resources."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict

from prism_bench.report.site.places import Places
from prism_bench.workflows.compile_table import read_table


class Taken(NamedTuple):
    """What an entry takes on one architecture: stack and spills in bytes of a thread, shared memory of a block."""

    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    barriers: int


class KernelResources(TypedDict):
    """Compiled resources of a kernel: of each entry, by architecture, the numbers that `facts` names."""

    architectures: list[str]
    facts: tuple[str, ...]
    entries: dict[str, dict[str, Taken]]


def resources(places: Places) -> dict[str, KernelResources]:
    """Return the resources of each kernel's entries, by kernel.

    Empty where there is no table; a ResultsError where it cannot be read.
    """
    found: dict[str, dict[str, dict[str, Taken]]] = {}
    for row in read_table(places.resources):
        taken = Taken(*(getattr(row, name) for name in Taken._fields))
        found.setdefault(row.kernel, {}).setdefault(row.entry, {})[row.architecture] = taken
    return {kernel: {"architectures": _architectures(entries), "facts": Taken._fields, "entries": entries}
            for kernel, entries in found.items()}  # fmt: skip


def _architectures(entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return sorted({architecture for by in entries.values() for architecture in by}, key=int)
