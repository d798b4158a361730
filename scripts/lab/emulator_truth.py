"""Every kernel and variant on the emulator and on the GPU, compared: a table in reports/emulator/<machine>.csv."""

import argparse
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from lab import REPOSITORY
from prism_bench.backends import Backend, open_backend
from prism_bench.backends.emulator import refusal
from prism_bench.catalogue import built_in
from prism_bench.io.files import Due, Saver, allowed, held
from prism_bench.io.installation import host_special
from prism_bench.io.workers import end_with_parent
from prism_bench.record import store
from prism_bench.spec.case import Case
from prism_bench.spec.inputs import AnyArray, InputArray
from prism_bench.spec.tolerance import Comparison, compare
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv

COLUMNS = (
    "kernel", "variant", "cases", "outputs", "elements", "largest_absolute", "largest_relative", "place", "verdict",
)  # fmt: skip
FAILED = "not compared"
NOTHING = f"{FAILED}: nothing to compare with"
NOT_EMULATED = f"{FAILED}: not emulated"
BOTH_MAY_ERR = 2.0  # each side may be one tolerance from the reference, so two from the other


@dataclass(frozen=True)
class Difference:
    """One output of one case: `found` has the first backend's values as actual, the second's as expected."""

    case: str
    output: str
    tolerance: str
    found: Comparison

    @property
    def place(self) -> str:
        """`out[3, 4]`: the element that most exceeds what it is allowed, or differs most."""
        return f"{self.output}[{', '.join(map(str, self.found.place))}] of {self.case}"

    def __str__(self) -> str:
        found = self.found
        return (
            f"{self.place}: {found.actual:.9g} against {found.expected:.9g} ({self.tolerance}, twice; normwise "
            f"{found.norm_error:.2g}); {found.differing} of {found.compared} differ"
        )


def differences(one: Backend, other: Backend, case: Case, seed: int = 0) -> list[Difference]:
    """Run the case on both and compare every output that its reference gives, within twice its own tolerance."""
    inputs = case.inputs(seed)
    ours, theirs = (_outputs(backend, case, inputs) for backend in (one, other))
    arrays = {name: array.on(np) for name, array in inputs.items()}
    golden = case.golden and case.golden.expected  # golden data may leave some outputs out
    names = list(golden or [output.name for output in case.spec.outputs])
    return [_difference(case, name, ours[name], theirs[name], arrays) for name in names]


def kernels(filters: Iterable[str] = ()) -> list[str]:
    """Return every kernel and variant that has outputs to compare, as `matmul` and `matmul:naive`."""
    return list(dict.fromkeys(case.kernel for case in built_in().edges(filters) if case.spec.outputs))


def row(kernel: str, one: str, other: str) -> dict[str, object]:
    """Return a line of the comparison's table: all edge and golden cases of a kernel or variant on both backends."""
    cases = built_in().edges_of(kernel)
    return _line(kernel, cases, lambda case: differences(_opened(one), _opened(other), case))


def recorded_row(kernel: str, one: str, verified: Mapping[str, tuple[dict[str, Any], ...]]) -> dict[str, object]:
    """Return the same against a record: `verified` has its verification of each case. One element is compared.

    A record keeps of an output the element that came nearest to its limit, or was furthest from the reference.
    """
    cases = [case for case in built_in().edges_of(kernel) if case.name in verified]
    return _line(kernel, cases, lambda case: recorded(_opened(one), case, verified[case.name]))


def recorded(backend: Backend, case: Case, entries: Iterable[dict[str, Any]]) -> Iterator[Difference]:
    """Compare what `backend` writes to the places that a record has values of, within twice the tolerance."""
    for entry in entries:
        if entry.get("place") and entry["compared"]:
            inputs = case.inputs(entry["seed"])
            arrays = {name: array.on(np) for name, array in inputs.items()}
            ours = _outputs(backend, case, inputs)[entry["output"]]
            theirs, place, value = ours.copy(), tuple(entry["place"]), float(entry["actual"])
            if float(ours[place]) != value:  # else they are the same double: a record holds no more
                theirs[place] = value
            difference = _difference(case, entry["output"], ours, theirs, arrays)
            yield replace(difference, found=replace(difference.found, compared=1))


