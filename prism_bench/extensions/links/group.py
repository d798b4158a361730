"""Groups of GPUs: what is prepared on all of them, launched together, and timed as one."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from prism_bench.extensions.links.operations import GroupCase
from prism_bench.record.measurement import Sample


class GroupCall(AbstractContextManager["GroupCall"]):
    """A case prepared on every device of a group: inputs are there, outputs are poisoned."""

    @abstractmethod
    def __call__(self) -> None:
        """Enqueue it once on every device."""

    @abstractmethod
    def poison(self) -> None:
        """Fill the outputs with what no launch writes."""

    @abstractmethod
    def outputs(self) -> list[np.ndarray]:
        """Return the output of every device, after all work is done."""

    @abstractmethod
    def sample(self) -> Sample:
        """Release all devices together and time the call: the seconds of the slowest device between its events."""

    def evidence(self) -> dict[str, Any]:
        """Return what is known of the code."""
        return {}

    def __exit__(self, *exception: object) -> None:
        return None


class DeviceGroup(ABC):
    """Devices of one host that work together."""

    @abstractmethod
    def prepare(self, case: GroupCase, inputs: Sequence[dict[str, np.ndarray]]) -> GroupCall:
        """Prepare the case with the inputs of each device; BackendUnavailable with the reason where it cannot run."""

    def facts(self) -> dict[str, Any]:
        """Return what a result keeps of the devices and their links."""
        return {}
