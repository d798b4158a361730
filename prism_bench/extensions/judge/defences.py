"""Defences of the judge by name. The museum of attacks (`tests/extensions/judge`) has an attack against each."""

from collections.abc import Collection, Mapping
from typing import Literal

Defence = Literal[
    "form of the submission", "bounds of the card", "jail", "limits of time", "form of machine code", "precision",
    "degenerate tasks", "relative tolerance", "stale memory", "untouched inputs", "new inputs", "changed element",
    "no repetition", "every launch", "bounds of buffers", "memory that nothing wrote", "races", "hidden sizes",
    "hidden seeds", "launch errors", "edges on a GPU", "new module", "physical limits", "number of samples",
    "work left behind", "state of the machine",
]  # fmt: skip
DEFENCES: Mapping[Defence, str] = {
    "form of the submission": "a submission is device code and a card; nothing of it runs as a program on the host",
    "bounds of the card": "expressions without code, of bounded size; a grid that a device can launch; own names alone",
    "jail": "sources are compiled, and run as host code, without network, files of the host or rights",
    "limits of time": "a compiler or a launch that never ends is ended with its process",
    "form of machine code": "the kernels of the card, in a cubin no others; no launches, allocations, output, asserts",
    "precision": "a census of machine instructions, where the task names the least precision",
    "degenerate tasks": "cases that a kernel without work passes count for nothing, or refuse the task",
    "relative tolerance": "the task's own tolerances against a float64 reference, on every element",
    "stale memory": "outputs hold poison, then random bytes, before a launch; never what another launch left",
    "untouched inputs": "inputs are compared after every launch",
    "new inputs": "launches of the same case have different inputs",
    "changed element": "a launch whose inputs are those of the last one but for one element, at a random place",
    "no repetition": "beyond 2^20 elements the device draws an input from a block, run by run, by a secret key",
    "every launch": "outputs of every launch are compared, those that are timed too",
    "bounds of buffers": "accesses out of bounds are found by the emulator or compute-sanitizer, writes by canaries",
    "memory that nothing wrote": "reads of memory that nothing wrote are found by the emulator or compute-sanitizer",
    "races": "launches in several orders of threads with every access watched for races, or under compute-sanitizer",
    "hidden sizes": "sizes are drawn for each judgement and named afterwards",
    "hidden seeds": "seeds are drawn for each judgement and named afterwards",
    "launch errors": "a launch that the device refuses is an error",
    "edges on a GPU": "edges and golden data are launched there too: a source knows that it is emulated",
    "new module": "the module is loaded anew before each block of samples, so that its variables are worth nothing",
    "physical limits": "times below the launch overhead, and rates above the machine's, are refused",
    "number of samples": "the judge decides how many samples are taken, whatever the first ones took",
    "work left behind": "the device is idle when a launch has ended, by its clock and after it",
    "state of the machine": "memory, clocks, errors and a canary kernel are as before, else the device is quarantined",
}
ON_A_GPU: frozenset[Defence] = frozenset(
    (
        "edges on a GPU", "no repetition", "new module", "physical limits", "number of samples", "work left behind",
        "state of the machine",
    )
)  # fmt: skip
# Checks of compute-sanitizer, by the defence that they are on a GPU, and for submissions that no emulator runs.
_WATCHED: Mapping[Defence, str] = {"memory that nothing wrote": "initcheck", "races": "racecheck"}


def in_force(watched: Collection[str] | None, *, is_emulated: bool) -> tuple[Defence, ...]:
    """Return the defences in force; `watched` are the complete checks of a sanitizer, None without a GPU."""
    by_emulator = is_emulated and watched is None
    absent = {name for name, check in _WATCHED.items() if not by_emulator and check not in (watched or ())}
    return tuple(name for name in DEFENCES if name not in absent and (watched is not None or name not in ON_A_GPU))
