"""A reference of the user's repository, `reference="module:function"`: it runs in a child process with a time limit.

Nothing of the repository is imported before the reference is called, and never in this process: only `verify` and what
else compares outputs starts the child. The child imports from the project's root, and from `src` below it. It is
started as `python -m prism_bench.catalogue.project_reference CHANNEL ROOT`.
"""

import ast
import atexit
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import msgspec
import numpy as np

from prism_bench.compilation.sources import imported_words
from prism_bench.errors import PrismBenchError, SpecError
from prism_bench.io import project
from prism_bench.io.channels import Frame, FrameChannel, FrameError
from prism_bench.io.workers import FrameWorker, Refusal, WorkerEnvironment, end_with
from prism_bench.spec.kernel import KernelSpec
from prism_bench.spec.workload import Variant

LIMIT_SECONDS = 120.0  # for one call of a reference, with the import of its module
_FORM = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<function>[A-Za-z_][\w.]*)\s*(?P<arguments>\(.*\))?", re.DOTALL)
_TORCH = "torch"


def with_project_references(spec: KernelSpec, file: Path) -> KernelSpec:
    """Return the spec in `file`, and its variants, with a callable for each `reference="module:function"`.

    Raise SpecError for a text of another form. Nothing is imported.
    """
    variants = {
        name: Variant(variant.meaning, **{**variant.changes, "reference": _reference(text, file)})
        if isinstance(text := variant.changes.get("reference"), str)
        else variant
        for name, variant in spec.variants.items()
    }
    reference = _reference(spec.reference, file) if isinstance(spec.reference, str) else spec.reference
    return replace(spec, reference=reference, variants=variants)


def _reference(text: str, file: Path) -> "ProjectReference":
    match = _FORM.fullmatch(text.strip())
    where = f"{file.name}:{_line_of(text, file)}: reference '{text}'"
    if match is None:
        raise SpecError(f"{where}: write 'module:function', or 'module:function(x, weight, eps=eps)'")
    arguments = match["arguments"]
    reference = ProjectReference(match["module"], match["function"], file.resolve(), text)
    if arguments is None:
        return reference
    try:
        call = ast.parse(f"f{arguments}", mode="eval").body
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        pairs = [("", part) for part in call.args] + [(part.arg, part.value) for part in call.keywords]
        passed = tuple(_passed(cast("str", name), part) for name, part in pairs)
    except (AssertionError, ValueError, SyntaxError):
        raise SpecError(f"{where}: arguments are names of inputs, axes and parameters, or numbers") from None
    return replace(reference, passed=passed)


def _passed(keyword: str, part: ast.expr) -> "_Passed":
    return _Passed(keyword, part.id) if isinstance(part, ast.Name) else _Passed(keyword, value=ast.literal_eval(part))


def _line_of(text: str, file: Path) -> int:
    """Return the line of a text in a spec file; 1 where it is not written in one piece."""
    with suppress(OSError, SyntaxError, ValueError):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Constant) and node.value == text:
                return node.lineno
    return 1


@dataclass(frozen=True)
class _Passed:
    """An argument of a call: its keyword, if any, and the name of an input, axis or parameter, or else a value."""

    keyword: str
    name: str = ""
    value: Any = None


