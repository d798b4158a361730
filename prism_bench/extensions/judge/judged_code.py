"""What a verdict keeps of machine code."""

from prism_bench.compilation import sass_hash
from prism_bench.extensions.judge.messages import MachineCodeAnswer
from prism_bench.extensions.judge.verdict import JudgedCode


def judged_code(architecture: str, made: MachineCodeAnswer, cubin: bytes) -> JudgedCode:
    """Return the facts of machine code for an architecture, as the jailed process reported them."""
    resources = {entry: made.resources[symbol] for entry, symbol in made.symbols.items()}
    registers = {entry: one.registers for entry, one in resources.items()}
    spilled = {entry: one.spill_stores + one.spill_loads for entry, one in resources.items()}
    return JudgedCode(
        architecture, sass_hash(cubin), len(cubin), registers, spilled, made.kinds or {}, made.precisions or {}
    )
