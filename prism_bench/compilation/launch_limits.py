"""Launches that a device refuses: what they exceed of its limits, or of what their machine code was compiled for."""

from dataclasses import dataclass
from math import prod

from prism_bench.compilation.cubin import ElfEntry, Resources, sizes_text
from prism_bench.errors import SpecError
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import CUDA
from prism_bench.spec.launch import (
    BLOCK_REGISTERS,
    PORTABLE_CLUSTER,
    SHARED_KB,
    Launch,
    beyond_devices,
    beyond_residence,
    most_resident,
    most_warps,
)
from prism_bench.units import count_text


@dataclass(frozen=True)
class EntryCode:
    """What the machine code of an entry allows its launches: registers, static shared memory, extents.

    `is_described` is whether `elf` is of the machine code: else its parameters are unknown.
    """

    resources: Resources
    elf: ElfEntry
    is_described: bool = False


def case_refusal(case: Case, launch: Launch, code: EntryCode | None, capability: int) -> str | None:
    """Return why a launch of a case fails: what it passes, or for what `refusal` names; None where it launches."""
    for tensor in launch.maps:
        try:
            tensor.of(case.sizes.shape(tensor.name), case.spec.array(tensor.name).storage.itemsize)
        except SpecError as error:
            return str(error)
    if code and code.is_described and case.spec.language == CUDA and not case.spec.cards:
        passed, taken = case.spec.passed_bytes(launch), tuple(size for _, size in code.elf.parameters)
        if passed != taken:
            return sizes_text(passed, taken)
    return refusal(launch, code, capability)


def refusal(launch: Launch, code: EntryCode | None, capability: int) -> str | None:
    """Return why a device of a compute capability refuses a launch, and what it would take; None where it launches.

    Without `code` only what holds for every kernel is checked. A launch that leaves its block to the compiler is not.
    """
    if launch.is_empty or 0 in launch.extents[1]:
        return None
    shared = launch.shared + (code.resources.shared_bytes if code else 0)
    return (
        beyond_devices(*launch.extents)
        or _beyond_shared(launch.shared, shared, capability)
        or (_beyond_code(launch, code) if code else None)
        or _beyond_residence(launch, shared, code, capability)
    )


def _beyond_shared(dynamic: int, shared: int, capability: int) -> str | None:
    most = SHARED_KB.get(capability, 0) * 1024
    if not most or shared <= most:
        return None
    parts = f"{dynamic:,} bytes of dynamic" + (f" and {shared - dynamic:,} of static" if shared > dynamic else "")
    return f"{parts} shared memory; a block of sm_{capability} has at most {most:,} ({most // 1024} KB)"


def _beyond_code(launch: Launch, code: EntryCode) -> str | None:
    """Return which property of the machine code the launch contradicts, or None."""
    (grid, block), elf, registers = launch.extents, code.elf, code.resources.registers
    threads = prod(block)
    if elf.block and block != elf.block:
        return f"block {block}; the kernel was compiled for blocks of {elf.block} alone"
    if elf.most_threads and threads > elf.most_threads:
        return f"block {block} has {threads:,} threads; the kernel's __launch_bounds__ allow {elf.most_threads:,}"
    if registers and -(-threads // 32) > most_warps(registers):
        return (
            f"block {block} has {threads:,} threads of {count_text(registers, 'register')}; the {BLOCK_REGISTERS:,} "
            f"registers of a block are enough for {32 * most_warps(registers)} of them: __launch_bounds__({threads}) "
            f"makes the compiler use fewer"
        )
    if elf.cluster and prod(elf.cluster) > PORTABLE_CLUSTER:
        return (
            f"its clusters {elf.cluster} have {prod(elf.cluster)} blocks; a device takes at most {PORTABLE_CLUSTER} "
            f"without the attribute for larger ones, which no launch here sets"
        )
    if elf.cluster and any(extent % size for extent, size in zip(grid, elf.cluster, strict=True)):
        return f"grid {grid} is no multiple of its clusters {elf.cluster}"
    return None


def _beyond_residence(launch: Launch, shared: int, code: EntryCode | None, capability: int) -> str | None:
    """Return why an H200 cannot hold a cooperative grid at a time, or None."""
    grid, block = launch.extents
    if not launch.cooperative or capability != 90:
        return None
    most = most_resident(prod(block), shared, code.resources.registers if code else 0)
    return beyond_residence(grid, most)
