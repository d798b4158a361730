"""Job of a run: some groups of its cases, verified and timed on one board, every result sent as it comes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from prism_bench.catalogue import Catalogue, discover
from prism_bench.extensions.fleet.describe import folder_of
from prism_bench.extensions.fleet.job import JobChannel
from prism_bench.io.workers.process import WorkerDied
from prism_bench.record.run_record import CaseResult, encode_case
from prism_bench.run.catalogue_run import Run
from prism_bench.run.driver import Progress
from prism_bench.run.settings import Settings, from_plain

CALL = f"{__name__}:measure"


class StreamedRun(Run):
    """A run that sends what it keeps; its own process keeps it too, for the end of the job."""

    def __init__(self, catalogue: Catalogue, backend: str, settings: Settings, channel: JobChannel) -> None:
        self._channel = channel
        self._sent: dict[str, int] = {}
        super().__init__(catalogue, backend, settings, self._progress)

    def _progress(self, event: Progress) -> None:
        self._channel.send({"task": event.task, "done": event.done, "total": event.total})

    def keep(self, task: str, results: Sequence[CaseResult]) -> None:
        super().keep(task, results)
        self.flush()

    def lose(self, death: WorkerDied, task: str) -> None:
        super().lose(death, task)
        self.flush()

    def flush(self) -> None:
        """Send the results that were not sent yet."""
        new = [one for name, results in self.results.items() for one in results[self._sent.get(name, 0) :]]
        self._sent = {name: len(results) for name, results in self.results.items()}
        if new:
            self._channel.send({"results": [encode_case(result) for result in new], "facts": self.facts})


@cache
def _catalogue(folder: Path, digest: str) -> Catalogue:
    """Return the catalogue of that content, read once for all jobs of this worker."""
    return discover(folder)


def measure(order: dict[str, Any], channel: JobChannel) -> dict[str, Any]:
    """Verify and time the order's `tasks` and `anchors`; send every result as it comes, and return the run's facts."""
    catalogue = _catalogue(folder_of(order["catalogue"]), order["digest"])
    settings = replace(from_plain(order["settings"]), known_seconds=order["known_seconds"])
    driven = StreamedRun(catalogue, order["backend"], settings, channel)
    cases, anchors = ([catalogue.anywhere(task) for task in order[which]] for which in ("tasks", "anchors"))
    driven.measure(cases, anchors=anchors)
    driven.flush()
    return {
        "facts": driven.facts, "protocol": driven.protocol, "monitor": driven.monitor, "spent": driven.spent(),
        "results": sum(map(len, driven.results.values())),
    }  # fmt: skip
