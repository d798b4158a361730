"""Where the things are kept that a site tells about: the records, and what lies in the folders beside theirs."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Places:
    """`runs` holds run records by machine; everything else is kept beside it."""

    runs: Path

    @property
    def noise(self) -> Path:
        return self.runs.parent / "noise"

    @property
    def resources(self) -> Path:
        """The table of compiled resources."""
        return self.runs.parent / "compile" / "resources.csv"

    @property
    def profiles(self) -> Path:
        """Records of profilers, by machine."""
        return self.runs.parent / "profiles"
