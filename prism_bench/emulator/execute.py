"""One launch in this process: pack the arguments, run, read the findings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import starmap

import numpy as np

from prism_bench.emulator.arguments import Arguments
from prism_bench.emulator.buffers import DeviceBuffer
from prism_bench.emulator.library import NO_OFFSET, BuiltSource, RawAccess, RawFinding
from prism_bench.emulator.locate import locate
from prism_bench.emulator.report import Access, LaunchFinding, LaunchReport
from prism_bench.emulator.request import LaunchRequest
from prism_bench.errors import SpecError

_reports_crashes = False


def report_crashes() -> None:
    """Write to standard error, from now on, where a kernel crashed, before the crash ends this process."""
    global _reports_crashes
    _reports_crashes = True


def execute(
    library: BuiltSource,
    request: LaunchRequest,
    arguments: Sequence[object],
    make_buffer: Callable[[np.ndarray], DeviceBuffer] = DeviceBuffer,
) -> LaunchReport:
    """Run the launch on NumPy arrays, DeviceBuffers and NumPy scalars; what the kernel wrote is copied back."""
    if request.entry not in library.signatures:
        raise SpecError(f"no kernel '{request.entry}' in this module; it has {', '.join(library.signatures)}")
    packed = Arguments(request.entry, library.signatures[request.entry], arguments, make_buffer)
    if _reports_crashes:
        library.report_crashes()
    raw = library.launch(request, packed.addresses, packed.regions)
    packed.copy_back()
    findings = (*_findings(library, raw), *starmap(_overrun, packed.overruns()))
    return LaunchReport(request.entry, findings, library.traffic())


def _overrun(argument: int, distance: int) -> LaunchFinding:
    where = f"{distance} byte(s) past the end" if distance > 0 else f"{-distance} byte(s) before the beginning"
    return LaunchFinding("out of bounds", f"write {where} of argument {argument}", argument=argument)


def _findings(library: BuiltSource, raw: list[RawFinding]) -> Iterator[LaunchFinding]:
    offsets = {access.code for finding in raw for access in finding.accesses[: finding.count] if access.code}
    # A return address points behind the call; one byte before it is inside.
    places = locate(library.path, {offset - 1 for offset in offsets})
    for finding in raw:
        accesses = tuple(_access(access, places) for access in finding.accesses[: finding.count])
        argument = finding.argument if finding.argument >= 0 else None
        offset = None if finding.offset == NO_OFFSET else finding.offset
        yield LaunchFinding(finding.kind.decode(), finding.message.decode(), accesses, argument, offset)


def _access(raw: RawAccess, places: Mapping[int, tuple[str, int]]) -> Access:
    file, line = (raw.file.decode(), raw.line) if raw.file else places.get(raw.code - 1, ("", 0))
    return Access(file, line, tuple(raw.block), tuple(raw.thread), bool(raw.is_write))
