"""Alerts: what somebody should know, and what makes an alert the same on another day."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prism_bench.io.documents import json_line


@dataclass(frozen=True)
class Alert:
    """`subject` is what the alert is about (a case, a device), None where it is about the whole `machine`.

    `identity` holds whatever else sets it apart from other alerts of its `kind` (a metric, a limit). `state` is the
    state of the world it was found in (code, driver); `severity` how bad it is, larger is worse. These two are
    evidence: they change without making it another alert. `reproduce` is the command that shows it again.
    """

    source: str
    machine: str
    kind: str
    subject: str | None
    gravity: str
    message: str
    identity: tuple[str, ...] = ()
    state: str = ""
    severity: float | None = None
    reproduce: str | None = None
    facts: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits; the same for the same thing on any day."""
        parts = [self.source, self.machine, self.kind, self.subject, *self.identity]
        return hashlib.sha256(json_line(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Occasion:
    """Who looked (`source`), what a message is headed with, and the state in which each subject was found."""

    source: str
    heading: str
    states: Mapping[str | None, str]
