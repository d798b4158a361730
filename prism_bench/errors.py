"""Every error of the program, as one tree.

    PrismBenchError
        UsageError           the caller: an unknown kernel, label or option
        SpecError            the kernel author: the spec contradicts itself or its source
        CompilationFailed    the kernel author: the compiler's words, with file and line
        VerificationFailed   the kernel author: the output differs from the reference
        BackendUnavailable   the machine: what is missing, and what works without it
        MeasurementInvalid   the machine: below the floor, above the ceiling, throttled throughout
        ProfilerError        the machine: why a profiler could not do its work, and the cure
        ResultsError         whoever keeps the results: a record that cannot be read
        QueueFull            the caller: more items asked for than the persistent executor has room for
        ItemFailed           the item: it gave an error, never answered, or was lost with the process that served it

A message says where, what, and what would have been right.
"""

from difflib import get_close_matches


class PrismBenchError(Exception):
    """Base of all errors that the program raises on purpose; `exit_code` is what a command ends with."""

    exit_code = 2


class UsageError(PrismBenchError):
    """The caller asked for something that is not there."""


class SpecError(PrismBenchError):
    """A kernel's spec contradicts itself or its source."""

    exit_code = 1


class CompilationFailed(PrismBenchError):
    """The compiler refused a kernel's source; the message holds its words, with file and line."""

    exit_code = 1


class VerificationFailed(PrismBenchError):
    """A kernel's output differs from its reference."""

    exit_code = 1


class BackendUnavailable(PrismBenchError):
    """A backend cannot be opened here; the message says what is missing and what works without it."""


class MeasurementInvalid(PrismBenchError):
    """What was measured cannot be trusted."""

    exit_code = 3


class ProfilerError(PrismBenchError):
    """A profiler could not do its work; the message holds the cause and the cure."""


class ResultsError(PrismBenchError):
    """A run record cannot be read or written."""


class QueueFull(PrismBenchError):
    """The persistent executor's queue has no slot left for one more item, and none became free in time."""


class ItemFailed(PrismBenchError):
    """An item of the persistent executor has no result; the message says which, and what became of it."""


def unknown(kind: str, name: str, known) -> UsageError:
    """The error for a name that is not in `known`, with the nearest names that are."""
    near = get_close_matches(name, list(known), n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(sorted(known)[:20])}"
    return UsageError(f"unknown {kind} '{name}'; {hint}")
