"""Messages between the judge and the jailed process that runs a problem of KernelBench with PyTorch."""

import msgspec

from prism_bench.io.workers import Refusal


class DrawQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Run the problem in a file with whole numbers of it changed; return its inputs, parameters and outputs."""

    source: str
    sizes: dict[str, int]
    seed: int


class DrawnAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The arrays are inputs, parameters and outputs in order, `names` their names; `sizes` are all whole numbers."""

    names: tuple[str, ...]
    inputs: int
    parameters: int
    sizes: dict[str, int]


class ForwardQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Run the model in float64 on the arrays: inputs, then parameters, in the order of a `DrawnAnswer`."""

    source: str
    sizes: dict[str, int]


class ForwardAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The arrays are the outputs, in float64."""


ProblemQuestion = DrawQuestion | ForwardQuestion
ProblemAnswer = DrawnAnswer | ForwardAnswer | Refusal
QUESTIONS: msgspec.json.Decoder[ProblemQuestion] = msgspec.json.Decoder(ProblemQuestion)
ANSWERS: msgspec.json.Decoder[ProblemAnswer] = msgspec.json.Decoder(ProblemAnswer)
