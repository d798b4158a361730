"""Settings of the plugin: flags of the command line, else `[tool.prism-bench.pytest]` of the project."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from prism_bench.errors import UsageError

NOISE = 0.01  # the relative excess below which nothing is called missed
KNOWN = ("off", "backend", "records", "noise", "catalogue")


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
    """Return the settings of a session; a UsageError where the project's table holds what is not known."""
    table = _table(config.rootpath)
    odd = [name for name in table if name not in KNOWN]
    if odd:
        raise UsageError(f"[tool.prism-bench.pytest] {odd[0]}: not known; known are {', '.join(KNOWN)}")
    records = config.getoption("--prism-records") or table.get("records") or "reports/runs"
    catalogue = table.get("catalogue")
    return PluginSettings(
        config.rootpath,
        config.rootpath / str(records),
        str(config.getoption("--prism-backend") or table.get("backend") or "cuda"),
        bool(config.getoption("--prism-off") or table.get("off", False)),
        _noise(table.get("noise", NOISE)),
        config.rootpath / str(catalogue) if catalogue else None,
    )


def _noise(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise UsageError(f"[tool.prism-bench.pytest] noise = {value!r}: give a share from 0 to 1, such as 0.01")
    return float(value)


def _table(root: Path) -> dict[str, Any]:
    path = root / "pyproject.toml"
    try:
        tables: Any = tomllib.loads(path.read_text()) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: not a readable TOML file ({error})") from error
    return dict(tables.get("tool", {}).get("prism-bench", {}).get("pytest", {}))
