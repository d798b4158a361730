"""Messages between the referee and the runner that launches a stranger's machine code: plain values, never objects."""

from math import prod
from typing import Any, Literal

import msgspec
import numpy as np

from prism_bench.io.workers import Refusal
from prism_bench.spec.launch import MAP_TYPE, TensorMap

Role = Literal["input", "inout", "output", "scratch"]


class BufferPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Buffer of the case; before a launch an output is poisoned and scratch has `first_byte` everywhere."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: Role
    first_byte: int = 0

    @property
    def is_written(self) -> bool:
        """Whether launches write the buffer, so that it is compared."""
        return self.role in ("inout", "output")

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


class PlannedParameter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameter of a launch: the address of a buffer, or a number as its type and its bytes in hexadecimal.

    With `members` it is a structure with the layout of C; with `map` the buffer is passed as a tensor map.
    """

    buffer: str = ""
    dtype: str = ""
    value: str = ""
    members: tuple["PlannedParameter", ...] = ()
    map: TensorMap | None = None

    @property
    def type(self) -> np.dtype[Any]:
        """Type of the passed value: an address is a number of 64 bits."""
        if self.map:
            return MAP_TYPE
        if self.members:
            return np.dtype([(f"m{index}", member.type) for index, member in enumerate(self.members)], align=True)
        return np.dtype(np.uint64 if self.buffer else self.dtype)

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self.type.itemsize


class StepPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Launch of a symbol of the machine code, or a fill of the buffer `zero` with zeros.

    `module` is the number of the cubin. With clusters of several blocks the grid counts clusters. A launch that
    `overlaps` may begin before the end of the launch before: only the task's own kernel does so, never a card.
    """

    symbol: str = ""
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    shared: int = 0
    cooperative: bool = False
    parameters: tuple[PlannedParameter, ...] = ()
    zero: str = ""
    module: int = 0
    cluster: tuple[int, int, int] = (1, 1, 1)
    overlaps: bool = False


class CasePlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Case for a runner: its buffers and steps, without reference and tolerance."""

    name: str
    buffers: tuple[BufferPlan, ...]
    steps: tuple[StepPlan, ...]


class InputPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Input of a launch; its block is an array of the frame, repeated with `rotations`.

    With a `key` it consists of runs of the block instead: `length` elements that begin at a multiple of `step`.
    """

    name: str
    rotations: tuple[int, ...]
    key: int | None = None
    length: int = 1
    step: int = 1


class FactsQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Request for the facts of the device, after a run of canary kernels."""


class RunnerLoadQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Request to load the cubins in the frame's arrays anew, and to make all buffers anew.

    With `watched` a sanitizer watches the launches: buffers have exactly their size, without canaries, only inputs and
    scratch are written beforehand, no output is read, and a launch has no time.
    """

    plan: CasePlan
    watched: bool = False


class InputsQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Request to keep the inputs of the next launch, whose blocks are the frame's arrays, on the host."""

    inputs: tuple[InputPlan, ...]


class RunnerLaunchQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Request to launch once on the inputs that were sent just before; a `cold` launch is timed with cleared caches.

    `key` moves the buffers and poisons the outputs.
    """

    key: int
    cold: bool = True


class RepeatQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Request to launch `times` times on the present inputs, without pauses, and to wait for the end."""

    times: int


class FetchQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Request for the outputs of the last launch."""


class ShareQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Request to copy the outputs of the last launch to memory that another process on the device can open."""


class FactsAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Facts of the device.

    `overhead` is the time of an empty kernel in seconds, `bandwidth` the peak of the memory bus in bytes per second,
    `operations` the peak of arithmetic per second, 0 if unknown; `canary` is the digest of the output of a kernel with
    a known result.
    """

    device: str
    uuid: str
    sm_count: int
    max_shared_bytes: int
    compute_capability: int
    l2_bytes: int
    overhead: float
    bandwidth: float
    canary: int
    operations: float = 0.0


class LoadAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Answer after loading; `variables` of the code, with their sizes in bytes, are restored for each launch."""

    variables: dict[str, int] = {}


class InputsAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Answer after receiving the inputs."""


class RunnerLaunchAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Seconds of a launch, digests of its outputs by name, and a text for each canary or input that it changed."""

    seconds: float
    digests: dict[str, int]
    broken: tuple[str, ...] = ()


class RepeatAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Answer after the end of the launches."""


class FetchAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Names of the outputs, which are the frame's arrays, in order."""

    names: tuple[str, ...]


class ShareAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Driver's handle of each copy by name, in hexadecimal; empty if the device shares no memory."""

    handles: dict[str, str] = {}


Question = (
    FactsQuestion | RunnerLoadQuestion | InputsQuestion | RunnerLaunchQuestion | RepeatQuestion | FetchQuestion
    | ShareQuestion
)  # fmt: skip
Answer = (
    FactsAnswer | LoadAnswer | InputsAnswer | RunnerLaunchAnswer | RepeatAnswer | FetchAnswer | ShareAnswer | Refusal
)
QUESTIONS: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)
ANSWERS: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)
