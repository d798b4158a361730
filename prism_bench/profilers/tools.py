"""The profilers and compute-sanitizer as programs: failures, locations, runs, and compute-sanitizer's findings."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_bench.errors import ProfilerError

# Failures of profilers, recognised by their output, each with a sentence of cause and a sentence of cure.


@dataclass(frozen=True)
class Failure:
    """A class of failures: its name, the `pattern` in the tool's output, the cause, the cure, the exit code."""

    name: str
    pattern: str
    cause: str
    cure: str
    exit_code: int = 2


class ProfilerFailed(ProfilerError):
    """Failure of a profiler; `failure` is its class."""

    def __init__(self, tool: str, failure: Failure, output: str = "") -> None:
        quote = f" It printed: {output}" if output else ""
        super().__init__(f"{tool}: {failure.cause} {failure.cure}{quote}")
        self.tool, self.failure, self.exit_code = tool, failure, failure.exit_code


# The most specific first: a refused permission also leaves no kernels and an application that may fail.
FAILURES = (
    Failure("permission", r"ERR_NVGPUCTRPERM",
            "the driver gives performance counters to administrators only.",
            "Run as root, give the container --cap-add=SYS_ADMIN, or load the driver with "
            "NVreg_RestrictProfilingToAdminUsers=0; the tool 'cupti' needs no such permission."),
    Failure("library_not_loaded", r"LibraryNotLoaded",
            "the library that reads counters does not load.",
            "Some sandboxes (gVisor) close it, and an ncu older than the chip has none: use the tool 'cupti'."),
    Failure("driver_mismatch", r"driver is not compatible with Nsight|Failed to load Nsight Compute CUDA modules",
            "this ncu is newer than the driver.",
            "Use the ncu of the CUDA release that the driver came with."),
    Failure("counters_busy", r"driver resource was unavailable|Another profiler|another tool .*(profil|collect)",
            "another tool holds the counters.",
            "End the other ncu, or pause DCGM's profiling with dcgmi profile --pause."),
    Failure("device_not_supported", r"Device not supported",
            "it refuses this device, or the sandbox around it.",
            "Run it outside the sandbox, with the compute-sanitizer of the driver's CUDA release."),
    Failure("unknown_metric", r"Failed to find metric|\(!\) n/a",  # the second in an otherwise valid table
            "the profiler does not know a requested metric.",
            "prism_bench/profilers/metric_support.csv lists the metrics of each chip; scripts/metric_table writes it."),
    Failure("kernel_not_prepared", r"Failed to prepare kernel for profiling",
            "the profiler cannot run the kernel several times.",
            "Free device memory, since it saves what the kernel may write, or count one pass with --counters traffic."),
    Failure("application_failed",
            r"application returned an error code|application terminated before|target application returned",
            "the profiled program itself failed.",
            "Run it without the profiler first: 'prism-bench verify'."),
    Failure("no_kernels",
            r"No kernels were profiled|requires the --target-processes all|does not contain CUDA|No CUDA kernels",
            "nothing was profiled: no kernel ran between the marks, or in a child process that was not followed.",
            "Look whether the case launches anything, and run once without filters."),
    Failure("qdstrm", r"ConvertGpuTicksToSyncNs|Importer error|Importation (failed|error)",
            "nsys recorded, but could not turn its recording into a report.",
            "Convert the .qdstrm with QdstrmImporter of a complete installation, or use the tool 'cupti'."),
)  # fmt: skip

EMPTY = Failure(
    "empty_report",
    "",
    "the profiler ended well and left no result.",
    "Its log is next to the report; a report without rows is never taken for nothing launched.",
    3,
)
MISSING = Failure(
    "not_installed",
    "",
    "the tool is not on this machine.",
    "ncu, nsys and compute-sanitizer come with the CUDA toolkit; --tool cupti needs none of them.",
)
TIMED_OUT = Failure(
    "timed_out",
    "",
    "it took longer than its limit and was ended.",
    "Choose fewer cases or a longer --time-limit; clocks are never held, so nothing needs resetting.",
)
OTHER = Failure(
    "failed", "", "it failed in a way that is not known here.", "Its output is in the log next to the report."
)


