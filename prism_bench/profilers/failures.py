"""What goes wrong with profilers: every failure recognised by its words, with one sentence of cause and one of cure."""

import re
from dataclasses import dataclass

from prism_bench.errors import ProfilerError


@dataclass(frozen=True)
class Failure:
    """A class of failures: its name, the `pattern` in what the tool printed, the cause, the cure, the exit code."""

    name: str
    pattern: str
    cause: str
    cure: str
    exit_code: int = 2


class ProfilerFailed(ProfilerError):
    """`failure` is the class of failure."""

    def __init__(self, tool: str, failure: Failure, words: str = "") -> None:
        said = f" It printed: {words}" if words else ""
        super().__init__(f"{tool}: {failure.cause} {failure.cure}{said}")
        self.tool, self.failure, self.exit_code = tool, failure, failure.exit_code


# The most telling first: a refused permission also leaves no kernels and an application that may fail.
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
    Failure("unknown_metric", r"Failed to find metric|\(!\) n/a",  # the second in a table that is else well
            "the profiler does not know a requested metric.",
            "prism_bench/profilers/metric_support.csv lists the metrics of each chip; scripts/metric_table writes it."),
    Failure("kernel_not_prepared", r"Failed to prepare kernel for profiling",
            "the profiler cannot run the kernel several times.",
            "Free device memory, since it saves what the kernel may write, or count one pass with --set traffic."),
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
    "empty_report", "", "the profiler ended well and left no result.",
    "Its log is next to the report; a report without rows is never taken for nothing launched.", 3,
)  # fmt: skip
MISSING = Failure(
    "not_installed", "", "the tool is not on this machine.",
    "ncu, nsys and compute-sanitizer come with the CUDA toolkit; --tool cupti needs none of them.",
)  # fmt: skip
TIMED_OUT = Failure(
    "timed_out", "", "it took longer than its limit and was ended.",
    "Choose fewer cases or a longer --time-limit; clocks are never held, so nothing needs resetting.",
)  # fmt: skip
OTHER = Failure(
    "failed", "", "it failed in a way that is not known here.", "Its output is in the log next to the report.",
)  # fmt: skip


def classify(text: str, status: int, *, produced: bool) -> Failure | None:
    """Return the failure that output and exit status show; None if the tool ended well and `produced` its result.

    Words that come with a result are warnings: with a result and status 0 nothing failed.
    """
    if status == 0 and produced:
        return None
    for failure in FAILURES:
        if re.search(failure.pattern, text, re.IGNORECASE):
            return failure
    return EMPTY if status == 0 else OTHER


def last_words(text: str, lines: int = 2) -> str:
    """Return the last lines of a tool's output, its errors first."""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in said if "==ERROR==" in line or line.startswith("=========") and "rror" in line]
    return " | ".join((errors or said)[-lines:])[:400]
