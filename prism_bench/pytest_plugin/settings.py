"""Settings of the plugin: flags of the command line, else `[tool.prism-bench.pytest]` of the project."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from prism_bench.io import project

NOISE = 0.01  # the relative excess below which nothing is called missed


@dataclass(frozen=True)
class PytestKeys:
    """Keys of `[tool.prism-bench.pytest]`: skip all, the backend, the folder of records, the noise."""

    off: bool = False
    backend: str | None = None
    records: str | None = None
    noise: float = NOISE

    def __post_init__(self) -> None:
        if not 0 <= self.noise < 1:
            raise ValueError(f"noise: {self.noise}; give a share from 0 to 1, such as 0.01")


@dataclass(frozen=True)
class PluginSettings:
    """Where and how a session measures.

    `root` is pytest's root folder, `records` the folder of run records, `catalogue` that of kernels that are named;
    `noise` the smallest relative excess over a limit that fails a test.
    """

    root: Path
    records: Path
    backend: str = "cuda"
    off: bool = False
    noise: float = NOISE
    catalogue: Path | None = None


def settings_of(config: pytest.Config) -> PluginSettings:
    """Return the settings of a session; a UsageError where the project's configuration is not right."""
    found = project.current(config.rootpath)
    keys = found.section("pytest", PytestKeys) if found else PytestKeys()
    records = config.getoption("--prism-records") or keys.records
    storage = found.storage if found else config.rootpath / project.STORAGE
    return PluginSettings(
        config.rootpath,
        config.rootpath / str(records) if records else storage / "runs",
        str(config.getoption("--prism-backend") or keys.backend or "cuda"),
        bool(config.getoption("--prism-off")) or keys.off,
        keys.noise,
        found.catalogue if found else None,
    )
