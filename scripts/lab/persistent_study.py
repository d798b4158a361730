"""Cost of an item of the persistent executor, next to the same chain as a CUDA graph and as launches.

Every chain with a persistent stage is served at S0, verified against its reference, and timed by the host's clock from
request to answer, in turn with its graphs: several rounds, each with a new worker process. The empty item shows the
least that an item takes. With --faults the executor's tests run on the device first: killed workers, endless items,
full queues.

The record goes to reports/persistent/<machine>/, where `prism-bench fuse` finds it; it is written anew after every
chain, so that what was measured is kept however the script ends. Ends with 1 where a test fails or an output is wrong,
2 where the executor is not available, a signal ended the script or nothing could be kept, 3 where the time was over
before the end.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Table

from lab import REPOSITORY
from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue import discover
from prism_bench.cli.options import out
from prism_bench.errors import PrismBenchError, VerificationFailed
from prism_bench.extensions.persistent import FORMS, Executor, QueueSettings
from prism_bench.extensions.persistent.executor import ServedRunnable
from prism_bench.extensions.persistent.records import (
    EMPTY,
    GRAPH,
    LAUNCH,
    ItemTimes,
    LatencyRecord,
    LatencySamples,
    LatencySizes,
    take_launched,
    take_served,
)
from prism_bench.io.files import Saver, allowed, held
from prism_bench.record.identity import commit_of, machine
from prism_bench.run.verification import complaint, passed, verify_prepared
from prism_bench.spec.case import Case
from prism_bench.units import time_text

OUTPUT = REPOSITORY / "reports" / "persistent"
TESTS = "tests/extensions/persistent"

Complaints = dict[tuple[str, str], str]  # by case and form
Collected = defaultdict[tuple[str, str], LatencySamples]
Rows = tuple[ItemTimes, ...]


def executor_tests_pass(seconds: float) -> bool:
    """Run the executor's tests on the device; return whether they pass. The processes that they start end too."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", TESTS]
    process = subprocess.Popen(command, cwd=REPOSITORY, start_new_session=True)
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        print(f"the tests did not end within {seconds:.0f} s", file=sys.stderr)
        return False
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def chains(names: Sequence[str]) -> dict[str, tuple[Case, list[Case]]]:
    """Return by chain the case that is served at S0, and those of its other stages."""
    from prism_bench.extensions.fusion.benefit import chains_of, stages_of

    found = {chain.name: stages_of(spec, chain, "S0") for spec, chain in chains_of(discover(), names)}
    return {
        name: (stages.pop("persistent"), list({case.name: case for case in stages.values()}.values()))
        for name, stages in found.items()
        if "persistent" in stages
    }


def serve(name: str, case: Case, form: str, options: argparse.Namespace, collected: Collected) -> float:
    """Verify and time the chain in one worker; return the largest error."""
    with Executor({EMPTY: None, name: case}, options.backend, QueueSettings(form=form)) as executor:
        entries = verify_prepared(open_backend("numpy_reference"), ServedRunnable(executor, name, case))
        if not passed(entries):
            raise VerificationFailed(complaint(case, f"{options.backend}, {executor.form}", entries))
        for program, label in ((EMPTY, EMPTY), (name, case.name)):
            take_served(collected[label, executor.form], executor, program, options.sizes)
        if executor.form != form:
            print(f"{name}: served by {executor.form}: {executor.reason}", file=sys.stderr)
        return max((float(entry["max_relative"]) for entry in entries), default=0.0)


def launch(backend: Backend, cases: Sequence[Case], options: argparse.Namespace, collected: Collected) -> Complaints:
    """Time the chain's stages in this process; return by case why one was not timed."""
    complaints: Complaints = {}
    for case in cases:
        try:
            take_launched({form: collected[case.name, form] for form in (GRAPH, LAUNCH)}, backend, case, options.sizes)
        except (PrismBenchError, MemoryError) as error:
            complaints[case.name, f"{GRAPH} and {LAUNCH}"] = str(error)
    return complaints


