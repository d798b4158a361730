"""Every kernel and variant on the emulator and on the GPU, compared: a table in reports/emulator/<machine>.csv."""

import argparse
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from pathlib import Path

from prism_bench import store
from prism_bench.backends import open_backend
from prism_bench.interrupts import allowed, held
from prism_bench.saving import Due, Saver
from prism_bench.studies import REPOSITORY
from prism_bench.studies.backend_agreement import COLUMNS, FAILED, NOT_EMULATED, NOTHING, kernels, recorded_row, row
from prism_bench.studies.csv_table import write_table
from prism_bench.workers.child import end_with_parent

AgreementLine = dict[str, object]
MakeLine = Callable[[str], AgreementLine]  # of a kernel or variant by its name


def machine(backend: str) -> str:
    """Return `nvidia-h200` for the device of that name; call it in another process: a parent must not hold a device."""
    return "-".join(open_backend(backend).facts()["device"].lower().split())


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", help="kernels or kernel:variant; all unless named")
    parser.add_argument("--against", default="cuda", help="the backend that the emulator is compared with")
    parser.add_argument("--record", type=Path, help="compare with the values in a run record: no device is needed")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=Path, help="where to write the table")
    return parser.parse_args()


def against_record(path: Path) -> tuple[str, list[str], MakeLine]:
    """Return the table's name, the kernels, and the function that makes a line of each from the values of a record."""
    record = store.read(path)
    verified = {case.name: case.verification for case in record.cases if case.label in ("edge", "golden")}
    known = {case.kernel for case in record.cases} | {f"{case.kernel}:{case.variant}" for case in record.cases}
    names = [name for name in kernels() if name in known]
    return f"{record.machine['id']}-recorded", names, partial(recorded_row, one="emulator", verified=verified)


def lines(pool: Executor, make: MakeLine, names: Sequence[str]) -> Iterator[AgreementLine]:
    """Yield the lines in order; one that could not be made is made again in a fresh process.

    An error of one kernel may spoil the device for the kernels that its process runs next.
    """
    for name, line in zip(names, pool.map(make, names), strict=True):
        verdict = str(line["verdict"])
        failed = verdict.startswith(FAILED) and not verdict.startswith((NOTHING, NOT_EMULATED))
        yield alone(make, name) if failed else line


def alone(make: MakeLine, name: str) -> AgreementLine:
    """Make a line in a fresh process."""
    with new_pool(1) as pool:
        return pool.submit(make, name).result()


def new_pool(workers: int) -> ProcessPoolExecutor:
    """Return a pool of processes that hold nothing of this one and end with it."""
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), end_with_parent)


def write(lines: Iterable[AgreementLine], output: Path) -> int:
    """Write the table as far as it got; return how many lines disagree, without kernels that are not emulated."""
    kept: list[AgreementLine] = []
    differing, due = 0, Due()
    save: Saver[list[AgreementLine], None] = Saver(lambda rows: write_table(rows, output, COLUMNS))
    try:
        with allowed():
            for line in lines:
                kept.append(line)
                differing += line["verdict"] != "agrees" and not str(line["verdict"]).startswith(NOT_EMULATED)
                print(line["kernel"], line["variant"], line["verdict"], flush=True)
                if due():
                    save(kept)
    finally:
        save.finish(kept)
        if code := save.exit_code():
            sys.exit(code)
    return differing


def main() -> None:
    """Compare and write the table; exit with the number of lines that disagree, where some do."""
    chosen = options()
    with new_pool(chosen.workers) as pool:
        if chosen.record:
            name, names, make = against_record(chosen.record)
        else:
            name, names = pool.submit(machine, chosen.against).result(), kernels(chosen.kernels)
            make = partial(row, one="emulator", other=chosen.against)
        output = chosen.output or REPOSITORY / "reports" / "emulator" / f"{name}.csv"
        with held():  # what was compared by the time that a signal comes is kept
            differing = write(lines(pool, make, names), output)
    sys.exit(f"{differing} of {len(names)} do not agree" if differing else 0)
