"""What a worker uses: memory that stays, a queue kernel that runs next to the host, and launches as a fallback."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module

import numpy as np

from prism_bench.errors import UsageError
from prism_bench.extensions.persistent.board import Board
from prism_bench.extensions.persistent.program import Program, Served
from prism_bench.spec.case import Device

MACHINES = {"cuda": "prism_bench.extensions.persistent.cuda", "emulator": "prism_bench.extensions.persistent.emulated"}


class Machine(ABC):
    """One device, or the emulator, for one worker."""

    device: Device

    @abstractmethod
    def settle_in(self, served: Served) -> None:
        """Allocate the workspace and lay every array out with its first byte."""

    @abstractmethod
    def serve(self, served: Served, board: Board) -> None:
        """Start the queue kernel on the board; BackendUnavailable names the reason where it cannot run here."""

    @abstractmethod
    def serving(self) -> bool:
        """Return whether the queue kernel still runs. An error that ended it is raised."""

    @abstractmethod
    def launcher(self, served: Served, program: Program) -> Callable[[], None]:
        """Return a function that launches the program's kernels one after another and waits for the last."""

    @abstractmethod
    def write(self, offset: int, values: np.ndarray) -> None:
        """Copy the values into the workspace; they are there when it returns."""

    @abstractmethod
    def read(self, offset: int, nbytes: int) -> bytes:
        """Return the workspace's bytes from `offset` on."""


def open_machine(backend: str) -> Machine:
    """Return the machine of that backend's name; BackendUnavailable where it is missing."""
    if backend not in MACHINES:
        raise UsageError(f"backend '{backend}' serves no queue; {' and '.join(MACHINES)} do")
    return import_module(MACHINES[backend]).open_machine()
