"""Jailed process that runs a problem of KernelBench with PyTorch on the CPU.

Started as `python -m prism_bench.extensions.judge.kernelbench.child CHANNEL`. A problem is a Python file with a class
`Model`, `get_init_inputs()` for its constructor and `get_inputs()` for its call; whole numbers at its top level are its
sizes.
"""

import ast
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from prism_bench.errors import BackendUnavailable, PrismBenchError, SpecError, UsageError
from prism_bench.extensions.judge.kernelbench.messages import (
    QUESTIONS,
    DrawnAnswer,
    DrawQuestion,
    ForwardAnswer,
    ForwardQuestion,
    ProblemAnswer,
    ProblemQuestion,
)
from prism_bench.io.channels import Frame, FrameChannel
from prism_bench.io.workers import Refusal, end_with

_NEEDED = ("Model", "get_inputs", "get_init_inputs")
_Reply = tuple[ProblemAnswer, Sequence[np.ndarray]]


def reply(frame: Frame[ProblemQuestion]) -> _Reply:
    """Return the answer to a question; an error of the problem becomes the answer."""
    try:
        match frame.message:
            case DrawQuestion():
                return _drawn(frame.message)
            case ForwardQuestion():
                return _forward(frame.message, frame.arrays)
    except PrismBenchError as error:
        return Refusal.of(error), ()
    except Exception as error:  # a problem may raise anything
        return Refusal.of(SpecError(f"{Path(frame.message.source).name}: {type(error).__name__}: {error}")), ()


def _drawn(question: DrawQuestion) -> _Reply:
    torch = _torch()
    torch.manual_seed(question.seed)
    sizes, problem = _problem(Path(question.source), question.sizes)
    inputs = list(problem["get_inputs"]())
    odd = next((value for value in inputs if not isinstance(value, torch.Tensor)), None)
    if odd is not None:
        raise SpecError(f"get_inputs gives {type(odd).__name__}, not tensors alone, which a kernel here cannot take")
    model = problem["Model"](*problem["get_init_inputs"]())
    state = dict(model.state_dict())
    arrays = [np.array(tensor.detach().numpy()) for tensor in [*inputs, *state.values()]]
    outputs = _outputs(model(*inputs), torch)
    names = [f"x{index}" for index in range(len(inputs))] + [
        "p_" + re.sub(r"\W", "_", name, flags=re.ASCII) for name in state
    ]
    names += [f"y{index}" for index in range(len(outputs))]
    return DrawnAnswer(tuple(names), len(inputs), len(state), sizes), [*arrays, *outputs]


def _forward(question: ForwardQuestion, arrays: Sequence[np.ndarray]) -> _Reply:
    torch = _torch()
    _, problem = _problem(Path(question.source), question.sizes)
    model = problem["Model"](*problem["get_init_inputs"]()).double()
    names = list(model.state_dict())
    tensors = [torch.from_numpy(np.array(array, order="C")) for array in arrays]
    split = len(tensors) - len(names)
    model.load_state_dict(dict(zip(names, tensors[split:], strict=True)))
    inputs = [tensor.double() if tensor.is_floating_point() else tensor for tensor in tensors[:split]]
    return ForwardAnswer(), [np.asarray(output, np.float64) for output in _outputs(model(*inputs), torch)]


def _outputs(result: Any, torch: Any) -> list[np.ndarray]:
    tensors = list(result) if isinstance(result, (tuple, list)) else [result]
    if not all(isinstance(tensor, torch.Tensor) for tensor in tensors):
        raise SpecError("its Model gives something else than tensors")
    return [np.array(tensor.detach().numpy()) for tensor in tensors]


def _problem(path: Path, sizes: Mapping[str, int]) -> tuple[dict[str, int], dict[str, Any]]:
    """Return the whole numbers of a problem, with the changes in `sizes`, and its definitions with them."""
    tree = ast.parse(path.read_text(), path.name)
    numbers: dict[str, int] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int() as value)) if (
                type(value) is int
            ):
                numbers[name] = sizes.get(name, value)
                node.value = ast.copy_location(ast.Constant(numbers[name]), node.value)
    unknown = sorted(set(sizes) - set(numbers))
    if unknown:
        raise UsageError(f"{path.name} has no whole number '{unknown[0]}'; it has {', '.join(numbers) or 'none'}")
    defined: dict[str, Any] = {"__name__": path.stem}
    exec(compile(tree, path.name, "exec"), defined)
    missing = [name for name in _NEEDED if name not in defined]
    if missing:
        raise SpecError(f"{path.name}: no problem of KernelBench: it defines no {missing[0]}")
    return numbers, defined


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        raise BackendUnavailable(
            f"problems of KernelBench are modules of PyTorch, which is not installed here (pip install torch): {error}"
        ) from None


def main(descriptor: str) -> None:
    """Serve until the channel is closed."""
    end_with(int(descriptor))
    FrameChannel.inherited(int(descriptor)).serve(QUESTIONS, reply)


if __name__ == "__main__":
    main(*sys.argv[1:])
