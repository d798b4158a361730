"""Faults of kernels and launches, each with the form that is right: two variants of one spec."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prism_bench import In, KernelSpec, Launch, Out, Size, Variant, Workload, exact, integers

FAULT = "_fault"  # ends the name of the variant that has the fault


@dataclass(frozen=True)
class Pair:
    """One fault of a kernel of `n` numbers, and how the kernel is launched.

    `fault` has the fields of the launch that are others where it has the fault. A kernel with an `entry` is the same in
    both forms; others are templates of whether they have the fault.
    """

    name: str
    meaning: str
    n: int = 256
    block: int | tuple[int, ...] = 64
    launch: Mapping[str, Any] = field(default_factory=dict[str, Any])
    fault: Mapping[str, Any] = field(default_factory=dict[str, Any])
    entry: str = ""

    def variants(self) -> dict[str, Variant]:
        """Return the form that is right, and the one that has the fault."""
        return {
            self.name: self._variant(f"{self.meaning}: mended", self.launch, "false"),
            f"{self.name}{FAULT}": self._variant(self.meaning, {**self.launch, **self.fault}, "true"),
        }

    def _variant(self, meaning: str, launch: Mapping[str, Any], has_fault: str) -> Variant:
        fields = {"grid": 1, "block": self.block, "entry": self.entry or f"{self.name}<{has_fault}>", **launch}
        sizes = Workload(n=self.n)
        return Variant(meaning, launch=lambda: Launch(**fields), workloads={"S0": sizes}, edges=(sizes,))


def spec_of(pairs: Sequence[Pair]) -> KernelSpec:
    """Return a spec with the pairs as variants of the plain kernel, `doubled`."""
    return KernelSpec(
        entry="doubled",
        arguments=(In("x", "n", fill=integers(1, 9)), Out("y", "n"), Size("n")),
        launch=lambda n: Launch(grid=-(-n // 64), block=64),
        reference=lambda x: 2 * x,
        tolerance=exact(),
        workloads={"S0": Workload(n=256)},
        edges=(Workload(n=256),),
        variants={name: variant for pair in pairs for name, variant in pair.variants().items()},
    )