def split(cases: Iterable[Case]) -> tuple[list[Case], dict[str, str]]:
    """Return the cases that the emulator runs, and by name why it cannot run each of the others."""
    reasons = {case: refusal(case) for case in cases}
    runs = [case for case, reason in reasons.items() if reason is None]
    return runs, {case.name: reason for case, reason in reasons.items() if reason is not None}


def _line(kernel: str, cases: list[Case], compared: Callable[[Case], Iterable[Difference]]) -> dict[str, object]:
    name, _, variant = kernel.partition(":")
    emulated, lacking = split(cases)
    line: dict[str, object] = {"kernel": name, "variant": variant, "cases": len(emulated or cases)}
    if lacking and not emulated:
        return {**line, "verdict": f"{NOT_EMULATED}: {next(iter(lacking.values()))}"}
    try:
        found = [difference for case in emulated for difference in compared(case)]
        return {**line, **summary(found)} if found else {**line, "verdict": NOTHING}
    except Exception as error:  # what one kernel meets must not cost the others their comparison
        return {**line, "verdict": f"{FAILED}: {type(error).__name__}: {error}"}


def summary(found: list[Difference]) -> dict[str, object]:
    """Return the verdict on the differences of one kernel."""
    largest = max(found, key=lambda one: (not one.found.passed, one.found.max_error))
    apart = [one for one in found if not one.found.passed]
    return {
        "outputs": len(found),
        "elements": sum(one.found.compared for one in found),
        "largest_absolute": max(one.found.max_error for one in found),
        "largest_relative": max(one.found.max_relative for one in found),
        "place": largest.place if largest.found.max_error > 0 else "",
        "verdict": f"unequal in {count_text(len(apart), 'output')}" if apart else "agrees",
    }


_opened = cache(open_backend)


def _outputs(backend: Backend, case: Case, inputs: Mapping[str, InputArray]) -> dict[str, AnyArray]:
    """Return what the case leaves in its outputs, on the host."""
    with backend.prepare(case, inputs) as runnable:
        runnable()
        arrays = runnable.arrays([output.name for output in case.spec.outputs])
        return {name: array.get() if hasattr(array, "get") else array.copy() for name, array in arrays.items()}


def _difference(
    case: Case, name: str, actual: AnyArray, expected: AnyArray, arrays: Mapping[str, AnyArray]
) -> Difference:
    allowance = case.correctness.allowance(name, arrays, np, host_special)
    tolerance = allowance.tolerance
    twice = {name: BOTH_MAY_ERR * getattr(tolerance, name) for name in ("relative", "ulps", "floor", "floor_of_peak")}
    normwise = None if tolerance.normwise is None else BOTH_MAY_ERR * tolerance.normwise
    doubled = replace(tolerance, **twice, normwise=normwise)
    terms = BOTH_MAY_ERR * allowance.terms
    magnitude, depth = allowance.magnitude, allowance.depth
    found = compare(actual, expected, doubled, np, terms=terms, magnitude=magnitude, depth=depth)
    return Difference(case.name, name, doubled.name, found)


AgreementLine = dict[str, object]
MakeLine = Callable[[str], AgreementLine]  # of a kernel or variant by its name


def machine(backend: str) -> str:
    """Return `nvidia-h200` for the device of that name; call it in another process: a parent must not hold a device."""
    return "-".join(open_backend(backend).facts()["device"].lower().split())


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
    save: Saver[list[AgreementLine], None] = Saver(lambda rows: write_csv(rows, output, COLUMNS))
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", help="kernels or kernel:variant; all unless named")
    parser.add_argument("--against", default="cuda", help="the backend that the emulator is compared with")
    parser.add_argument("--record", type=Path, help="compare with the values in a run record: no device is needed")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=Path, help="where to write the table")
    chosen = parser.parse_args()
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
