"""Results of compute-sanitizer over the catalogue's edges, as a table in reports/sanitizer/<machine>.csv.

The checks are memcheck, racecheck, initcheck and synccheck. Ends with 0 when every check is clean, 1 when one found an
error, 2 when a check could not work, 3 when the time was over before the end.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from multiprocessing import get_context
from pathlib import Path

from prism_bench import identity
from prism_bench.backends import open_backend
from prism_bench.case import Device
from prism_bench.catalogue import discover
from prism_bench.errors import PrismBenchError
from prism_bench.profilers.sanitizer import CHECKS
from prism_bench.run.ahead import compile_ahead
from prism_bench.studies import REPOSITORY
from prism_bench.studies.csv_table import write_table
from prism_bench.studies.sanitizer_sweep import SanitizerSweep, cores, sweep


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kernels", nargs="*", help="kernels, kernel:variant or families; all unless named")
    parser.add_argument("--checks", default=",".join(CHECKS), help="some of " + ", ".join(CHECKS))
    parser.add_argument("--jobs", type=int, default=cores(), help="processes at a time")
    parser.add_argument("--limit-seconds", type=float, default=600.0, help="later checks are reported as not finished")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--catalogue", type=Path)
    parser.add_argument("--output", type=Path, help="where to write the table")
    return parser.parse_args()


def device_of(backend: str) -> tuple[str, Device]:
    """Return the name of the device and its limits, from another process: this one must not hold a device."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_device_here, backend).result()


def _device_here(backend: str) -> tuple[str, Device]:
    opened = open_backend(backend)
    limits = {field.name: getattr(opened.device, field.name) for field in fields(Device)}
    return opened.facts()["device"], Device(**limits)


def write(swept: SanitizerSweep, path: Path) -> None:
    """Write a line per kernel and check; findings are in a file next to it, where there are any."""
    for place, rows in ((path, swept.rows), (path.with_suffix(".findings.csv"), swept.findings)):
        place.unlink(missing_ok=True)
        if rows:
            write_table(rows, place)


def checked_edges(chosen: argparse.Namespace) -> int:
    """Run the checks, write the table and print the findings; return the exit code."""
    catalogue = discover(chosen.catalogue)
    kernels = list(dict.fromkeys(case.kernel for case in catalogue.edges(chosen.kernels)))
    name, device = device_of(chosen.backend)
    if chosen.backend == "cuda":
        compile_ahead(catalogue.edges(chosen.kernels), device)
    swept = sweep(catalogue, kernels, checks=chosen.checks.split(","), backend=chosen.backend, jobs=chosen.jobs,
                  seconds=chosen.limit_seconds, report=lambda share: print("done:", share, flush=True))  # fmt: skip
    write(swept, chosen.output or REPOSITORY / "reports" / "sanitizer" / f"{identity.slug(name)}.csv")
    verdicts = [row.verdict for row in swept.rows]
    counts = {verdict: verdicts.count(verdict) for verdict in dict.fromkeys(verdicts)}
    for finding in swept.findings:
        print(f"{finding.check}: {finding.case}: {finding.message} ({finding.kernel} {finding.source or ''})")
    print(f"compute-sanitizer {swept.version}: {counts} of {len(kernels)} kernels and variants, {swept.seconds} s")
    return 1 if swept.findings else 3 if "not finished" in counts else 0


def main() -> int:
    """Do what the command line demands; return the exit code."""
    chosen = options()
    try:
        return checked_edges(chosen)
    except PrismBenchError as error:
        print(f"sanitize: {error}", file=sys.stderr)
        return error.exit_code
