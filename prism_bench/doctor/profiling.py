"""Profilers: which are here, and whether the driver lets them count."""

import locale
import os
from collections.abc import Iterator
from pathlib import Path

from prism_bench.doctor.check import Check, broken, missing, note, works
from prism_bench.doctor.device import NODES
from prism_bench.profilers.failures import FAILURES, ProfilerFailed
from prism_bench.profilers.tools import TOOLS, find

PARAMETERS = Path("/proc/driver/nvidia/params")
STATUS = Path("/proc/self/status")
_CAP_SYS_ADMIN = 1 << 21


def checks() -> Iterator[Check]:
    """Every tool, then the permission that ncu needs, then the locale."""
    for name in TOOLS:
        yield _tool(name)
    if NODES.exists():
        yield _permission()
    yield _locale()


def _tool(name: str) -> Check:
    try:
        tool = find(name)
    except ProfilerFailed as error:
        return missing(name, error.failure.cause.rstrip("."), error.failure.cure.rstrip("."))
    if tool.version is None:
        return broken(name, tool.program, "it prints no version", "run it yourself: a library may be missing")
    return works(name, f"{tool.version}, {tool.program}")


def _permission() -> Check:
    restricted = _restricted()
    if restricted is None:
        return note("counters", "unknown", f"{PARAMETERS} does not say", "'prism-bench profile' will, when it is tried")
    if restricted and not _is_administrator():
        refused = next(failure for failure in FAILURES if failure.name == "permission")
        return broken("counters", "refused", refused.cause.rstrip("."), refused.cure.rstrip("."))
    return works("counters", "for administrators, and this process is one" if restricted else "open to all")


def _restricted() -> bool | None:
    try:
        lines = PARAMETERS.read_text().splitlines()
    except OSError:
        return None
    value = next((line.split(":")[1].strip() for line in lines if line.startswith("RmProfilingAdminOnly:")), None)
    return None if value is None else value != "0"


def _is_administrator() -> bool:
    """Whether this process may do what the driver keeps for administrators: a container's root often may not."""
    try:
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("CapEff:"))
    except (OSError, StopIteration):
        return os.geteuid() == 0
    return bool(int(line.split()[1], 16) & _CAP_SYS_ADMIN)


def _locale() -> Check:
    """Check the locale: ncu writes numbers in it; we run it in C, your own call may not."""
    point = locale.localeconv()["decimal_point"]
    chosen = os.environ.get("LC_ALL") or os.environ.get("LC_NUMERIC") or os.environ.get("LANG") or "C"
    if point != "." or not chosen.startswith(("C", "POSIX", "en")):
        return note(
            "locale", chosen, "ncu writes 1.234 for a thousand there", "LC_ALL=C before ncu, where its CSV is kept"
        )
    return works("locale", chosen)
