"""Environment of the machine code: where it differs, identical code may rightly take another time."""

from prism_bench.run_record import RunRecord

# Software between machine code and its time; NumPy and compilers do not once the code is the same.
SOFTWARE = ("driver", "runtime", "cuda", "cupy", "nvrtc")


def software_changes(a: RunRecord, b: RunRecord) -> str | None:
    """Return the versions of driver and toolkit that differ, in words; None where none does."""
    names = [name for name in dict.fromkeys([*a.software, *b.software]) if name.startswith(SOFTWARE)]
    pairs = [(name, a.software.get(name, "none"), b.software.get(name, "none")) for name in names]
    return ", ".join(f"{name} {one} -> {other}" for name, one, other in pairs if one != other) or None


def is_other_unit(a: RunRecord, b: RunRecord, kernel: str) -> bool:
    """Return whether two devices measured the kernel; one that a record does not name is no other one."""
    units = a.unit_of(kernel), b.unit_of(kernel)
    return all(units) and units[0] != units[1]