@dataclass(frozen=True)
class ProjectReference:
    """A function of the user's repository, called by name like any reference; `file` is the spec that names it.

    Without `passed` its own parameters are the names that it asks for.
    """

    module: str
    function: str
    file: Path
    text: str
    passed: tuple[_Passed, ...] | None = None

    def __call__(self, **values: Any) -> Any:
        """Return the function's outputs as NumPy arrays, a tuple of them where it returns several.

        Raise SpecError where the module, the function or the result is not usable, or the time limit is over.
        """
        passed = [_Passed(name, name) for name in values] if self.passed is None else self.passed
        arrays: list[np.ndarray] = []
        arguments: list[_Argument] = []
        for part in passed:
            value = values[part.name] if part.name else part.value
            if isinstance(value, ModuleType):
                raise SpecError(f"{self.where}: it asks for '{part.name}', which only functions of a spec can ask for")
            if hasattr(value, "shape") and not isinstance(value, np.generic):
                arrays.append(_on_host(value))
                arguments.append(_Argument(part.keyword, array=len(arrays) - 1))
            else:
                plain = value.item() if isinstance(value, np.generic) else value
                arguments.append(_Argument(part.keyword, value=plain))
        frame = self._ask(_Call(self.module, self.function, tuple(arguments)), arrays, _Outputs)
        return tuple(frame.arrays) if frame.message.is_several else frame.arrays[0]

    def __repr__(self) -> str:
        return self.where

    @property
    def __signature__(self) -> Signature:
        """The names that the call asks for: those in the text, else the parameters of the function in the child."""
        if self.passed is not None:
            names = [part.name for part in self.passed if part.name]
            return Signature([Parameter(name, Parameter.KEYWORD_ONLY) for name in dict.fromkeys(names)])
        message = self._ask(_Names(self.module, self.function), (), _Parameters).message
        return Signature(
            [Parameter(name, Parameter.KEYWORD_ONLY) for name in message.required]
            + [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in message.optional]
        )

    @property
    def where(self) -> str:
        """The place in the spec, and the reference's text."""
        return f"{project.relative(self.file)}:{_line_of(self.text, self.file)}: reference '{self.text}'"

    @property
    def root(self) -> Path:
        """The folder of the project's configuration, else of its repository, else the one above the catalogue."""
        configured = project.current(self.file.parent)
        if configured:
            return configured.root
        above = (folder for folder in self.file.parents if (folder / ".git").exists())
        return next(above, self.file.parents[min(2, len(self.file.parents) - 1)])

    def code_words(self) -> list[str]:
        """Return what identifies the reference's code: its text, its module's, and what that imports."""
        parts = self.module.split(".")
        files = [base.joinpath(*parts).with_suffix(".py") for base in _import_paths(self.root)]
        texts = [file for file in files if file.is_file()]
        return [self.text, *(file.read_text("utf-8", "replace") for file in texts), *imported_words(texts)]

    def _ask(self, question: "_Question", arrays: Sequence[np.ndarray], expected: type[Any]) -> Frame[Any]:
        """Return the child's answer; raise SpecError where it refuses, ends or takes too long."""
        child = _child(self.root)
        try:
            child.channel.send(question, arrays)
            frame = child.channel.receive(_ANSWERS, LIMIT_SECONDS)
        except TimeoutError:
            _end(self.root)
            raise SpecError(f"{self.where}: no result within {LIMIT_SECONDS:.0f} s; its process was ended") from None
        except (EOFError, OSError, FrameError, ValueError) as error:
            words = child.last_words() if isinstance(error, EOFError | ConnectionError) else str(error)
            _end(self.root)
            raise SpecError(f"{self.where}: {words}") from None
        except KeyboardInterrupt:
            _end(self.root)  # a late answer would be mistaken for the next question's
            raise
        if isinstance(frame.message, Refusal):
            raise SpecError(f"{self.where}: {frame.message.text}")
        assert isinstance(frame.message, expected)
        return frame


def _on_host(value: Any) -> np.ndarray:
    """Return an array of NumPy or CuPy as one of NumPy; dtypes that only extensions know become float64."""
    array = np.ascontiguousarray(value.get() if hasattr(value, "get") else value)
    return array if array.dtype.kind in "biufc" else array.astype(np.float64)


def _import_paths(root: Path) -> list[Path]:
    return [root, *(folder for folder in (root / "src",) if folder.is_dir())]


# The child: one for each project root, started at the first call.


class _Argument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An argument: its keyword, empty for a positional one, and the index of the frame's array, or a plain value."""

    keyword: str
    array: int | None = None
    value: Any = None


