"""Messages between a process that needs machine code and the child process that runs a language's compiler."""

import msgspec

from prism_bench.compilation.code import Resources
from prism_bench.io.workers.refusal import Refusal
from prism_bench.spec.launch import Instance, LaunchCard


class CompileQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Compile an instance of a function of the file for an architecture, `90`."""

    file: str
    instance: Instance
    architecture: str


class EmulateQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Run a launch in the language's interpreter: arguments are the frame's arrays, those in `scalars` as numbers."""

    file: str
    instance: Instance
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    scalars: tuple[int, ...]


class CompiledAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The card of the machine code in the frame's array, what it takes, and the compiler's seconds."""

    card: LaunchCard
    resources: Resources
    seconds: float
    log: str


class EmulatedAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The launch is done: the frame's arrays are its arguments."""


LanguageQuestion = CompileQuestion | EmulateQuestion
LanguageAnswer = CompiledAnswer | EmulatedAnswer | Refusal
QUESTIONS: msgspec.json.Decoder[LanguageQuestion] = msgspec.json.Decoder(LanguageQuestion)
ANSWERS: msgspec.json.Decoder[LanguageAnswer] = msgspec.json.Decoder(LanguageAnswer)