def measure(
    options: argparse.Namespace, backend: Backend | None, keep: Callable[[Rows], object]
) -> tuple[Complaints, bool]:
    """Measure all rounds; return the complaints and whether it was completed.

    `keep` gets all rows so far after every chain. Without a backend nothing is launched in this process.
    """
    collected: Collected = defaultdict(LatencySamples)
    errors: dict[tuple[str, str], float] = {}
    complaints: Complaints = {}
    wanted = chains(options.chain)
    for number in range(options.rounds):
        for name, (case, others) in wanted.items():
            if time.monotonic() > options.end:
                return complaints, False
            print(f"round {number + 1} of {options.rounds}: {name}", file=sys.stderr)
            for form in FORMS:
                try:
                    errors[case.name, form] = serve(name, case, form, options, collected)
                except PrismBenchError as error:
                    complaints[name, form] = str(error)
            if backend is not None:
                complaints |= launch(backend, others, options, collected)
            keep(tuple(one.times(*key, errors.get(key)) for key, one in collected.items() if one.shares))
    return complaints, True


def finished(measuring: Callable[[], tuple[Complaints, bool]]) -> tuple[Complaints, bool]:
    """Return the result of measuring; where a signal ends it, no complaints and that it was not completed."""
    try:
        with allowed():
            return measuring()
    except KeyboardInterrupt:
        return {}, False


def table(rows: Rows) -> Table:
    """Return the rows as they are printed."""
    grid = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("case", "form", "answer", "quartiles", "p99", "each of many", "error"):
        grid.add_column(column, justify="left" if column in ("case", "form") else "right", overflow="fold")
    for row in rows:
        one = row.answer
        quartiles = f"{time_text(one.low)} to {time_text(one.high)}"
        error = "" if row.error is None else f"{row.error:.1e}"
        grid.add_row(
            row.case, row.form, time_text(one.median), quartiles, time_text(one.p99), time_text(row.each.median), error
        )
    return grid


class GrowingRecord:
    """The record of this run: its rows as they are so far, and the file that holds them."""

    def __init__(self, backend: Backend, folder: Path) -> None:
        self._machine, self._commit = machine(backend.facts()), commit_of(REPOSITORY)[0]
        self._created = datetime.now(UTC).isoformat(timespec="seconds")
        self.path = folder / self._machine["id"] / f"{self._created.replace(':', '')[:17]}.json"
        self.rows: Rows = ()

    def __call__(self, rows: Rows) -> None:
        self.rows = rows
        LatencyRecord(self._machine, self._created, self._commit, rows).write(self.path)


def arguments() -> argparse.Namespace:
    """Return the options of the command line, with the end and the sizes that follow from them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chain", nargs="*", help="chains; all with a persistent stage without")
    parser.add_argument("--backend", default="cuda", choices=("cuda", "emulator"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--answers", type=int, default=2000, help="answers timed in each round")
    parser.add_argument("--faults", action="store_true", help="run the executor's tests on the device first")
    parser.add_argument(
        "--limit-seconds", type=float, default=540.0, help="no chain begins later; tests have half of it"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the folder for the record")
    options = parser.parse_args()
    options.end = time.monotonic() + options.limit_seconds
    options.sizes = LatencySizes(options.answers, bursts=max(1, options.answers // 40))
    return options


def main() -> int:
    """Measure, print and keep what the command line demands; return the exit code."""
    options = arguments()
    try:
        backend = open_backend(options.backend)
        well = executor_tests_pass(options.limit_seconds / 2) if options.faults else True
        record = GrowingRecord(backend, options.output)
        save: Saver[Rows, None] = Saver(record)
        with held():
            found = finished(lambda: measure(options, backend if options.backend == "cuda" else None, save))
            raise SystemExit(report(found, record, save, well))
    except PrismBenchError as error:
        print(f"scripts/persistent: {error}", file=sys.stderr)
        return error.exit_code


def report(found: tuple[Complaints, bool], record: GrowingRecord, save: Saver[Rows, None], well: bool) -> int:
    """Print what was measured; return the exit code."""
    complaints, whole = found
    out().print(table(record.rows))
    for (name, form), words in complaints.items():
        print(f"{name}, {form}: {words}")
    print(f"record: {'nothing was measured' if not record.rows else 'not kept' if save.problem else record.path}")
    return save.exit_code(1 if complaints or not well else 0 if whole else 3)
