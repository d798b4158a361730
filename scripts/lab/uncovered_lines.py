"""Lines of kernels that no edge and no golden data make the emulator execute; ends with 1 where there are some.

Kernels are compiled for the CPU by g++ --coverage in a folder that is gone afterwards, and every edge runs once,
as it is launched by default.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab import REPOSITORY
from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.errors import BackendUnavailable
from prism_bench.io.documents import json_line
from prism_bench.io.workers import environment
from prism_bench.profilers.tools import last_words
from prism_bench.units import count_text

LineCounts = Mapping[Path, Mapping[int, int]]  # how often each line of each source was executed


def execute(catalogue: Catalogue, kernels: Sequence[str]) -> None:
    """Run every edge of the kernels, and of their variants, once."""
    backend = EmulatorBackend()
    for case in catalogue.edges(kernels):
        try:
            with backend.prepare(case, case.inputs()) as runnable:
                runnable()
        except BackendUnavailable:  # what the emulator leaves to the GPU
            continue


def executed(chosen: argparse.Namespace, kernels: Sequence[str], folder: Path) -> list[str]:
    """Run the kernels, each in its own process, since counts are written when it ends; return the errors."""
    compiler = folder / "g++"
    compiler.write_text('#!/bin/sh\nexec g++ --coverage -fprofile-update=atomic "$@"\n')
    compiler.chmod(0o755)
    inherited = {**environment(), "CXX": str(compiler), "PRISM_BENCH_CACHE": str(folder / "cache")}

    def run(kernel: str) -> str | None:
        words = [kernel, "--execute", "--catalogue", str(chosen.catalogue)]
        command = [sys.executable, "-m", "lab.uncovered_lines", *words]
        done = subprocess.run(command, env=inherited, capture_output=True, text=True)
        return None if done.returncode == 0 else f"{kernel}: {last_words(done.stderr, 1) or done.returncode}"

    with ThreadPoolExecutor(chosen.workers) as pool:
        return [complaint for complaint in pool.map(run, kernels) if complaint]


def counts(folder: Path, catalogue: Path) -> LineCounts:
    """Return how often each line of each source below `catalogue` was executed."""
    found: defaultdict[Path, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    for data in sorted((folder / "cache").rglob("*.gcda")):
        done = subprocess.run(["gcov", "--json-format", "--stdout", data], capture_output=True, cwd=folder, check=True)
        for file in json.loads(done.stdout)["files"]:
            path = Path(os.path.normpath(folder / file["file"]))
            if path.is_relative_to(catalogue):
                for line in file["lines"]:
                    found[path][line["line_number"]] += line["count"]
    return found


def report(found: LineCounts, catalogue: Path) -> None:
    """Print the lines that were never executed, and how many they are."""
    lines = [(path, number) for path in sorted(found) for number, count in sorted(found[path].items()) if count == 0]
    for path, number in lines:
        print(f"{path.relative_to(catalogue)}:{number}: {path.read_text().splitlines()[number - 1].strip()}")
    print(f"{len(lines)} of {count_text(sum(map(len, found.values())), 'line')} are executed by no edge")


def main(words: Sequence[str] | None = None) -> int:
    """Run the edges and print the lines that none reaches; return the exit code, 2 where a kernel did not run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", help="kernels or families; all unless named")
    parser.add_argument("--catalogue", type=Path, default=REPOSITORY / "kernels")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--execute", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(words)
    catalogue = discover(chosen.catalogue)
    if chosen.execute:
        execute(catalogue, chosen.kernels)
        return 0
    if not shutil.which("g++") or not shutil.which("gcov"):
        sys.exit("uncovered: needs g++ and gcov")
    kernels = list(dict.fromkeys(case.spec.name for case in catalogue.edges(chosen.kernels)))
    with tempfile.TemporaryDirectory() as name:
        complaints = executed(chosen, kernels, Path(name))
        found = counts(Path(name), catalogue.folder)
    for complaint in complaints:
        print(f"uncovered: {complaint}", file=sys.stderr)
    if chosen.json:
        plain = {
            str(path.relative_to(catalogue.folder)): sorted(n for n, count in lines.items() if not count)
            for path, lines in sorted(found.items())
        }
        print(json_line({"without": plain, "complaints": complaints}))
    else:
        report(found, catalogue.folder)
    missing = any(not count for lines in found.values() for count in lines.values())
    return 2 if complaints else int(missing)


if __name__ == "__main__":
    sys.exit(main())
