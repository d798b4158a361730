"""What a compiler made of a source."""

from dataclasses import dataclass
from pathlib import Path

from prism_bench.compilation.code import Resources


@dataclass(frozen=True)
class Compiled:
    """A compiled source: `path` of the CUBIN, the mangled name of every entry asked for, and what it takes.

    `seconds` is what the compiler took, whether now or when the cached file was made.
    """

    path: Path
    lowered: dict[str, str]
    resources: dict[str, Resources]
    log: str
    seconds: float
    cached: bool

    @property
    def cubin(self) -> bytes:
        return self.path.read_bytes()
