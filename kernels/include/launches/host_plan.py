"""Launches put together."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

from prism_bench import Launch, Zero


def together(*launches: Any) -> Callable[..., Any]:
    """The host plan of launches one after the other: it asks for all that any of them asks for."""
    asked = [tuple(signature(one).parameters.values()) for one in launches]

    def launch(**given: Any) -> tuple[Launch | Zero, ...]:
        return tuple(
            one(**{p.name: given[p.name] for p in wanted if p.name in given})
            for one, wanted in zip(launches, asked, strict=True)
        )

    every = {p.name: p.replace(kind=Parameter.KEYWORD_ONLY) for wanted in asked for p in wanted}
    launch.__signature__ = signature(launch).replace(parameters=every.values())  # pyright: ignore[reportArgumentType] - takes any iterable
    return launch
