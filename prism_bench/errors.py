"""Every error of the program, as one tree.

    PrismBenchError
        UsageError           the caller: an unknown kernel, label or option
        SpecError            the kernel author: the spec contradicts itself or its source
        CompilationFailed    the kernel author: the compiler's words, with file and line
        VerificationFailed   the kernel author: the output differs from the reference
        BackendUnavailable   the machine: what is missing, and what works without it
            ExtraMissing     the installation: a library of an extra, with the command that installs it
        CacheUnavailable     the machine: nothing can be kept where compiled kernels are kept
        MeasurementInvalid   the machine: below the launch overhead, beyond what the device can do, throttled
        ProfilerError        the machine: why a profiler could not do its work, and the cure
        ResultsError         the keeper of the results: a record that cannot be read
        ForgeError           the job: GitHub or GitLab took no comment, and what it lacks
        HistoryMoved         two machines at once: the kept history changed since it was read
        QueueFull            the caller: more items than the queue of the persistent executor holds
        ItemFailed           the item: it gave an error, never answered, or was lost with the process that served it

A message names the place, what is wrong, and what would be right.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class PrismBenchError(Exception):
    """Base of all errors that the program raises on purpose; `exit_code` is what a command ends with.

    Each one's docstring has a paragraph `Cause:` and a paragraph `Cure:`, which the troubleshooting page shows.
    """

    exit_code = 2

    def __str__(self) -> str:
        return _with_notes(super().__str__(), self)


class UsageError(PrismBenchError):
    """The caller asked for something that is not there.

    Cause: a kernel, case, label, option or file was named that does not exist, or a value is out of its range.
    Cure: take one of the names that the message offers; `prism-bench list` has the kernels, `--help` the options.
    """


class SpecError(PrismBenchError):
    """A kernel's spec contradicts itself or its source.

    Cause: a shape names no axis, a rule is broken at a workload, a function asks for a name that nobody offers, or
    one of the two files is missing.
    Cure: correct the line that the message names; the other kernels of the catalogue go on working meanwhile.
    """

    exit_code = 1


class CompilationFailed(PrismBenchError):
    """The compiler refused a kernel's source; the message holds its words, with file and line.

    Cause: the source is not C++17 as NVRTC takes it (no standard library, no host code), or uses what the emulator
    has not, such as inline PTX without a branch for CPU_CUDA.
    Cure: correct the line; `prism-bench compile --filter NAME` asks the compiler again, without a GPU.
    """

    exit_code = 1


class VerificationFailed(PrismBenchError):
    """A kernel's output differs from its reference.

    Cause: an index beyond the ragged end, a missing barrier, an element that is never written, a sum in too low a
    precision; or the reference is wrong.
    Cure: `prism-bench verify --filter NAME --backend emulator` runs the source in three thread orders and watches
    every access. A tolerance is never loosened to pass.
    """

    exit_code = 1


class BackendUnavailable(PrismBenchError):
    """A backend cannot be opened here; the message names what is missing and what works without it.

    Cause: no GPU, no driver, a package that is not installed, or no C++ compiler for the emulator.
    Cure: `prism-bench doctor` names what is missing and how to get it; `--backend numpy_reference` needs nothing.
    """


class ExtraMissing(BackendUnavailable):
    """A library is not installed that only some commands or kernels need; the message has its extra.

    Cause: the default installation is light: SciPy, Matplotlib, asv and others come with extras.
    Cure: the `pip install` of the message, or the same with the extra `all` for all that needs no GPU.
    """


class CacheUnavailable(PrismBenchError):
    """Compiled kernels cannot be kept; no kernel is to blame for that.

    Cause: the folder of PRISM_BENCH_CACHE (`~/.cache/prism_bench` without it) cannot be made or written, or its disk
    is full.
    Cure: set PRISM_BENCH_CACHE to a folder that can be written and has free space; `prism-bench doctor` tests it.
    """


class MeasurementInvalid(PrismBenchError):
    """What was measured cannot be trusted.

    Cause: a time below the launch overhead or a bandwidth beyond the memory bus, a clock throttled throughout, another
    process that worked on the same GPU, a call that waits for the device or works on another stream.
    Cure: measure again on a quiet machine; where it comes back, correct the bytes of the spec, or let the callable
    enqueue its work on the current stream and return.
    """

    exit_code = 3


class ProfilerError(PrismBenchError):
    """A profiler could not do its work; the message holds the cause and the cure.

    Cause: counters are closed to users, the tool does not fit driver or chip, or another tool holds the counters.
    Cure: see the message; `--tool cupti` counts launches and gaps without any permission.
    """


class ResultsError(PrismBenchError):
    """A run record cannot be read or written.

    Cause: a file that is missing, cut short, of a newer version or of another tool; or a disk that takes no more.
    Cure: name a file below `reports/runs`, upgrade prism-bench for a newer one, measure again for a damaged one.
    """


class ForgeError(PrismBenchError):
    """GitHub or GitLab took no comment; the message holds the cause and the cure.

    Cause: no token, a token without the right to comment, as in the job of a fork, no pull request in the job's event,
    or a rate limit.
    Cure: see the message; the comment's text is printed all the same, and `prism-bench comment FILE` prints it again.
    """


class HistoryMoved(PrismBenchError):
    """Another machine changed the history since it was read.

    Cause: two machines keep their results at the same time, again and again.
    Cure: keep once more; nothing was lost, and nothing was written.
    """


class QueueFull(PrismBenchError):
    """The persistent executor's queue has no slot left for one more item, and none became free in time.

    Cause: items are submitted faster than the device serves them.
    Cure: wait for results before you submit more, or open the executor with more `slots`.
    """


class ItemFailed(PrismBenchError):
    """An item of the persistent executor has no result; the message names it and what happened to it.

    Cause: the kernel reported an error, did not answer in time, or its process was ended while the item was under way.
    Cure: `executor.incidents` lists them; submit the item again, it may have happened in part.
    """


def kinds(base: type[PrismBenchError] = PrismBenchError) -> list[type[PrismBenchError]]:
    """Return the errors of this module below `base`, each followed by those below it."""
    below = [kind for kind in base.__subclasses__() if kind.__module__ == __name__]
    return [error for kind in below for error in (kind, *kinds(kind))]


def described(error: BaseException) -> str:
    """Return the error's type, message and notes in one text: `ValueError: too short (softmax.py line 12)`."""
    if isinstance(error, PrismBenchError):
        return str(error)
    return _with_notes(f"{type(error).__name__}: {error}", error)


def _with_notes(text: str, error: BaseException) -> str:
    notes = getattr(error, "__notes__", ())
    return f"{text} ({'; '.join(notes)})" if notes else text


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Return the error for a name that is not in `known`, with the nearest names that are."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.4)
    few = ", ".join(names[:20])
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {few}" if few else "there is none at all"
    return UsageError(f"unknown {kind} '{name}'; {hint}")
