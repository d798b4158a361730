"""Work of a fleet that runs a catalogue: what each board measured so far, as one record."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from prism_bench.catalogue import Catalogue
from prism_bench.extensions.fleet.board import FleetBoard
from prism_bench.extensions.fleet.describe import place_of
from prism_bench.extensions.fleet.dispatch import BoardRefused, BoardState
from prism_bench.extensions.fleet.measured_block import CALL
from prism_bench.extensions.fleet.placement import CaseGroup
from prism_bench.io.files import CACHE_REFUSED
from prism_bench.record import identity
from prism_bench.record.run_record import CaseResult, RunRecord, decode_case
from prism_bench.run.catalogue_run import Run
from prism_bench.run.lanes import lanes_for
from prism_bench.run.merge import merge
from prism_bench.run.record_builder import RunClock
from prism_bench.run.session import result_of
from prism_bench.run.settings import Settings, to_plain
from prism_bench.spec.case import Case


@dataclass
class _BoardRun:
    """What one board measured: `run` holds what is finished, `streamed` the results of the job under way."""

    board: FleetBoard
    run: Run
    streamed: list[CaseResult] = field(default_factory=list[CaseResult])

    def keep(self, results: Iterable[CaseResult]) -> None:
        for result in results:
            self.run.results.setdefault(result.name, []).append(result)


class CatalogueWork:
    """Runs cases of a catalogue on the boards of a fleet; every board measures the anchors once, in its first job."""

    call = CALL

    def __init__(
        self, catalogue: Catalogue, backend: str, settings: Settings, cases: Iterable[Case], *,
        anchors: Iterable[Case] = (), lanes: int | None = None, keep: Callable[[], object] = lambda: None,
    ) -> None:  # fmt: skip
        """Verify in `lanes` processes, by default as many as the board's cores allow.

        `keep` is called after every event that brought results.
        """
        self._catalogue, self._backend, self._settings, self._keep = catalogue, backend, settings, keep
        self._lanes, self._anchors = lanes, {case.name: case.task for case in anchors}
        self._chosen = {case.name for case in cases}
        self._boards: dict[str, _BoardRun] = {}
        self.clock = RunClock()

    @property
    def has_results(self) -> bool:
        """Whether any result has arrived."""
        return any(one.run.has_results or one.streamed for one in self._boards.values())

    def order(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> dict[str, Any]:
        mine = self._of(board)
        mine.streamed = []
        lanes = self._lanes or lanes_for(self._backend, len(board.claim.cores))
        return {
            "backend": self._backend, "catalogue": place_of(Path(self._catalogue.folder)),
            "digest": board.versions.get("catalogue", ""),
            "settings": to_plain(replace(self._settings, lanes=lanes)),
            "known_seconds": self._settings.known_seconds,  # plain settings, which workers get, lack it
            "tasks": list(dict.fromkeys(task for group in groups for task in group.tasks)),
            "anchors": [task for name, task in self._anchors.items() if name not in mine.run.results],
        }  # fmt: skip

    def event(self, board: FleetBoard, groups: Sequence[CaseGroup], event: dict[str, Any], state: BoardState) -> None:
        mine = self._of(board)
        state.follow(event)
        if "results" not in event:
            return
        mine.run.facts = mine.run.facts or event["facts"]
        results = [decode_case(plain) for plain in event["results"]]
        mine.streamed += results
        clocks = [one.clock for result in results for one in result.measurements if one.clock]
        state.clock = clocks[0] if clocks else state.clock
        self._save()

    def done(self, board: FleetBoard, groups: Sequence[CaseGroup], result: Any) -> None:
        mine = self._of(board)
        results, mine.streamed = mine.streamed, []
        full = next((one.reason for one in results if (one.reason or "").startswith(CACHE_REFUSED)), None)
        if full:
            raise BoardRefused(full)
        if len(results) != result["results"]:
            raise BoardRefused(f"{len(results)} of {result['results']} results arrived")
        mine.keep(results)
        mine.run.facts, mine.run.protocol = result["facts"], result["protocol"]
        mine.run.monitor += result["monitor"]
        mine.run.spend(result["spent"])
        self._save()

    def lost(self, board: FleetBoard, groups: Sequence[CaseGroup]) -> list[CaseGroup]:
        """Keep the groups of a lost job that have all results; return the others."""
        mine = self._of(board)
        streamed, mine.streamed = mine.streamed, []
        whole = [group for group in groups if self._is_whole(group, streamed)]
        kernels, anchors = {kernel for group in whole for kernel in group.kernels}, self._measured_anchors(streamed)
        mine.keep(result for result in streamed if result.kernel in kernels or result.name in anchors)
        return [group for group in groups if group not in whole]

    def give_up(self, board: FleetBoard, group: CaseGroup, reason: str) -> None:
        cases = [self._catalogue.anywhere(task) for task in group.tasks]
        mine = self._of(board)
        mine.run.facts = mine.run.facts or dict(board.facts)
        mine.keep(result_of(case, "crashed", f"{case.name}: {reason}") for case in cases)

    def finished(self) -> int:
        """Return how many of the chosen cases have all their results."""
        return sum(
            name in self._chosen and self._is_measured(results)
            for one in self._boards.values()
            for name, results in self._results(one).items()
        )

    def record(self, complete: bool) -> RunRecord:
        """Return one record of what all boards measured, those results included that have arrived of running jobs."""
        span = self.clock.span(complete)
        parts = [self._part(one, complete) for one in self._boards.values() if one.run.results or one.streamed]
        if not parts:
            return Run(self._catalogue, self._backend, self._settings).record(span)
        if len(parts) == 1:
            return replace(parts[0], duration=round(span.seconds, 1))
        found = merge([(f"board {number}", part) for number, part in enumerate(parts, 1)])
        return replace(found, created=identity.timestamp(span.started), duration=round(span.seconds, 1))

    def _save(self) -> None:
        if self.has_results:
            self._keep()

    def _part(self, one: _BoardRun, complete: bool) -> RunRecord:
        """Return the record of one board."""
        run = Run(self._catalogue, self._backend, self._settings)
        run.facts, run.protocol, run.monitor = one.run.facts, one.run.protocol, one.run.monitor
        run.results = self._results(one)
        run.spend(one.run.spent())
        record = run.record(self.clock.span(complete))
        return replace(
            record, machine={**record.machine, "host": dict(one.board.host)}, software=dict(one.board.software)
        )

    def _results(self, one: _BoardRun) -> dict[str, list[CaseResult]]:
        found = {name: list(results) for name, results in one.run.results.items()}
        for result in one.streamed:
            found.setdefault(result.name, []).append(result)
        return found

    def _measured_anchors(self, results: Sequence[CaseResult]) -> set[str]:
        """Return the names of the anchors that are wholly measured."""
        return {name for name in self._anchors if self._is_measured([one for one in results if one.name == name])}

    def _is_whole(self, group: CaseGroup, results: Sequence[CaseResult]) -> bool:
        names = [self._catalogue.anywhere(task).name for task in group.tasks]
        return all(self._is_measured([one for one in results if one.name == name]) for name in names)

    def _is_measured(self, results: Sequence[CaseResult]) -> bool:
        """Return whether a case was timed in every process, or will not be."""
        timed = sum(bool(result.measurements) for result in results)
        return timed >= self._settings.processes or any(result.status != "ok" for result in results)

    def _of(self, board: FleetBoard) -> _BoardRun:
        if board.key not in self._boards:
            self._boards[board.key] = _BoardRun(board, Run(self._catalogue, self._backend, self._settings))
        return self._boards[board.key]
