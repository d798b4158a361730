"""compute-sanitizer: its command line, and its output as findings by case.

It shares one pipe with the program. The program prints which case it is in; since the device
is idle at both ends of a case, a finding belongs to the case in whose lines it is, unless that case has no such
kernel. Where the program is not trusted, the tool writes into another file (`command_to_file`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_bench.profilers.tools import Tool

CHECKS = ("memcheck", "racecheck", "initcheck", "synccheck")
BEGIN, END, FAILED = "@@ begin ", "@@ end ", "@@ failed "  # what the program prints around a case
# What is over the limit is dropped without a word, and later kernels of the same process would seem clean.
_PRINTED = ("--print-limit", "1000000")
_FEW_PRINTED = ("--print-limit", "100", "--show-backtrace", "no")  # where the first finding is enough
# Errors of the CUDA API are the program's own affair: it raises them.
_OWN = {"memcheck": ("--padding", "256", "--report-api-errors", "no")}
# By itself the tool waits 10 s for the program's first CUDA call, which never returns then: a busy host takes longer,
# and a program that is started ahead calls when it is needed.
_OF_PROGRAM = ("--target-processes", "application-only", "--launch-timeout", "3600")
_LINE = re.compile(r"^========= ?(?P<words>.*)$")
_FINDING = re.compile(
    r"(Error: |Warning: )?(Invalid __|Uninitialized |Race reported|Potential (RAW|WAR|WAW) hazard|Barrier error|"
    r"Misaligned|Malloc/Free|Leaked|Stack overflow|Hardware (exception|stack))"
)
_REMARK = re.compile(r"(Internal |Fatal |Error|Warning)")  # of the tool about itself, where it is no finding
_OTHER = re.compile(r"and (Read|Write) access at ")  # the other sides of a race
_PLACE = re.compile(r"\bat (?:0x[0-9a-f]+ in )?(?P<kernel>[^+]+?)(?:\+0x[0-9a-f]+)?(?: in (?P<source>[^ ]+:\d+))?$")
_SUMMARY = re.compile(r"(ERROR|RACECHECK) SUMMARY: (?P<count>\d{1,18})\b", re.ASCII)


@dataclass(frozen=True)
class SanitizerFinding:
    """One thing that a check found: in which case (None where none ran), in which kernel, and where in its source."""

    check: str
    case: str | None
    kernel: str
    message: str
    source: str | None = None


@dataclass(frozen=True)
class Checked:
    """Result of one run of a check: its findings, which cases it finished, and how many errors it counted.

    `counted` is None if it never reached its summary. `remarks` are errors and warnings of the tool about itself: it
    may have overlooked something.
    """

    check: str
    findings: tuple[SanitizerFinding, ...]
    cases: tuple[str, ...]
    counted: int | None
    remarks: tuple[str, ...] = ()


def command(tool: Tool, check: str, program: Sequence[str]) -> list[str]:
    """Return the command that runs the program under the check."""
    return [tool.program, "--tool", check, *_PRINTED, *_OWN.get(check, ()), *_OF_PROGRAM, *program]


def command_to_file(tool: Tool, check: str, log: Path) -> tuple[str, ...]:
    """Return the beginning of a command that runs a program under the check, with the tool's own words in `log` alone.

    What the program or a kernel prints cannot be taken for them. Few findings are written, without backtraces.
    """
    own = (*_FEW_PRINTED, *_OWN.get(check, ()), *_OF_PROGRAM)
    return (tool.program, "--tool", check, "--log-file", str(log), *own)


def parse(text: str, check: str, entries: Mapping[str, Sequence[str]]) -> Checked:
    """Return the run's findings; `entries` are the names of the kernels that each case launches."""
    case, current, found, done, remarks, counted = None, None, [], [], [], None
    for line in text.splitlines():
        if line.startswith((BEGIN, END)):
            case = line.removeprefix(BEGIN) if line.startswith(BEGIN) else case
            done += [line.removeprefix(END)] if line.startswith(END) else []
            continue
        words = _LINE.match(line)
        said = words["words"].strip() if words else ""
        summary = _SUMMARY.search(said)
        counted = int(summary["count"]) if summary else counted
        if _FINDING.match(said):
            current = {"message": said, "others": [], "case": case}
            found.append(current)
        elif current and _OTHER.match(said):
            current["others"].append(said)
        elif current and "kernel" not in current and (place := _PLACE.search(said)):
            current |= {"kernel": place["kernel"].strip(), "source": _file(place["source"])}
        elif _REMARK.match(said):
            remarks.append(said)
    findings = tuple(_finding(check, one, done, entries) for one in found)
    return Checked(check, findings, tuple(done), counted, tuple(remarks))


def _file(source: str) -> str:
    """`softmax.cu:12` of a path that only this machine has."""
    return source and source.rsplit("/", 1)[-1]


def _finding(
    check: str, one: Mapping[str, Any], done: Sequence[str], entries: Mapping[str, Sequence[str]]
) -> SanitizerFinding:
    """Return the finding, in the case in whose lines it is, or in the last one that has such a kernel."""
    kernel = one.get("kernel", "")
    place = _PLACE.search(one["message"])
    kernel = kernel or (place["kernel"].strip() if place else "")
    source = one.get("source") or (_file(place["source"]) if place else None)
    words = kernel.replace("(anonymous namespace)::", "").split("(")[0].split("<")[0].split()
    name = words[-1] if words else ""
    has = lambda case: any(entry.split("<")[0] == name for entry in entries.get(case, ()))  # noqa: E731
    case = one["case"]
    if name and case is not None and not has(case):
        case = next((earlier for earlier in reversed(done) if has(earlier)), case)
    return SanitizerFinding(check, case, kernel, " ".join([one["message"], *one["others"]]), source)
