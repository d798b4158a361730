"""Forms of a PyTorch peer that a spec names: with TF32 operands. It asks for what the peer asks for."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from types import ModuleType
from typing import Any


def in_tf32(function: Callable[..., Any]) -> Callable[..., Any]:
    """With products and convolutions of float32 in TF32, which PyTorch does only on request.

    What compiles the peer finds the function as `__wrapped__`, and what it runs within as `surroundings`: a compiled
    graph cannot set the flag itself.
    """

    @wraps(function)
    def peer(torch: ModuleType, **given: Any) -> Any:
        with tf32_allowed(torch):
            return function(torch=torch, **given)

    vars(peer)["surroundings"] = tf32_allowed
    return peer


@contextmanager
def tf32_allowed(torch: ModuleType) -> Generator[None]:
    """Allow TF32 in products and convolutions; afterwards the flags are as they were."""
    flags = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [flag.allow_tf32 for flag in flags]
    for flag in flags:
        flag.allow_tf32 = True
    try:
        yield
    finally:
        for flag, allowed in zip(flags, before, strict=True):
            flag.allow_tf32 = allowed
