"""Instance of a kernel function: a request to its compiler, and its text in records and tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Constant = bool | int | float | str | None
Fact = Literal["", "16", "1"]  # what is known of a parameter: nothing, a multiple of 16, equal to 1

_PLAIN = {"": "", "16": ":16", "1": "=1"}


@dataclass(frozen=True)
class Passed:
    """An argument as a compiler sees it: its name in the spec, its type, and what is known of its value.

    `dtype` is a NumPy type's name: of the elements where it is a `pointer`. A pointer that is a multiple of 16 is the
    usual one: every buffer begins at a multiple of 256. `dimensions` is how many axes an array has.
    """

    name: str
    dtype: str
    pointer: bool = False
    fact: Fact = ""
    dimensions: int = 0

    def __str__(self) -> str:
        if self.pointer:
            return "" if self.dtype == "float32" else f"{self.name}:{self.dtype}"
        return f"{self.name}{_PLAIN[self.fact]}" if self.fact else ""


@dataclass(frozen=True)
class Instance:
    """A kernel `function` for arguments of these types, with `constants` that are fixed when it is compiled.

    Constants are values of the function's own parameters and options of the compiler, such as `num_warps`. Of a
    function in CUDA C++ the name is all: `softmax<32, 4>`.
    """

    function: str
    passed: tuple[Passed, ...] = ()
    constants: Mapping[str, Constant] = field(default_factory=dict[str, Constant])

    def __hash__(self) -> int:
        return hash((self.function, self.passed, tuple(self.constants.items())))

    def __str__(self) -> str:
        """Return a text that no other instance has: `softmax<BLOCK=1024, num_warps=4; cols:16>`."""
        constants = ", ".join(f"{name}={value}" for name, value in self.constants.items())
        known = ", ".join(filter(None, map(str, self.passed)))
        inside = "; ".join(filter(None, (constants, known)))
        return f"{self.function}<{inside}>" if inside else self.function
