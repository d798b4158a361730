"""Machine code of a contestant: a cubin with its entries, or one for each instance that another compiler made."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prism_bench.spec.launch import Instance, LaunchCard


@dataclass(frozen=True)
class CardedCode:
    """The cubin of one instance, and the card by which it is launched."""

    cubin: bytes
    card: LaunchCard


@dataclass(frozen=True)
class ContestantCode:
    """Machine code for the device: of CUDA C++ its bytes and the symbol of each entry, else a cubin per instance.

    It `has_memory_barriers` where instructions arrive at barriers in shared memory, or poll them.
    """

    cubin: bytes = b""
    symbols: Mapping[str, str] = field(default_factory=dict[str, str])
    instances: Mapping[Instance, CardedCode] = field(default_factory=dict[Instance, CardedCode])
    has_memory_barriers: bool = False
