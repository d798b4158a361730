"""Form of machine code: what a cubin may hold to be launched on a task, whoever made it."""

from collections.abc import Iterator, Sequence

from prism_bench.compilation.readable import why_unreadable
from prism_bench.compilation.symbols import entry_symbols, undefined_symbols
from prism_bench.extensions.judge.submission import LARGEST_CUBIN
from prism_bench.extensions.judge.verdict import Objection
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
        yield Objection("form", f"the machine code has no kernel {_named(missing[:1])}; it has {_named(entries)}")
    others = sorted(set(entries) - set(launched))
    if others and not compiled_here:
        yield Objection("form", f"the machine code has kernels that the card does not launch: {_named(others)}")
    refused = [one for one in outside if one.partition("@")[0] in _REFUSED]
    for name in (refused or list(outside))[:MOST_NAMED]:
        what = _REFUSED.get(name.partition("@")[0], "calls a function that the machine code does not have")
        yield Objection("form", f"it {what} ({_named([name])})")


def _named(names: Sequence[str]) -> str:
    shown = [one if len(one) <= LONGEST_NAME else f"{one[:LONGEST_NAME]}..." for one in names[:MOST_NAMED]]
    more = f" and {count_text(len(names) - MOST_NAMED, 'more kernel')}" if len(names) > MOST_NAMED else ""
    return (", ".join(shown) or "none") + more
