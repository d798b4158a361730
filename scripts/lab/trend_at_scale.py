"""Time of a trend and of a site for records by the thousand, made of the committed one with noise.

Every record is the committed H200 record's timed cases, repeated to the number asked for, each measurement moved by
random normal noise. Prints the seconds of `prism-bench trend` without and with its cache, those of `prism-bench
report` for a first site, for the same one again and for one record more, the seconds of processor time in all their
processes, and the most memory that one of them took. With `--asv` the records go to asv's results as well, and its
`publish` is timed on the same records.
"""

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any

from lab import REPOSITORY
from prism_bench.extensions.ci.asv_runs import NightlyRun, commits
from prism_bench.io.documents import json_text
from prism_bench.io.workers import environment
from prism_bench.record import store
from prism_bench.report.asv.results import write
from prism_bench.units import count_text

NOISE, FIRST = 0.005, datetime(2024, 1, 1, 3)
MACHINE = "nvidia-h200"


@cache
def model(cases: int) -> dict[str, Any]:
    """Return the newest committed record's timed cases, repeated under other names until there are `cases` of them."""
    path = max((REPOSITORY / "reports" / "runs" / MACHINE).glob("*.json.gz"))
    plain = json.loads(gzip.decompress(path.read_bytes()))
    timed = [case for case in plain["cases"] if case["measurements"]]
    named = timed[:cases]
    for i in range(len(timed), cases):
        case = timed[i % len(timed)]
        kernel = f"{case['kernel']}_{i // len(timed)}"
        named.append({**case, "kernel": kernel, "name": kernel + case["name"].removeprefix(case["kernel"])})
    return {**plain, "cases": named}


def record(day: int, folder: Path, cases: int, first: datetime = FIRST) -> Path:
    """Write the record of one day after the `first`; return its path."""
    rng, plain = random.Random(day), model(cases)
    created = first + timedelta(days=day)
    moved = []
    for case in plain["cases"]:  # the samples of a measurement are all longer or shorter by the same share
        factors = [(one, 1 + rng.gauss(0, NOISE)) for one in case["measurements"]]
        processes = [[{**g, "unit": g["unit"] * by} for g in one["processes"]] for one, by in factors]
        measured = [{**one, "processes": own} for (one, _), own in zip(factors, processes, strict=True)]
        moved.append({**case, "measurements": measured})
    text = json_text({**plain, "created": created.isoformat(), "cases": moved})
    path = folder / f"{created:%Y%m%dT%H%M%S}Z-{day:08x}.json.gz"
    path.write_bytes(gzip.compress(text.encode(), 1))
    return path


def timed(name: str, cache_folder: Path, *words: str) -> dict[str, Any]:
    """Run a command and return what it prints as JSON; print its seconds and its processor time."""
    began, spent = time.perf_counter(), processor_time()
    command = [sys.executable, "-m", "prism_bench", *words, "--json"]
    inherited = {**environment(), "PRISM_BENCH_CACHE": str(cache_folder)}
    done = subprocess.run(command, env=inherited, stdout=subprocess.PIPE, text=True)
    seconds, processor = time.perf_counter() - began, processor_time() - spent
    print(f"{name}: {seconds:.1f} s, {processor:.1f} s of processor time", flush=True)
    return json.loads(done.stdout)


def trends(runs: Path, cache_folder: Path) -> None:
    """Time a trend without its cache and one with it."""
    found: dict[str, Any] = {}
    for name in ("trend, first", "trend, again"):
        found = timed(name, cache_folder, "trend", "--runs", str(runs))
    counts = ", ".join(f"{found[one]} {one}" for one in ("records", "points", "series"))
    print(counts, f"and {count_text(len(found['steps']), 'step')}", flush=True)


def reports(runs: Path, options: argparse.Namespace, temporary: Path) -> None:
    """Time a first site, the same one again, and one with a record more; the latter two three times."""
    site, cache_folder = temporary / "site", temporary / "cache of the site"
    words = ("report", "--runs", str(runs), "--output", str(site))
    answers = [timed("report, first", cache_folder, *words)]
    answers += [timed("report, nothing new", cache_folder, *words) for _ in range(3)][-1:]
    added = []
    for day in range(options.records, options.records + 3):
        added.append(record(day, runs / MACHINE, options.cases))
        answers.append(timed("report, one record more", cache_folder, *words))
    for path in added:  # where records are kept, the next time finds as many
        path.unlink()
    print(f"files written: {', then '.join(str(len(one['changed'])) for one in answers)}", flush=True)
    print(f"site: {megabytes(site):.0f} MB")


def publish(runs: Path, temporary: Path) -> None:
    """Time asv's pages of the same records: a commit for each, its samples in asv's results."""
    paths, folder = store.records_in(runs), temporary / "asv"
    folder.mkdir()
    records = (store.read(path) for path in paths)
    entries = [NightlyRun(one.created, path.name, one.commit, {}) for path, one in zip(paths, records, strict=True)]
    hashes = commits({"main": entries}, folder / "nights.git")["main"]
    for path, commit in zip(paths, hashes, strict=True):
        write(replace(store.read(path), commit=commit), folder / "results")
    settings = {"version": 1, "project": "at scale", "repo": str(folder / "nights.git"), "branches": ["main"]}
    (folder / "asv.conf.json").write_text(json_text({**settings, "results_dir": "results", "html_dir": "html"}))
    began, spent = time.perf_counter(), processor_time()
    subprocess.run([sys.executable, "-m", "asv", "publish", "--no-pull"], cwd=folder, check=True, capture_output=True)
    print(f"asv publish: {time.perf_counter() - began:.1f} s, {processor_time() - spent:.1f} s of processor time")
    print(f"asv's site: {megabytes(folder / 'html'):.0f} MB")


def megabytes(folder: Path) -> float:
    """Return the size of all files in the folder."""
    return sum(path.stat().st_size for path in folder.rglob("*.*")) / 1e6


def processor_time() -> float:
    """Return the processor seconds of all child processes that have ended."""
    import resource  # POSIX alone

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Make the records and print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--keep", type=Path, help="a folder for the records, which are made where it has none")
    parser.add_argument("--asv", action="store_true", help="time asv publish as well; it takes long")
    options = parser.parse_args()
    import resource  # POSIX alone

    with tempfile.TemporaryDirectory() as name:
        temporary = Path(name)
        runs = options.keep or temporary / "runs"
        folder = runs / MACHINE
        if not folder.is_dir():
            folder.mkdir(parents=True)
            with ProcessPoolExecutor() as pool:
                list(pool.map(partial(record, folder=folder, cases=options.cases), range(options.records), chunksize=8))
        trends(runs, temporary / "cache")
        reports(runs, options, temporary)
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"most memory of one process: {most:.0f} MB", flush=True)
        if options.asv:
            publish(runs, temporary)
