"""What a user can do on this machine, as the checks have it, and what is needed for the rest."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prism_bench.doctor.check import Check

_WELL = ("works", "note")


@dataclass(frozen=True)
class Ability:
    """Something that users do, `what`, and the names of the checks that have to pass for it."""

    what: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class AbilityAnswer:
    """Whether the machine allows `what`; where it does not, `lacks` is the check that fails and `cure` what helps."""

    what: str
    possible: bool
    lacks: str | None = None
    cure: str | None = None


ABILITIES = (
    Ability("read, compare and report records"),
    Ability("check kernels on the CPU emulator", ("compiler",)),
    Ability("compile kernels to machine code", ("NVRTC", "cuda_fp16.h", "crt/mma.h", "cooperative_groups.h")),
    Ability("run the asv suites", ("asv",)),
    Ability("compare commits", ("git",)),
    Ability("measure kernels on a GPU", ("CUDA backend",)),
    Ability("watch clocks, power and neighbours", ("NVML",)),
    Ability("time PyTorch peers", ("CUDA backend", "torch")),
    Ability("count with ncu", ("CUDA backend", "ncu")),
    Ability("trace with nsys", ("CUDA backend", "nsys")),
    Ability("run compute-sanitizer", ("CUDA backend", "compute-sanitizer")),
)


def answers(checks: Iterable[Check], abilities: Iterable[Ability] = ABILITIES) -> list[AbilityAnswer]:
    """Return an answer for each ability; a check that was not made counts as failed."""
    by_name = {check.name: check for check in checks}
    return [_answer(one, by_name) for one in abilities]


def _answer(ability: Ability, by_name: Mapping[str, Check]) -> AbilityAnswer:
    for name in ability.needs:
        check = by_name.get(name)
        if check is None or check.state not in _WELL:
            return AbilityAnswer(ability.what, False, name, check.cure if check else None)
    return AbilityAnswer(ability.what, True)
