"""What a child process wrote to standard error, sanitizers' reports and crashes, as findings."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

from prism_bench.emulator.library import EMULATED
from prism_bench.emulator.locate import is_own, locate
from prism_bench.emulator.report import Access, LaunchFinding

_ADDRESS = re.compile(r"ERROR: AddressSanitizer: (?P<what>.+)")
_UNDEFINED = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):\d+: runtime error: (?P<what>.+)$", re.MULTILINE)
_UNDEFINED_KINDS = (
    ("misaligned", "misaligned"),
    ("out of bounds", "out of bounds"),
    ("insufficient space", "out of bounds"),
)
_FRAME = re.compile(r"^\s+#\d+ 0x[0-9a-f]+ .*?(?P<file>/?[^\s():]+):(?P<line>\d+)(?::\d+)?\s*$", re.MULTILINE)
_SIZE = re.compile(r"^(?P<verb>READ|WRITE) of size (?P<bytes>\d+)", re.MULTILINE)
_PLACE = re.compile(r"is located (?P<where>.+?)(?: \[0x.*| \(0x.*)?$", re.MULTILINE)
_CRASH = re.compile(r"^crashed-at (\d+) 0x([0-9a-f]+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)$", re.MULTILINE)

_EMULATED = re.compile(rf"^{EMULATED}(.+)$", re.MULTILINE)


def read_last_words(library: Path, text: str, died: bool, status: int | None) -> tuple[LaunchFinding, ...]:
    """Return the findings in `text`; a death that the text does not explain is one too."""
    found = [*_undefined(text), *_address(text), *_crash(library, text)]
    if died and not any(finding.kind != "undefined behaviour" for finding in found):
        found.append(LaunchFinding("crash", f"the kernel's process ended ({_ending(status)}): {text.strip()[-300:]}"))
    return tuple(found)


def crash_in(text: str) -> LaunchFinding | None:
    """Return the crash that a process reported about one of its libraries, with its line; None without one."""
    report = _CRASH.search(text)
    libraries = _EMULATED.findall(text[: report.start()]) if report else []
    return next(_crash(Path(libraries[-1]), text), None) if libraries else None


def _address(text: str) -> Iterator[LaunchFinding]:
    report = _ADDRESS.search(text)
    if not report:
        return
    rest = text[report.start() :]
    what, size, place = report["what"].split(" on ")[0], _SIZE.search(rest), _PLACE.search(rest)
    message = what + (f", {size['verb'].lower()} of {size['bytes']} bytes" if size else "")
    message += f", {place['where']}" if place else ""
    kind = "crash" if what.startswith(("SEGV", "stack-overflow", "FPE")) else "out of bounds"
    yield LaunchFinding(kind, message, _first_frame(rest, bool(size and size["verb"] == "WRITE")))


def _undefined(text: str) -> Iterator[LaunchFinding]:
    for report in _UNDEFINED.finditer(text):
        what = report["what"]
        kind = next((kind for words, kind in _UNDEFINED_KINDS if words in what), "undefined behaviour")
        if is_own(report["file"]):
            accesses = _first_frame(text[report.end() :])
        else:
            accesses = (Access(report["file"], int(report["line"])),)
        yield LaunchFinding(kind, what, accesses)


def _first_frame(text: str, is_write: bool = False) -> tuple[Access, ...]:
    """Return the innermost frame in a file of the kernel author's, or nothing."""
    for frame in _FRAME.finditer(text):
        if not is_own(frame["file"]):
            return (Access(frame["file"], int(frame["line"]), is_write=is_write),)
    return ()


def _crash(library: Path, text: str) -> Iterator[LaunchFinding]:
    report = _CRASH.search(text)
    if not report:
        return
    number, code = int(report[1]), int(report[2], 16)
    bx, by, bz, tx, ty, tz = map(int, report.groups()[2:])
    file, line = locate(library, {code}).get(code, ("", 0))
    yield LaunchFinding(
        "crash",
        f"the kernel crashed ({signal.Signals(number).name})",
        (Access(file, line, (bx, by, bz), (tx, ty, tz)),),
    )


def _ending(status: int | None) -> str:
    if status is None:
        return "how is not known"
    return signal.Signals(-status).name if status < 0 else f"exit status {status}"
