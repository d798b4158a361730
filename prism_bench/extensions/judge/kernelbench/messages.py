"""Messages between the judge and the jailed process that runs a problem of KernelBench with PyTorch."""

import msgspec

from prism_bench.io.workers import Refusal


class DrawQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Request to run the problem in a file with changed whole numbers, for its inputs, parameters and outputs."""

    source: str
    sizes: dict[str, int]
    seed: int


class DrawnAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Names of the frame's arrays (inputs, parameters and outputs, in order), and all whole numbers of the problem."""

    names: tuple[str, ...]
    inputs: int
    parameters: int
    sizes: dict[str, int]


class ForwardQuestion(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Request to run the model in float64 on the arrays: inputs, then parameters, in the order of a `DrawnAnswer`."""

    source: str
    sizes: dict[str, int]


class ForwardAnswer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Answer with the outputs in float64 as the frame's arrays."""


ProblemQuestion = DrawQuestion | ForwardQuestion
ProblemAnswer = DrawnAnswer | ForwardAnswer | Refusal
QUESTIONS: msgspec.json.Decoder[ProblemQuestion] = msgspec.json.Decoder(ProblemQuestion)
ANSWERS: msgspec.json.Decoder[ProblemAnswer] = msgspec.json.Decoder(ProblemAnswer)