def classify(text: str, status: int, *, produced: bool) -> Failure | None:
    """Return the failure that output and exit status show; None if the tool ended well and `produced` its result.

    Error texts next to a result are warnings: with a result and status 0 nothing failed.
    """
    if status == 0 and produced:
        return None
    for failure in FAILURES:
        if re.search(failure.pattern, text, re.IGNORECASE):
            return failure
    return EMPTY if status == 0 else OTHER


def last_words(text: str, lines: int = 2) -> str:
    """Return the last lines of a tool's output, its errors first."""
    texts = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in texts if "==ERROR==" in line or line.startswith("=========") and "rror" in line]
    return " | ".join((errors or texts)[-lines:])[:400]


# Programs: found, and run in the C locale with a time limit.

_VERSION = re.compile(r"(\d{4}\.\d+(?:\.\d+)*)")
# Folders of CUDA's installers; PATH comes first.
_FOLDERS = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute/*", "/opt/nvidia/nsight-systems/*/bin")
VARIABLES = {"LC_ALL": "C", "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT": "1"}
TOOLS = ("ncu", "nsys", "compute-sanitizer")


@dataclass(frozen=True)
class Tool:
    """A profiler on this machine: its name, its program, and the version that it prints, or None."""

    name: str
    program: str
    version: str | None


@dataclass(frozen=True)
class Ended:
    """End of a program: its exit status and its output."""

    status: int
    text: str


def find(name: str) -> Tool:
    """Return the tool; raise ProfilerFailed if it is not installed."""
    folders = [folder for pattern in _FOLDERS for folder in sorted(Path("/").glob(pattern[1:]), reverse=True)]
    program = shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, folders)))
    if program is None:
        raise ProfilerFailed(name, MISSING)
    return Tool(name, program, _version(program))


def _version(program: str | Path) -> str | None:
    try:
        ended = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, env=environment())
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = _VERSION.search(ended.stdout + ended.stderr)
    return version[1] if version else None


def environment() -> dict[str, str]:
    """Return this process's environment in the C locale, so that numbers have one form; ncu writes nothing to home."""
    return {**os.environ, **VARIABLES}


