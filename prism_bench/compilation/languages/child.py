"""The child process of a language's compiler.

Started as `python -m prism_bench.compilation.languages.child CHANNEL LANGUAGE`: the inherited descriptor of a
socket, and the suffix of the language. It imports a kernel's file with its real imports, once for each content.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from zlib import crc32

import numpy as np

from prism_bench.catalogue.importer import catalogue_package, execute, module_name
from prism_bench.compilation.cubin import check_card
from prism_bench.compilation.languages.building import (
    QUESTIONS,
    CompiledAnswer,
    CompileQuestion,
    EmulatedAnswer,
    EmulateQuestion,
    LanguageAnswer,
    LanguageQuestion,
)
from prism_bench.compilation.languages.interpreting import GuardedArrays
from prism_bench.compilation.languages.language import InterpretedLaunch, Language, absent_modules, language
from prism_bench.compilation.listing import measured_resources
from prism_bench.compilation.sources import project_roots, python_root
from prism_bench.errors import CompilationFailed, PrismBenchError, VerificationFailed
from prism_bench.io.channels import Frame, FrameChannel
from prism_bench.io.workers import Refusal, end_with
from prism_bench.spec.arguments import line_in

_Reply = tuple[LanguageAnswer, Sequence[np.ndarray]]


class _LanguageService:
    """Service that answers questions about one language."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._modules: dict[tuple[str, int], ModuleType] = {}

    def reply(self, frame: Frame[LanguageQuestion]) -> _Reply:
        """Return the answer to a question; an expected error becomes a Refusal."""
        try:
            match frame.message:
                case CompileQuestion():
                    return self._compiled(frame.message)
                case EmulateQuestion():
                    return self._emulated(frame.message, frame.arrays)
        except PrismBenchError as error:
            return Refusal.of(error), ()

    def _compiled(self, question: CompileQuestion) -> _Reply:
        module = self._module(question.file)
        started = time.perf_counter()
        code = self._language.compile(module, question.instance, question.architecture)
        seconds = time.perf_counter() - started
        check_card(code.card, code.cubin)
        resources = measured_resources(code.cubin, code.card.entry, code.card.shared)
        return CompiledAnswer(code.card, resources, seconds, code.log), (np.frombuffer(code.cubin, np.uint8),)

    def _emulated(self, question: EmulateQuestion, arrays: Sequence[np.ndarray]) -> _Reply:
        guarded = GuardedArrays(arrays)
        values = [array.item() if index in question.scalars else array for index, array in enumerate(guarded.arrays)]
        launch = InterpretedLaunch(question.instance, question.grid, question.block, values)
        self._language.emulate(self._module(question.file), launch)
        complaint = guarded.complaint([argument.name for argument in question.instance.passed])
        if complaint:
            raise VerificationFailed(f"{question.file}: {question.instance}: {complaint}")
        return EmulatedAnswer(), guarded.arrays

    def _module(self, file: str) -> ModuleType:
        path = Path(file)
        key = file, crc32(path.read_bytes())
        if key not in self._modules:
            self._modules[key] = real_module(path)
        return self._modules[key]


def real_module(path: Path) -> ModuleType:
    """Return the module of a kernel's file, with its compiler imported; raise CompilationFailed if the import fails.

    It may import modules of its project, relatively or by name. Packages above the file are not executed themselves.
    """
    root = python_root(path)
    sys.path += [folder for folder in map(str, project_roots(path)) if folder not in sys.path]
    try:
        with absent_modules():
            return execute(path, module_name(catalogue_package(root), root, path))
    except PrismBenchError:
        raise
    except Exception as error:
        line = line_in(error, str(path)) or (error.lineno if isinstance(error, SyntaxError) else None)
        raise CompilationFailed(f"{path}:{line or '?'}: {type(error).__name__}: {error}") from error


def main(descriptor: str, suffix: str) -> None:
    """Serve until the parent closes the channel; end with the parent even if a compiler hangs."""
    end_with(int(descriptor))
    FrameChannel.inherited(int(descriptor)).serve(QUESTIONS, _LanguageService(language(suffix)).reply)


if __name__ == "__main__":
    main(*sys.argv[1:])
