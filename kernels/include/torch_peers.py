"""Forms of a PyTorch peer: as torch.compile makes it, and with TF32 operands. Each asks for what the peer asks for."""

from collections.abc import Callable
from functools import cache, partial
from inspect import signature
from types import ModuleType
from typing import Any


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiled when it is first called in a process: the strongest call that a user gets without writing a kernel."""

    @cache
    def made(torch: ModuleType) -> Any:
        return torch.compile(partial(function, torch), dynamic=False)

    def peer(torch: ModuleType, **given: Any) -> Any:
        return made(torch)(**given)

    peer.__signature__ = signature(function)
    return peer


def in_tf32(function: Callable[..., Any]) -> Callable[..., Any]:
    """With products of float32 matrices in TF32, which PyTorch does only on request."""

    def peer(torch: ModuleType, **given: Any) -> Any:
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            return function(torch, **given)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False

    peer.__signature__ = signature(function)
    return peer
