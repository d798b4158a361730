"""How good are the verdicts on this machine? Pairs of one build, and a build with a slowdown in every kernel.

`measure` runs the catalogue against itself and then its cases above 5 us against their planted copies, process by
process in turn, and keeps four records: `same-a` and `same-b`, `plain` and `planted`. They are written anew after each
pair of processes. `judge` reads those that exist, and writes two tables to reports/judgement/<machine>/:
`same.csv`, pairs dealt from the processes of one build, and `planted.csv`, every case of the one comparison.
With --noise the differences of the build from itself are kept as the machine's noise floors too. Only cold times are
taken; verification, peers and CPU are for `prism-bench run`. With --only-planted the build against itself stays what
an earlier measuring kept in --records; with --only-same nothing is planted. `judge` needs no device.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lab import REPOSITORY
from lab.dealt import FLOORS, dealt_rows, summary
from lab.planted import plant
from prism_bench.analysis.compare.comparison import compare
from prism_bench.analysis.compare.noise import keep_noise, noise_of
from prism_bench.backends import open_backend
from prism_bench.catalogue import discover
from prism_bench.errors import PrismBenchError
from prism_bench.io.files import Saver, held
from prism_bench.measure import Criterion
from prism_bench.record import store
from prism_bench.record.run_record import RunRecord
from prism_bench.run import Settings
from prism_bench.run.builds import MAIN_METRICS, Build, interleaved, pair_settings
from prism_bench.run.precompile import compile_ahead
from prism_bench.spec.case import Device
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv

NAMES = ("same-a", "same-b", "plain", "planted")
PAIRS, SHORT, LARGEST_FLOOR = 20, 5e-6, 0.03
EFFORTS = (3, 5)  # processes a side by which a planted slowdown is judged
SAME_SHARE = 0.6  # of the time there is: the other comparison has the longer cases alone
OUTPUT = REPOSITORY / "reports" / "judgement"

RecordPair = tuple[RunRecord, RunRecord]


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("measure", "judge", "both"))
    parser.add_argument("--records", type=Path, default=OUTPUT / "records")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--catalogue", type=Path, help="instead of the built-in one")
    parser.add_argument("--label", action="append", help="S0 and S1 by default; may be repeated")
    parser.add_argument("--filter", action="append", default=[], help="kernel, family or case; may be repeated")
    parser.add_argument("--limit-seconds", type=float, default=550, help="for all measuring together")
    parser.add_argument("--same", type=int, default=8, help="processes a side of the build against itself, at most")
    parser.add_argument("--planted", type=int, default=5, help="processes a side of the planted comparison, at most")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="dealt from the processes of the build")
    parser.add_argument("--only-same", action="store_true", help="measure the build against itself alone")
    parser.add_argument("--only-planted", action="store_true", help="keep `same-a` and `same-b` as they are")
    parser.add_argument("--share", type=float, default=0.05, help="how much longer the planted copy takes")
    parser.add_argument("--noise", type=Path, help="a folder for the machine's noise floors, which are written too")
    parser.add_argument("--seed", type=int, default=0, help="of the dealing of processes into pairs")
    return parser.parse_args()


def settings(processes: int) -> Settings:
    """Return the settings for cold times alone, with enough samples to distinguish the medians of two processes."""
    short = Criterion(precision=0.004, min_samples=12, max_samples=30, seconds=0.15)
    found = pair_settings(Settings(processes=processes), MAIN_METRICS)
    return replace(found, criteria={**found.criteria, "cold_time": short, "wall_time": short})


def measure(chosen: argparse.Namespace) -> None:
    """Write four records to `chosen.records`.

    One process a side is measured of each comparison, whatever the limit is.
    """
    started = time.perf_counter()
    catalogue, device = discover(chosen.catalogue), open_backend(chosen.backend).device
    plain = Build("plain", catalogue, tuple(catalogue.cases(chosen.filter, chosen.label or ("S0", "S1"))))
    if chosen.backend == "cuda":  # by all cores: what is timed later finds its code in the cache
        compile_ahead(plain.cases, device)
    report(started, f"{count_text(len(plain.cases), 'case')} compiled")
    same = same_build(plain, chosen, started)
    if chosen.only_same:
        return
    with tempfile.TemporaryDirectory() as folder:
        builds = with_slowdown(plain, same, chosen, (Path(folder) / "planted", device))
        report(started, f"{count_text(len(builds[1].cases), 'case')} planted and compiled")
        if not builds[1].cases:
            return
        pair = measured_pair(
            builds, chosen, NAMES[2:], (chosen.planted, chosen.limit_seconds + started - time.perf_counter())
        )
    report(started, f"{processes_of(pair[0])} processes a side of the planted comparison")


def same_build(plain: Build, chosen: argparse.Namespace, started: float) -> RunRecord:
    """Return one side of the build against itself, measured now or kept from before."""
    if chosen.only_planted:
        return store.read(chosen.records / f"{NAMES[0]}.json.gz")
    left = chosen.limit_seconds + started - time.perf_counter()
    limit = left * (1 if chosen.only_same else SAME_SHARE)
    same = measured_pair((plain, plain), chosen, NAMES[:2], (chosen.same, limit))
    report(started, f"{processes_of(same[0])} processes a side of the build against itself")
    if not same[0].complete:
        sys.exit("interrupted: nothing is planted")
    return same[0]


def measured_pair(
    builds: tuple[Build, Build], chosen: argparse.Namespace, names: Sequence[str], effort: tuple[int, float]
) -> RecordPair:
    """Measure two builds in turn with at most `effort` processes a side and seconds; keep and return their records.

    The records are kept after every pair of processes; a failure of that ends nothing. Exits with 2 where the last
    version cannot be kept, since nothing can be judged then.
    """
    processes, limit = effort

    def keep(pair: RecordPair) -> None:
        for name, record in zip(names, pair, strict=True):
            catalogue = f"planted {chosen.share:g}" if name == "planted" else record.catalogue
            store.save(replace(record, catalogue=catalogue), chosen.records / f"{name}.json.gz")

    save: Saver[RecordPair, None] = Saver(keep)
    with held():
        pair = interleaved(builds, chosen.backend, settings(processes), verified=False, limit=limit, keep=save)
        save.finish(pair)
        if code := save.exit_code():
            sys.exit(code)
    return pair


def with_slowdown(
    plain: Build, record: RunRecord, chosen: argparse.Namespace, where: tuple[Path, Device]
) -> tuple[Build, Build]:
    """Return those cases of the build that took longer than SHORT, and the same with the slowdown in them."""
    folder, device = where
    times = ((case, case.measurement("cold_time")) for case in record.cases)
    long = tuple(case for case, cold in times if cold and (cold.median or 0.0) > SHORT)
    names = set(plant(plain.catalogue, replace(record, cases=long), chosen.share, folder, device))
    copy = discover(folder)
    planted = Build("planted", copy, tuple(case for case in copy.cases() if case.name in names))
    if chosen.backend == "cuda":
        compile_ahead(planted.cases, device)
    return replace(plain, cases=tuple(case for case in plain.cases if case.name in names)), planted


def report(started: float, words: str) -> None:
    """Print the words after the seconds since the start."""
    print(f"{time.perf_counter() - started:6.0f} s  {words}", flush=True)


def processes_of(record: RunRecord) -> int:
    """Return how many processes measured the cases of the record."""
    return max((len(one.processes) for case in record.cases for one in case.measurements), default=0)


def planted_rows(records: Mapping[str, RunRecord]) -> Iterator[dict[str, str]]:
    """Yield a row per case compared with its planted copy, under the noise floors of the build against itself.

    Each of EFFORTS is judged by its first processes, where that many were measured; else all of them once.
    """
    noise = noise_of(records["same-a"], records["same-b"])
    most = processes_of(records["plain"])
    for count in [effort for effort in EFFORTS if effort <= most] or [most]:
        plain, planted = (_first_processes(records[name], count) for name in NAMES[2:])
        for row in compare(plain, planted, noise).cases:
            judgement, seconds = row.judgement, row.seconds[0]
            counts = judgement is not None and (seconds or 0.0) > SHORT and judgement.floor < LARGEST_FLOOR
            yield {
                "processes": str(count),
                "case": row.case,
                "microseconds": f"{seconds * 1e6:.4g}" if seconds else "",
                "ratio": f"{judgement.estimate.ratio:.4f}" if judgement else "",
                "floor": f"{judgement.floor:.4f}" if judgement else "",
                "verdict": row.verdict,
                "counts": "yes" if counts else "no",
                "reason": row.reason or "",
            }


def _first_processes(record: RunRecord, count: int) -> RunRecord:
    """Return the record with the samples of the first `count` processes of each measurement."""
    cases = [
        replace(
            case,
            measurements=tuple(
                replace(measured, processes=measured.processes[:count], clocks=measured.clocks[:count])
                for measured in case.measurements
            ),
        )
        for case in record.cases
    ]
    return replace(record, cases=tuple(cases))


def judge(chosen: argparse.Namespace) -> None:
    """Write both tables and print what they show, of the records that exist."""
    paths = {name: chosen.records / f"{name}.json.gz" for name in NAMES}
    records = {name: store.read(path) for name, path in paths.items() if path.exists() or name in NAMES[:2]}
    folder = chosen.output / records["same-a"].machine["id"]
    judge_same(records, folder, chosen)
    if set(NAMES) <= set(records):
        judge_planted(records, folder)
    else:
        print(f"planted: no records of it in {chosen.records}; {folder}")


def judge_same(records: Mapping[str, RunRecord], folder: Path, chosen: argparse.Namespace) -> None:
    """Judge pairs dealt from the processes of one build, and keep its noise floors where they are wanted."""
    rows = list(dealt_rows(records["same-a"], records["same-b"], chosen.pairs, chosen.seed))
    write_csv(rows, folder / "same.csv")
    for floor in FLOORS:
        print(summary(rows, floor))
    if chosen.noise:
        print(f"noise floors: {keep_noise(noise_of(records['same-a'], records['same-b']), chosen.noise)}")


def judge_planted(records: Mapping[str, RunRecord], folder: Path) -> None:
    """Count the planted slowdowns that were called slower."""
    rows = list(planted_rows(records))
    write_csv(rows, folder / "planted.csv")
    for processes in dict.fromkeys(row["processes"] for row in rows):
        judged = [row for row in rows if row["processes"] == processes]
        long = [row for row in judged if row["microseconds"] and float(row["microseconds"]) > SHORT * 1e6]
        counted = [row for row in long if row["counts"] == "yes"]
        shown = [sum(row["verdict"] == "slower" for row in some) for some in (counted, long)]
        side = count_text(int(processes), "process", "processes")
        print(
            f"planted, {side} a side: {shown[0]} of {count_text(len(counted), 'case')} above 5 us with a noise floor "
            f"below 3 % called slower, {shown[1]} of all {len(long)} above 5 us; {folder}"
        )


def main() -> None:
    """Measure and judge as the command line demands; exit with the reason where measuring ended early."""
    chosen, complaint = options(), None
    if chosen.what != "judge":
        try:
            measure(chosen)
        except PrismBenchError as error:  # what was kept before it is judged all the same
            complaint = f"judge_noise: {error}"
    if chosen.what != "measure":
        judge(chosen)
    if complaint:
        sys.exit(complaint)
