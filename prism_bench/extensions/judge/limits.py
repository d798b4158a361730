"""Limits of time of a jailed process."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CellLimits:
    """Seconds that compiling a source, and one launch on the emulator, may take; None: any.

    `patience` is the processor time after which a launch without progress ends with a finding.
    """

    compile_seconds: float | None = 180.0
    launch_seconds: float | None = 120.0
    patience: float = 10.0


USUAL = CellLimits()