def run(
    command: Sequence[str], log: Path, seconds: float, watch: Callable[[], object] = lambda: None, **variables: str
) -> Ended:
    """Run the command with all output in `log`; call `watch` twice a second; raise ProfilerFailed at the limit.

    Whatever the command started is killed with it.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**environment(), **variables},
            start_new_session=True,
        )
        try:
            _wait(process, seconds, watch)
        except subprocess.TimeoutExpired:
            raise ProfilerFailed(Path(command[0]).name, TIMED_OUT) from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
    return Ended(process.returncode, log.read_text(errors="replace"))


def _wait(process: subprocess.Popen[bytes], seconds: float, watch: Callable[[], object]) -> None:
    left = seconds
    while left > 0:
        try:
            process.wait(timeout=min(0.5, left))
            watch()
            return
        except subprocess.TimeoutExpired:
            left -= 0.5
            watch()
    raise subprocess.TimeoutExpired(process.args, seconds)


# compute-sanitizer: its command line, and its output as findings by case.
#
# The tool shares one pipe with the program, which prints the case that it is in. Since the device is idle at both ends
# of a case, a finding belongs to the case in whose lines it is, unless that case has no such kernel. For a program that
# is not trusted, the tool writes into another file (`command_to_file`).

CHECKS = ("memcheck", "racecheck", "initcheck", "synccheck")
BEGIN, END, FAILED = "@@ begin ", "@@ end ", "@@ failed "  # printed by the program around a case
# Findings over the limit are dropped silently, and later kernels of the same process would seem clean.
_PRINTED = ("--print-limit", "1000000")
_FEW_PRINTED = ("--print-limit", "100", "--show-backtrace", "no")  # if the first finding is enough
# Errors of the CUDA API need no report: the program raises them.
_OPTIONS = {"memcheck": ("--padding", "256", "--report-api-errors", "no")}
# By default the tool waits 10 s for the program's first CUDA call, which then never returns: a busy host takes longer,
# and a program that is started ahead makes its first call when it is needed.
_OF_PROGRAM = ("--target-processes", "application-only", "--launch-timeout", "3600")
_LINE = re.compile(r"^========= ?(?P<text>.*)$")
_FINDING = re.compile(
    r"(Error: |Warning: )?(Invalid __|Uninitialized |Race reported|Potential (RAW|WAR|WAW) hazard|Barrier error|"
    r"Misaligned|Malloc/Free|Leaked|Stack overflow|Hardware (exception|stack))"
)
_REMARK = re.compile(r"(Internal |Fatal |Error|Warning)")  # of the tool about itself, if the line is no finding
_OTHER = re.compile(r"and (Read|Write) access at ")  # the other sides of a race
_PLACE = re.compile(r"\bat (?:0x[0-9a-f]+ in )?(?P<kernel>[^+]+?)(?:\+0x[0-9a-f]+)?(?: in (?P<source>[^ ]+:\d+))?$")
_SUMMARY = re.compile(r"(ERROR|RACECHECK) SUMMARY: (?P<count>\d{1,18})\b", re.ASCII)


@dataclass(frozen=True)
class SanitizerFinding:
    """Finding of a check: its case (None outside of cases), its kernel, and its place in the source."""

    check: str
    case: str | None
    kernel: str
    message: str
    source: str | None = None


@dataclass(frozen=True)
class Checked:
    """Result of one run of a check: its findings, the cases that it finished, and the number of errors it counted.

    `counted` is None if the run never reached its summary. `remarks` are errors and warnings of the tool about itself,
    after which it may have missed findings.
    """

    check: str
    findings: tuple[SanitizerFinding, ...]
    cases: tuple[str, ...]
    counted: int | None
    remarks: tuple[str, ...] = ()


def command(tool: Tool, check: str, program: Sequence[str]) -> list[str]:
    """Return the command that runs the program under the check."""
    return [tool.program, "--tool", check, *_PRINTED, *_OPTIONS.get(check, ()), *_OF_PROGRAM, *program]


def command_to_file(tool: Tool, check: str, log: Path) -> tuple[str, ...]:
    """Return the beginning of a command that runs a program under the check, with the tool's output only in `log`.

    Output of the program or a kernel cannot be mistaken for it. Few findings are written, without backtraces.
    """
    options = (*_FEW_PRINTED, *_OPTIONS.get(check, ()), *_OF_PROGRAM)
    return (tool.program, "--tool", check, "--log-file", str(log), *options)


def parse(text: str, check: str, entries: Mapping[str, Sequence[str]]) -> Checked:
    """Return the run's findings; `entries` are the names of the kernels that each case launches."""
    case, current, drafts, done, remarks, counted = None, None, [], [], [], None
    for line in text.splitlines():
        if line.startswith((BEGIN, END)):
            case = line.removeprefix(BEGIN) if line.startswith(BEGIN) else case
            done += [line.removeprefix(END)] if line.startswith(END) else []
            continue
        match = _LINE.match(line)
        message = match["text"].strip() if match else ""
        summary = _SUMMARY.search(message)
        counted = int(summary["count"]) if summary else counted
        if _FINDING.match(message):
            current = {"message": message, "others": [], "case": case}
            drafts.append(current)
        elif current and _OTHER.match(message):
            current["others"].append(message)
        elif current and "kernel" not in current and (place := _PLACE.search(message)):
            current |= {"kernel": place["kernel"].strip(), "source": _file(place["source"])}
        elif _REMARK.match(message):
            remarks.append(message)
    findings = tuple(_finding(check, draft, done, entries) for draft in drafts)
    return Checked(check, findings, tuple(done), counted, tuple(remarks))


def _file(source: str) -> str:
    """Return `softmax.cu:12` of a path that only this machine has."""
    return source and source.rsplit("/", 1)[-1]


def _finding(
    check: str, draft: Mapping[str, Any], done: Sequence[str], entries: Mapping[str, Sequence[str]]
) -> SanitizerFinding:
    """Return the finding of the case in whose lines it is, or of the last case that has such a kernel."""
    kernel = draft.get("kernel", "")
    place = _PLACE.search(draft["message"])
    kernel = kernel or (place["kernel"].strip() if place else "")
    source = draft.get("source") or (_file(place["source"]) if place else None)
    qualified = kernel.replace("(anonymous namespace)::", "").split("(")[0].split("<")[0].split()
    name = qualified[-1] if qualified else ""

    def has_kernel(case: str) -> bool:
        return any(entry.split("<")[0] == name for entry in entries.get(case, ()))

    case = draft["case"]
    if name and case is not None and not has_kernel(case):
        case = next((earlier for earlier in reversed(done) if has_kernel(earlier)), case)
    return SanitizerFinding(check, case, kernel, " ".join([draft["message"], *draft["others"]]), source)
