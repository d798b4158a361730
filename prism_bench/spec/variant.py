"""Variants of a kernel, and chains: the stages of fusion among them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prism_bench.spec.arguments import Array, Scalar, Scratch

STAGES = ("baseline", "partial", "full", "persistent")


@dataclass(frozen=True)
class Variant:
    """Another implementation of the same spec: the fields of KernelSpec that differ, by name."""

    meaning: str
    changes: Mapping[str, Any]

    def __init__(self, meaning: str, **changes: Any) -> None:
        object.__setattr__(self, "meaning", meaning)
        object.__setattr__(self, "changes", changes)


@dataclass(frozen=True)
class Chain:
    """Stages of fusion: for each of `STAGES` the variant that does it, None for the kernel itself.

    `between` names the scratch arrays that launches hand on to later ones, which fusion removes; all other scratch is a
    launch's own workspace.
    """

    name: str
    stages: Mapping[str, str | None]
    between: tuple[str, ...] = ()

    def complaint(self, arguments: Iterable[Array | Scalar], variants: Mapping[str, Variant]) -> str | None:
        """Return what in the chain contradicts a spec with these arguments and variants, or None."""
        every = [*arguments, *(a for variant in variants.values() for a in variant.changes.get("arguments", ()))]
        scratch = {array.name for array in every if isinstance(array, Scratch)}
        odd = {
            "stage": [stage for stage in self.stages if stage not in STAGES],
            "variant": [name for name in self.stages.values() if name is not None and name not in variants],
            "scratch array": [name for name in self.between if name not in scratch],
        }
        wrong = [f"there is no {kind} {', '.join(names)}" for kind, names in odd.items() if names]
        missing = [] if "baseline" in self.stages else ["it has no baseline"]
        return f"chain '{self.name}': {'; '.join(wrong + missing)}" if wrong or missing else None
