"""Folders of what a site shows: the records, and what is kept next to them."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Places:
    """`runs` holds run records by machine; everything else is in folders next to it."""

    runs: Path

    @property
    def noise(self) -> Path:
        return self.runs.parent / "noise"

    @property
    def rounds(self) -> Path:
        """Records of the rounds in which kernels were made faster: true figures, but no runs of the trend."""
        return self.runs.parent / "rounds"

    @property
    def languages(self) -> Path:
        """Records of the catalogue's forms in all languages, by machine: true figures, but no runs of the trend."""
        return self.runs.parent / "languages"

    @property
    def tuning(self) -> Path:
        return self.runs.parent / "tuning"

    @property
    def memory(self) -> Path:
        """What `prism-bench memory --json` and `prism-bench pipeline --json` printed, and their records."""
        return self.runs.parent / "memory"

    @property
    def resources(self) -> Path:
        """The table of compiled resources."""
        return self.runs.parent / "compile" / "resources.csv"

    @property
    def items(self) -> Path:
        """Times of items that a persistent kernel served, by machine."""
        return self.runs.parent / "persistent"

    @property
    def profiles(self) -> Path:
        """Records of profilers, by machine."""
        return self.runs.parent / "profiles"