class _Names(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Return the names of the function's parameters."""

    module: str
    function: str


class _Call(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Call the function with the frame's arrays and plain values."""

    module: str
    function: str
    arguments: tuple[_Argument, ...]


class _Parameters(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Names of parameters without and with a default."""

    required: tuple[str, ...]
    optional: tuple[str, ...]


class _Outputs(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The function returned the frame's arrays: a tuple, or one array."""

    is_several: bool


_Question = _Names | _Call
_QUESTIONS: msgspec.json.Decoder[_Question] = msgspec.json.Decoder(_Question)
_ANSWERS: msgspec.json.Decoder[_Parameters | _Outputs | Refusal] = msgspec.json.Decoder(
    _Parameters | _Outputs | Refusal
)
_CHILDREN: dict[tuple[int, Path], FrameWorker] = {}  # by the asking process, which may be a fork


def _child(root: Path) -> FrameWorker:
    """Return the running child of a project's root."""
    key = os.getpid(), root
    if key not in _CHILDREN or not _CHILDREN[key].is_alive():
        _CHILDREN[key] = FrameWorker(WorkerEnvironment(__name__), [str(root)], stdout=subprocess.STDOUT)
    return _CHILDREN[key]


@atexit.register
def end_references() -> None:
    """End the children that this process has started."""
    for pid, root in [*_CHILDREN]:
        if pid == os.getpid():
            _end(root)


def _end(root: Path) -> None:
    """End the child of a project's root, whatever it is doing."""
    child = _CHILDREN.pop((os.getpid(), root), None)
    if child is not None:
        child.end()


class _Service:
    """Functions of the project, by module and name, in the child."""

    def reply(self, frame: Frame[_Question]) -> tuple[object, Sequence[np.ndarray]]:
        """Return the answer to a question; whatever the project's code raises becomes a Refusal with its last line."""
        question = frame.message
        try:
            function = _found(question.module, question.function)
            if isinstance(question, _Names):
                return _parameters_of(function), ()
            return _called(function, question.arguments, frame.arrays)
        except PrismBenchError as error:
            return Refusal.of(error), ()
        except (Exception, SystemExit) as error:
            last = traceback.format_exception_only(error)[-1].strip()
            return Refusal.of(SpecError(f"{_place(error)}{last}{_cure(error)}")), ()


def _found(module: str, name: str) -> Callable[..., Any]:
    value: Any = import_module(module)
    for part in name.split("."):
        if not hasattr(value, part):
            raise SpecError(f"module {module} ({getattr(value, '__file__', 'built in')}) has no {name}")
        value = getattr(value, part)
    if not callable(value):
        raise SpecError(f"{module}:{name} is {type(value).__name__}, and has to be a function")
    return value


def _parameters_of(function: Callable[..., Any]) -> _Parameters:
    try:
        parameters = signature(function).parameters.values()
    except ValueError:
        raise SpecError("its parameters are not known; write them: 'module:function(x, weight)'") from None
    named = [part for part in parameters if part.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
    required = tuple(part.name for part in named if part.default is Parameter.empty)
    return _Parameters(required, tuple(part.name for part in named if part.default is not Parameter.empty))


def _called(
    function: Callable[..., Any], arguments: Sequence[_Argument], arrays: Sequence[np.ndarray]
) -> tuple[object, Sequence[np.ndarray]]:
    takes_tensors = _takes_tensors(function)

    def value_of(argument: _Argument) -> Any:
        if argument.array is None:
            return argument.value
        array = arrays[argument.array]
        return import_module(_TORCH).from_numpy(array) if takes_tensors else array

    positional = [value_of(argument) for argument in arguments if not argument.keyword]
    keywords = {argument.keyword: value_of(argument) for argument in arguments if argument.keyword}
    with np.errstate(all="ignore"):
        result: Any = function(*positional, **keywords)
    parts: Sequence[Any] = result if isinstance(result, tuple | list) else (result,)
    return _Outputs(isinstance(result, tuple | list)), [_as_array(part) for part in parts]


def _takes_tensors(function: Callable[..., Any]) -> bool:
    """Return whether a function takes tensors: by its annotations, else where its module has torch in its names."""
    annotations = " ".join(map(str, getattr(function, "__annotations__", {}).values()))
    if "Tensor" in annotations or "ndarray" in annotations:
        return "Tensor" in annotations
    names: Mapping[str, Any] = getattr(function, "__globals__", {})
    modules = [getattr(value, "__name__", "") for value in names.values() if isinstance(value, ModuleType)]
    return (getattr(function, "__module__", None) or _TORCH).partition(".")[0] == _TORCH or _TORCH in modules


def _as_array(value: Any) -> np.ndarray:
    """Return a result as an array of numbers; a tensor of any device and dtype, too."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.double().numpy() if value.is_floating_point() else value.numpy()
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise SpecError(f"it returned {type(value).__name__}, and has to return an array of numbers or a tuple of them")
    return array


def _place(error: BaseException) -> str:
    """Return the innermost line of the project's code that raised, `reference.py:12: `; empty for none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    frames = [frame for frame in frames if "importlib" not in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}: " if frames else ""


def _cure(error: BaseException) -> str:
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return "; pip install torch (its build for CPUs is enough)" if missing == _TORCH else ""


def main() -> None:
    """Answer questions until the other end closes the channel."""
    channel = FrameChannel.inherited(descriptor := int(sys.argv[1]))
    end_with(descriptor)
    sys.path[:0] = map(str, _import_paths(Path(sys.argv[2])))
    channel.serve(_QUESTIONS, _Service().reply)


if __name__ == "__main__":
    main()
