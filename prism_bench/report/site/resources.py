"""What each kernel's entries take on each architecture, from the stored table of compiled resources."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from prism_bench.report.site.places import Places
from prism_bench.studies.compile_table import read_table


def resources(places: Places) -> dict[str, dict[str, Any]]:
    """Return by kernel its `architectures`, and `entries` with what each takes on them, by architecture.

    Empty where there is no table; a ResultsError where it cannot be read.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in read_table(places.resources):
        facts = {name: value for name, value in asdict(row).items() if name not in ("kernel", "entry", "architecture")}
        found.setdefault(row.kernel, {}).setdefault(row.entry, {})[row.architecture] = facts
    return {kernel: {"architectures": _architectures(entries), "entries": entries} for kernel, entries in found.items()}


def _architectures(entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return sorted({architecture for by in entries.values() for architecture in by}, key=int)
