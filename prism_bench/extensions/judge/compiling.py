"""Machine code of a submission from its jailed process: one cubin of CUDA C++, or one for each instance in Python."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from prism_bench.compilation.elf import check_card
from prism_bench.compilation.toolchain import toolchain_of
from prism_bench.errors import CompilationFailed
from prism_bench.extensions.judge.cell import JailCell
from prism_bench.extensions.judge.messages import MachineCodeAnswer
from prism_bench.extensions.judge.referee.contestant_code import CardedCode, ContestantCode
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import CUDA, KernelSpec
from prism_bench.spec.launch import Instance, LaunchCard
from prism_bench.units import count_text

MOST_INSTANCES = 128


@dataclass(frozen=True)
class CompiledPart:
    """A cubin, what the jailed process reported of it, and the instance that it is of; of CUDA C++ there is none."""

    made: MachineCodeAnswer
    cubin: bytes
    instance: Instance | None = None


def compiled_parts(
    spec: KernelSpec, cases: Sequence[Case], cell: JailCell, architecture: str, device: Device | None = None
) -> Iterator[CompiledPart]:
    """Yield the machine code of what the cases launch on `device`; CompilationFailed with a compiler's message.

    A process that has imported a source may answer anything, and so may one whose compiler runs programs that options
    name, as nvcc does: the card of an instance is checked against its cubin here, and another process lists its
    instructions.
    """
    where = device or Device(compute_capability=int(architecture.rstrip("af")))
    if spec.language == CUDA:
        entries = sorted({one for case in cases for one in case.plan.entries(where)})
        made, cubin = cell.machine_code(spec.source_file, entries, architecture, spec.options)
        if toolchain_of(spec.options).compiler == "nvcc":
            cell.end()
            seen = _listed(spec, cell, cubin, tuple(made.symbols.values()), architecture)
            made = msgspec.structs.replace(seen, symbols=made.symbols, log=made.log)
        yield CompiledPart(made, cubin)
        return
    instances = list(dict.fromkeys(one for case in cases for one in case.plan.instances(where)))
    if len(instances) > MOST_INSTANCES:
        needed = count_text(len(instances), "instance")
        raise CompilationFailed(f"its cases need {needed}; at most {MOST_INSTANCES} are compiled")
    made = [(one, *_carded(spec, cell, one, architecture)) for one in instances]
    cell.end()
    for instance, card, cubin in made:
        seen = _listed(spec, cell, cubin, (card.entry,), architecture)
        symbols = {str(instance): card.entry}
        yield CompiledPart(msgspec.structs.replace(seen, symbols=symbols, card=card), cubin, instance)


def _listed(
    spec: KernelSpec, cell: JailCell, cubin: bytes, symbols: tuple[str, ...], architecture: str
) -> MachineCodeAnswer:
    """Return what a process of the cell reports of machine code that exists already."""
    file = spec.source_file.with_name(f"{hashlib.sha256(cubin).hexdigest()[:16]}.cubin")
    file.write_bytes(cubin)
    return cell.machine_code(file, symbols, architecture)[0]


def _carded(spec: KernelSpec, cell: JailCell, instance: Instance, architecture: str) -> tuple[LaunchCard, bytes]:
    made, cubin = cell.instance_code(spec.source_file, spec.language, instance, architecture)
    if made.card is None:
        raise CompilationFailed(f"{instance}: the jailed process gave no launch card")
    check_card(made.card, cubin)
    return made.card, cubin


def contestant_code(parts: Sequence[CompiledPart]) -> ContestantCode:
    """Return machine code as a referee takes it."""
    carded = {
        one.instance: CardedCode(one.cubin, one.made.card) for one in parts if one.instance and one.made.card
    }  # fmt: skip
    barriers = any(one.made.memory_barriers for one in parts)
    if carded:
        return ContestantCode(instances=carded, has_memory_barriers=barriers)
    return ContestantCode(parts[0].cubin, parts[0].made.symbols, has_memory_barriers=barriers)
