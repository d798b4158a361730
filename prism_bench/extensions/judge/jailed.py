"""Jailed process that compiles a submission's source and runs it on the emulator.

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
from prism_bench.emulator.library import DeviceBuffer, MappedBuffer
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


class _JailService:
    """Service that answers questions about a submission."""

    def __init__(self) -> None:
        self._modules: list[Module] = []

    def reply(self, frame: Frame[JailQuestion]) -> _Reply:
        """Return the answer to a question; an expected error becomes the answer."""
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
        # Buffers are the kernel's memory, not its arguments, so that writes through a const pointer are seen, too.
        unpacked = unpack_arguments(question.arguments, arrays)
        content = [value.buffer if isinstance(value, MappedBuffer) else value for value in unpacked]
        buffers = {id(value): DeviceBuffer(value) for value in content if isinstance(value, np.ndarray)}
        arguments = [
            MappedBuffer(buffers[id(array)], value.wanted)
            if isinstance(value, MappedBuffer)
            else buffers.get(id(value), value)
            for value, array in zip(unpacked, content, strict=True)
        ]
        report = self._modules[question.build].run(question.request, arguments)
        left = [buffers[id(array)].array if id(array) in buffers else array for array in arrays]
        return HostLaunchAnswer(report), left


def _lacking(question: LackingQuestion) -> dict[str, str]:
    code = code_of(Path(question.source), question.entries, question.options)
    whole = not_emulated(*code)
    reasons = {entry: whole or entry_not_emulated(entry, *code) for entry in question.entries}
    return {entry: reason for entry, reason in reasons.items() if reason}


def _host_module(question: HostCodeQuestion) -> Module:
    """Build for the emulator; raise BackendUnavailable for a source that it does not claim to run."""
    source = Path(question.source)
    reason = not_emulated(*code_of(source, question.entries, question.options))
    if reason:
        raise BackendUnavailable(f"not emulated: {reason}")
    return host_module(source, question.entries, question.mode, question.options, only_kernels=True)


def _machine_code(question: MachineCodeQuestion) -> _Reply:
    """Compile a source, or find the entries of existing machine code."""
    compiled = compile_source(Path(question.source), question.entries, question.architecture, question.options)
    symbols = {entry: compiled.lowered[entry] for entry in question.entries}
    kinds, precisions, barriers = _census(compiled.path)
    answer = MachineCodeAnswer(symbols, compiled.resources, kinds, precisions, compiled.log, memory_barriers=barriers)
    return answer, (np.frombuffer(compiled.cubin, np.uint8),)


def _instance_code(question: InstanceCodeQuestion) -> _Reply:
    """Import the source with its language, and compile an instance of one of its functions."""
    kernel_language = language(question.language)
    kernel_language.require_installed()
    os.environ.update(kernel_language.variables)
    code = kernel_language.compile(real_module(Path(question.source)), question.instance, question.architecture)
    resources = {code.card.entry: measured_resources(code.cubin, code.card.entry, code.card.shared)}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code.cubin)
        file.flush()
        kinds, precisions, barriers = _census(Path(file.name))
    symbols = {str(question.instance): code.card.entry}
    answer = MachineCodeAnswer(symbols, resources, kinds, precisions, code.log, code.card, barriers)
    return answer, (np.frombuffer(code.cubin, np.uint8),)


def _census(cubin: Path) -> tuple[dict[str, int] | None, dict[str, int] | None, int]:
    """Count the instructions of a cubin by kind, by precision, and on memory barriers; None if nothing lists them."""
    try:
        instructions = [line for listing in listing_of(cubin).values() for line in listing.instructions]
    except BackendUnavailable:
        return None, None, 0
    barriers = sum(opcode_of(line).startswith(MEMORY_BARRIER) for line in instructions)
    return dict[str, int](Counter(map(kind_of, instructions))), precision_census(instructions), barriers


def main(descriptor: str, *prepared: str) -> None:
    """Serve until the channel is closed. Link the `prepared` files and folders into the jail's own cache."""
    end_with(int(descriptor))
    for path in map(Path, prepared):
        (cache_folder() / path.name).symlink_to(path)
    FrameChannel.inherited(int(descriptor)).serve(QUESTIONS, _JailService().reply)


if __name__ == "__main__":
    main(*sys.argv[1:])
