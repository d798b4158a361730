"""Lines of a kernel's source for offsets into its built library."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from prism_bench.emulator.compiler import INCLUDE, RUNTIME


def locate(library: Path, offsets: set[int]) -> dict[int, tuple[str, int]]:
    """Return file and line of each code offset, without the emulator's inlined frames; unknown ones are left out."""
    ordered = sorted(offsets)
    tool = shutil.which("addr2line") if ordered else None
    if tool is None:
        return {}
    command = [tool, "-a", "-i", "-e", str(library), *map(hex, ordered)]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return dict(_places(lines))


def _places(lines: list[str]) -> Iterator[tuple[int, tuple[str, int]]]:
    """Yield each offset with its place; each address line is followed by its frames, innermost first."""
    address, found = 0, False
    for line in lines:
        if line.startswith("0x"):
            address, found = int(line, 16), False
            continue
        file, _, number = line.rpartition(":")
        number = number.split(" ")[0]
        if found or not number.isdigit() or number == "0" or is_own(file):
            continue
        found = True
        yield address, (file, int(number))


def is_own(file: str) -> bool:
    """Return whether a file is the emulator's, and not the kernel author's."""
    return file.startswith((str(INCLUDE), str(RUNTIME))) or file == "launch table"
