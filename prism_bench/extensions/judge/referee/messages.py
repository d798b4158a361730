"""Messages between the referee and the runner that launches a stranger's machine code: plain values, never objects."""

from math import prod
from typing import Any, Literal

import msgspec
import numpy as np

from prism_bench.backends.cuda.runnable import MAP_TYPE
from prism_bench.io.workers import Refusal
from prism_bench.spec.launch import TensorMap

Role = Literal["input", "inout", "output", "scratch"]


class BufferPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A buffer of the case; before a launch an output is poisoned and scratch has `first_byte` everywhere."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: Role
    first_byte: int = 0

    @property
    def is_written(self) -> bool:
        """Whether launches write it, and it is compared."""
        return self.role in ("inout", "output")

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


class PlannedParameter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A parameter of a launch: the address of a buffer, or a number as its type and its bytes in hexadecimal.

    With `members` it is a structure of those, as C lays it out; with `map` the buffer is passed as a tensor map.
    """

    buffer: str = ""
    dtype: str = ""
    value: str = ""
    members: tuple["PlannedParameter", ...] = ()
    map: TensorMap | None = None

    @property
    def type(self) -> np.dtype[Any]:
        """The type of what is passed: an address is a number of 64 bits."""
        if self.map:
            return MAP_TYPE
        if self.members:
            return np.dtype([(f"m{index}", one.type) for index, one in enumerate(self.members)], align=True)
        return np.dtype(np.uint64 if self.buffer else self.dtype)

    @property
    def size(self) -> int:
        """Its bytes among the parameters of a launch."""
        return self.type.itemsize


class StepPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A launch of a symbol of the machine code; with `zero` a buffer that is filled with zeros instead.

    `module` is the number of the cubin. The grid counts clusters, where those have more than a block. One that
    `overlaps` may begin before the last one has ended: no card asks for it, only the task's own kernel does.
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
    """What a runner has to know of a case: its buffers and steps. It has no reference and no tolerance."""

    name: str
    buffers: tuple[BufferPlan, ...]
    steps: tuple[StepPlan, ...]


class InputPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One input of a launch; its block is an array of the frame, repeated with `rotations`.

    With a `key`, it consists of runs of the block instead: `length` elements that begin at a multiple of `step`.
    """

    name: str
    rotations: tuple[int, ...]
    key: int | None = None
    length: int = 1
    step: int = 1


class FactsQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Return the device, after canary kernels have run on it."""


class RunnerLoadQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Load the cubins in the frame's arrays anew, and make all buffers anew.

    With `watched` a sanitizer watches the launches: buffers have exactly their size, without canaries, nothing but
    inputs and scratch is written beforehand, no output is read, and a launch has no time.
    """

    plan: CasePlan
    watched: bool = False


class InputsQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Keep the inputs of the next launch, whose blocks are the frame's arrays, on the host."""

    inputs: tuple[InputPlan, ...]


class RunnerLaunchQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Launch once on the inputs that were sent before, once; `cold` times it.

    `key` moves the buffers and poisons the outputs.
    """

    key: int
    cold: bool = True


class RepeatQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Launch so many times on the present inputs, one right after the other, and wait for the end."""

    times: int


class FetchQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Return the outputs as the last launch left them."""


class ShareQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Copy the outputs as the last launch left them to memory that another process on the device can open."""


class FactsAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The device in words and numbers.

    `overhead` is what an empty kernel takes, in seconds; `bandwidth` what the memory bus carries at most, in bytes per
    second, and `operations` what no program exceeds in a second, 0 where unknown; `canary` is the digest of what a
    kernel of known outcome left.
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
    """It was loaded; `variables` are the machine code's own, with their bytes, which each launch finds as at first."""

    variables: dict[str, int] = {}


class InputsAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The inputs are there."""


class RunnerLaunchAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """What a launch took in seconds and left: digests of the outputs by name, and in words what it broke."""

    seconds: float
    digests: dict[str, int]
    broken: tuple[str, ...] = ()


class RepeatAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The launches have ended."""


class FetchAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The outputs are the frame's arrays, named in order."""

    names: tuple[str, ...]


class ShareAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The driver's handle of each copy by name, in hexadecimal; none where the device shares no memory."""

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
