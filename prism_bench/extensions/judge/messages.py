"""Messages between the judge and the jailed process that compiles a submission and runs it on the emulator.

Arrays and machine code travel behind the message, in the same frame.
"""

import msgspec

from prism_bench.compilation.code import Resources
from prism_bench.emulator.messages import ArgumentPlace
from prism_bench.emulator.report import LaunchReport
from prism_bench.emulator.request import LaunchRequest
from prism_bench.io.workers.refusal import Refusal
from prism_bench.spec.launch import Instance, LaunchCard


class MachineCodeQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Compile a source for an architecture, with these entries."""

    source: str
    entries: tuple[str, ...]
    architecture: str
    options: tuple[str, ...] = ()


class InstanceCodeQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Compile an instance of a function of a source in one of Python's kernel languages, which is imported for it."""

    source: str
    language: str
    instance: Instance
    architecture: str


class MachineCodeAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The frame's array is the cubin; `symbols` has the symbol of each entry, `resources` what it takes, by symbol.

    An instance has the `card` by which its compiler has it launched.
    `kinds` counts the instructions of all entries by kind, `precisions` their arithmetic by precision; both are None
    where no program lists them. `memory_barriers` counts instructions on barriers in shared memory (`SYNCS`).
    """

    symbols: dict[str, str]
    resources: dict[str, Resources]
    kinds: dict[str, int] | None
    precisions: dict[str, int] | None
    log: str = ""
    card: LaunchCard | None = None
    memory_barriers: int = 0


class LackingQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Name the entries of a source that the emulator does not claim to run."""

    source: str
    entries: tuple[str, ...]
    options: tuple[str, ...] = ()


class LackingAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Why it does not, by entry."""

    lacking: dict[str, str]


class HostCodeQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Build a source for the emulator in a mode, with these entries, and keep it for launches."""

    source: str
    entries: tuple[str, ...]
    mode: str
    options: tuple[str, ...] = ()


class HostCodeAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """It was built: `build` is its number, from 0."""

    build: int


class HostLaunchQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Launch a kernel of the build of that number; buffers and scalars are the frame's arrays."""

    build: int
    request: LaunchRequest
    arguments: tuple[ArgumentPlace, ...]


class HostLaunchAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The report of a launch; the frame's arrays are all of the question's, as the kernel left them."""

    report: LaunchReport


JailQuestion = MachineCodeQuestion | InstanceCodeQuestion | LackingQuestion | HostCodeQuestion | HostLaunchQuestion
JailAnswer = MachineCodeAnswer | LackingAnswer | HostCodeAnswer | HostLaunchAnswer | Refusal
QUESTIONS: msgspec.json.Decoder[JailQuestion] = msgspec.json.Decoder(JailQuestion)
ANSWERS: msgspec.json.Decoder[JailAnswer] = msgspec.json.Decoder(JailAnswer)
