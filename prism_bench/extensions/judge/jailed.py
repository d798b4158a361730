"""The jailed process that works on a submission: it compiles the source, and runs it on the emulator.

Started as `python -m prism_bench.extensions.judge.jailed CHANNEL PREPARED...`; it knows no references and no verdicts.
"""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from prism_bench.backends.host import code_of, host_module
from prism_bench.compilation import compile_source
from prism_bench.compilation.languages.child import real_module
from prism_bench.compilation.languages.language import language
from prism_bench.compilation.listing import MEMORY_BARRIER, kind_of, listing_of, measured_resources, opcode_of
from prism_bench.emulator import entry_not_emulated, not_emulated
from prism_bench.emulator.build import cache_folder
from prism_bench.emulator.isolation import unpack_arguments
from prism_bench.emulator.library import DeviceBuffer
from prism_bench.emulator.module import Module
from prism_bench.errors import BackendUnavailable, PrismBenchError, SpecError
from prism_bench.extensions.judge.jail_client import (
    QUESTIONS,
    HostCodeAnswer,
    HostCodeQuestion,
    HostLaunchAnswer,
    HostLaunchQuestion,
    InstanceCodeQuestion,
    JailAnswer,
    JailQuestion,
    LackingAnswer,
    LackingQuestion,
    MachineCodeAnswer,
    MachineCodeQuestion,
)
from prism_bench.extensions.judge.machine_code import precision_census
from prism_bench.io.channels import Frame, FrameChannel
from prism_bench.io.workers import Refusal, end_with

_Reply = tuple[JailAnswer, Sequence[np.ndarray]]


class JailService:
    """Answers about one submission."""

    def __init__(self) -> None:
        self._modules: list[Module] = []

    def reply(self, frame: Frame[JailQuestion]) -> _Reply:
        """Return the answer to a question; an expected error is the answer itself."""
        try:
            match frame.message:
                case MachineCodeQuestion():
                    return _machine_code(frame.message)
                case InstanceCodeQuestion():
                    return _instance_code(frame.message)
                case LackingQuestion():
                    return LackingAnswer(_lacking(frame.message)), ()
                case HostCodeQuestion():
                    self._modules.append(_host_module(frame.message))
                    return HostCodeAnswer(len(self._modules) - 1), ()
                case HostLaunchQuestion():
                    return self._launched(frame.message, frame.arrays)
        except PrismBenchError as error:
            return Refusal.of(error), ()

    def _launched(self, question: HostLaunchQuestion, arrays: Sequence[np.ndarray]) -> _Reply:
        if not 0 <= question.build < len(self._modules):
            raise SpecError(f"there is no build {question.build}")
        # Buffers as the kernel's memory, not as its arguments: what it writes through a const pointer is seen, too.
        given = unpack_arguments(question.arguments, arrays)
        buffers = {id(one): DeviceBuffer(one) for one in given if isinstance(one, np.ndarray)}
        arguments = [buffers.get(id(one), one) for one in given]
        report = self._modules[question.build].run(question.request, arguments)
        left = [buffers[id(one)].array if id(one) in buffers else one for one in arrays]
        return HostLaunchAnswer(report), left


def _lacking(question: LackingQuestion) -> dict[str, str]:
    code = code_of(Path(question.source), question.entries, question.options)
    whole = not_emulated(*code)
    reasons = {entry: whole or entry_not_emulated(entry, *code) for entry in question.entries}
    return {entry: reason for entry, reason in reasons.items() if reason}


def _host_module(question: HostCodeQuestion) -> Module:
    """Build for the emulator; BackendUnavailable for what it does not claim to run, SpecError for host code."""
    source = Path(question.source)
    reason = not_emulated(*code_of(source, question.entries, question.options))
    if reason:
        raise BackendUnavailable(f"not emulated: {reason}")
    return host_module(source, question.entries, question.mode, question.options, only_kernels=True)


def _machine_code(question: MachineCodeQuestion) -> _Reply:
    """Compile, or find the entries of machine code that exists already."""
    made = compile_source(Path(question.source), question.entries, question.architecture, question.options)
    symbols = {entry: made.lowered[entry] for entry in question.entries}
    kinds, precisions, barriers = _census(made.path)
    answer = MachineCodeAnswer(symbols, made.resources, kinds, precisions, made.log, memory_barriers=barriers)
    return answer, (np.frombuffer(made.cubin, np.uint8),)


def _instance_code(question: InstanceCodeQuestion) -> _Reply:
    """Import the source with its language, and compile an instance of one of its functions."""
    spoken = language(question.language)
    spoken.require_installed()
    os.environ.update(spoken.variables)
    code = spoken.compile(real_module(Path(question.source)), question.instance, question.architecture)
    resources = {code.card.entry: measured_resources(code.cubin, code.card.entry, code.card.shared)}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code.cubin)
        file.flush()
        kinds, precisions, barriers = _census(Path(file.name))
    symbols = {str(question.instance): code.card.entry}
    answer = MachineCodeAnswer(symbols, resources, kinds, precisions, code.log, code.card, barriers)
    return answer, (np.frombuffer(code.cubin, np.uint8),)


def _census(cubin: Path) -> tuple[dict[str, int] | None, dict[str, int] | None, int]:
    """Return the instructions of a cubin by kind, by precision, on barriers in memory; None if nothing lists them."""
    try:
        listed = [one for listing in listing_of(cubin).values() for one in listing.instructions]
    except BackendUnavailable:
        return None, None, 0
    barriers = sum(opcode_of(one).startswith(MEMORY_BARRIER) for one in listed)
    return dict[str, int](Counter(map(kind_of, listed))), precision_census(listed), barriers


def main(descriptor: str, *prepared: str) -> None:
    """Serve until there is nobody to ask. Files and folders that are `prepared` are found in the jail's own cache."""
    end_with(int(descriptor))
    for path in map(Path, prepared):
        (cache_folder() / path.name).symlink_to(path)
    FrameChannel.inherited(int(descriptor)).serve(QUESTIONS, JailService().reply)


if __name__ == "__main__":
    main(*sys.argv[1:])
