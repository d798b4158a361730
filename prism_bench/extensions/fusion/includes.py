"""The Python that the specs of a catalogue share, read by name where a fused kernel's spec needs it."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Includes:
    """The folders `include` and `peers` of a catalogue; `package` is what the catalogue's specs are loaded into."""

    package: str

    def value(self, module: str, name: str) -> Any:
        """Return `name` of a module below include/: `arrays.map_arrays` is include/arrays/map_arrays.py."""
        return getattr(import_module(f"{self.package}.include.{module}"), name)

    def peer(self, module: str, name: str) -> Any:
        """Return `name` of peers/<module>.py."""
        return getattr(import_module(f"{self.package}.peers.{module}"), name)
