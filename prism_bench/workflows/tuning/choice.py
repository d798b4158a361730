"""Choices: what to launch for a case, what the default costs, and when a choice is stale."""

from collections.abc import Mapping
from dataclasses import dataclass

from prism_bench.workflows.tuning.bucket import bucket_of

TOOLCHAIN = ("driver", "nvrtc", "compiler")


@dataclass(frozen=True)
class TuningChoice:
    """One kernel (with its variant) at one workload, launched in `configuration` or by `default`.

    `seconds` are the medians of the default and of the configuration; `speedup` is the default's time over the
    configuration's with its 95 % `interval`, both 1 where the default is kept. `tried` configurations were launched,
    `refused` of them were wrong or failed. `source` is a hash of what is launched, `toolchain` what turned it into
    machine code and ran it.
    """

    kernel: str
    workload: Mapping[str, object]
    configuration: Mapping[str, object]
    default: Mapping[str, object]
    seconds: tuple[float, float]
    speedup: float
    interval: tuple[float, float]
    reason: str
    tried: int
    refused: int
    source: str
    toolchain: Mapping[str, str]
    created: str
    commit: str | None = None

    @property
    def adopted(self) -> bool:
        """Whether something else than the default is launched."""
        return dict(self.configuration) != dict(self.default)

    @property
    def bucket(self) -> dict:
        """The size class that it holds for."""
        return bucket_of(self.workload)

    @property
    def key(self) -> tuple:
        """What a newer choice replaces: the same kernel, size class and toolchain."""
        return self.kernel, tuple(self.bucket.items()), tuple(sorted(self.toolchain.items()))

    def stale(self, source: str, toolchain: Mapping[str, str]) -> str | None:
        """Return why the choice does not hold for this source under this toolchain; None if it does."""
        changed = [
            f"{name} {self.toolchain.get(name, '-')} became {value}"
            for name, value in toolchain.items()
            if self.toolchain.get(name) != value
        ]
        changed += ["the source changed"] if source != self.source else []
        return ", ".join(changed) or None


def toolchain_of(facts: Mapping) -> dict[str, str]:
    """Return what turns a source into machine code and runs it, with its version, from a device's facts."""
    software = facts.get("software", {})
    found = {name: str(software[name]) for name in TOOLCHAIN if software.get(name)}
    capability = facts.get("compute_capability")
    return found | ({"compute_capability": str(capability)} if capability else {})
