"""Form of machine code: what a cubin may hold to be launched on a task, whoever made it, and in which precision."""

from collections.abc import Iterator, Mapping, Sequence

from prism_bench.compilation.symbols import entry_symbols, undefined_symbols
from prism_bench.extensions.judge.precision_census import below
from prism_bench.extensions.judge.readable import why_unreadable
from prism_bench.extensions.judge.submission import LARGEST_CUBIN
from prism_bench.extensions.judge.verdict import Objection
from prism_bench.spec.kernel import ArithmeticPrecision
from prism_bench.units import count_text

# Functions of the device runtime: work that outlives the launch, memory that does, output, and its own way to fail.
_REFUSED = {
    "cudaLaunchDevice": "launches kernels itself", "cudaLaunchDeviceV2": "launches kernels itself",
    "cudaGetParameterBuffer": "launches kernels itself", "cudaGetParameterBufferV2": "launches kernels itself",
    "__cudaCDP2LaunchDevice": "launches kernels itself", "__cudaCDP2LaunchDeviceV2": "launches kernels itself",
    "__cuda_syscall_cnpv2LaunchDevice": "launches kernels itself",
    "__cuda_syscall_cnpv2LaunchDeviceV2": "launches kernels itself",
    "malloc": "allocates memory that outlives the launch", "free": "allocates memory that outlives the launch",
    "vprintf": "prints from the device", "__assertfail": "ends the context by an assertion",
}  # fmt: skip
MOST_NAMED, LONGEST_NAME = 3, 120  # names are the sender's: as many and as long as that likes


def form_objections(cubin: bytes, launched: Sequence[str], *, compiled_here: bool = False) -> Iterator[Objection]:
    """Yield what is wrong with a cubin of which the symbols `launched` are launched.

    One that was `compiled_here` may have other kernels: a source often holds several forms, and none that the card
    leaves out can run. Machine code that was sent may not: nobody has seen a source of it.
    """
    if len(cubin) > LARGEST_CUBIN:
        yield Objection("size", f"the machine code has {len(cubin):,} bytes; at most {LARGEST_CUBIN:,} are taken")
        return
    unreadable = why_unreadable(cubin)
    if unreadable:
        yield Objection("form", f"the machine code is no ELF file that can be read: {unreadable[:LONGEST_NAME]}")
        return
    outside, entries = undefined_symbols(cubin), entry_symbols(cubin)
    if outside is None:
        yield Objection("form", "the machine code is no ELF file for a GPU")
        return
    missing = sorted(set(launched) - set(entries))
    if missing:
        yield Objection("form", f"the machine code has no kernel {named(missing[:1])}; it has {named(entries)}")
    odd = [one for one in entries if not one.isprintable() or " " in one]
    if odd:  # a listing of instructions is read by lines and words
        yield Objection("form", f"the machine code has kernels of names that no compiler gives: {named(odd)}")
    others = sorted(set(entries) - set(launched))
    if others and not compiled_here:
        yield Objection("form", f"the machine code has kernels that the card does not launch: {named(others)}")
    refused = [one for one in outside if one.partition("@")[0] in _REFUSED]
    for name in (refused or list(outside))[:MOST_NAMED]:
        what = _REFUSED.get(name.partition("@")[0], "calls a function that the machine code does not have")
        yield Objection("form", f"it {what} ({named([name])})")


def precision_objections(census: Mapping[str, int] | None, least: ArithmeticPrecision) -> Iterator[Objection]:
    """Yield what is below the least precision of a task in a census; None is one that could not be taken."""
    if census is None:
        yield Objection("precision", f"nothing lists its instructions; the task asks for {least}")
        return
    for low in below(census, least):
        yield Objection("precision", f"{census[low]} instructions work in {low}; the task asks for {least}")


def named(names: Sequence[str], others: str = "more kernel") -> str:
    """Return some of the names, which are the sender's, and how many `others` there are."""
    shown = [one if len(one) <= LONGEST_NAME else f"{one[:LONGEST_NAME]}..." for one in names[:MOST_NAMED]]
    more = f" and {count_text(len(names) - MOST_NAMED, others)}" if len(names) > MOST_NAMED else ""
    return (", ".join(shown) or "none") + more
