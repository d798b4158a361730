"""Hashes of the machine code of kernels in other languages, to compare two machines; no device is needed.

The other machine is known by its table, or by the cubins of its cache: a file's name there has a hash of source,
constants, compiler and version, so that one of the same name was compiled of the same text by the same version.
"""

import argparse
import csv
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lab import REPOSITORY
from prism_bench.catalogue import Catalogue, discover
from prism_bench.compilation import sass_hash
from prism_bench.compilation.languages import BuildRequest, build
from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.run.precompile import on_all_cores
from prism_bench.spec.kernel import CUDA
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import kernel_of, launched, missing_compiler, write_csv

TABLE = REPOSITORY / "reports" / "compile" / "hashes.csv"


@dataclass(frozen=True, order=True)
class HashedEntry:
    """One entry on one architecture: its compiler with version, and the hash of its instructions."""

    kernel: str
    entry: str
    architecture: str
    compiler: str
    sass: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kernel, self.entry, self.architecture


@dataclass(frozen=True, order=True)
class HashedCubin:
    """An entry, and the name of its cubin in a cache."""

    entry: HashedEntry
    file: str


def hashed(catalogue: Catalogue, filters: Sequence[str], architectures: Sequence[str]) -> Iterator[HashedCubin]:
    """Yield every entry of the chosen kernels in a language whose compiler is installed."""
    requests = [
        request
        for architecture in architectures
        for request in launched(catalogue, filters, architecture)
        if request.language != CUDA and not missing_compiler(request.language)
    ]
    for rows, problem in on_all_cores(_hashed, requests):
        yield from rows
        if problem:
            print(problem, file=sys.stderr)


def _hashed(request: BuildRequest) -> tuple[list[HashedCubin], str]:
    try:
        built = build(request)
    except PrismBenchError as error:
        return [], f"{kernel_of(request)}: {error}"
    name, compiler = kernel_of(request), built.compiler
    return [
        HashedCubin(HashedEntry(name, str(one), request.architecture, compiler, _hash(kernel.path)), kernel.path.name)
        for one, kernel in built.kernels.items()
    ], ""


def _hash(cubin: Path) -> str:
    return sass_hash(cubin.read_bytes())


def kept_entries(cubins: Iterable[HashedCubin], folder: Path) -> Iterator[HashedEntry]:
    """Yield the entries whose cubins another machine's cache has, with the hash of its machine code."""
    for one in cubins:
        path = folder / one.file
        if path.is_file():
            yield replace(one.entry, sass=_hash(path))


def cubin_folder(path: Path) -> Path:
    """Return the folder of a cache that has its cubins; a ResultsError where it has none."""
    folder = next((one for one in (path / "cubin", path) if any(one.glob("*.cubin"))), None)
    if folder is None:
        raise ResultsError(f"{path}: no cubins of a cache")
    return folder


def read_hashes(path: Path) -> list[HashedEntry]:
    """Return the rows of a table; a ResultsError where it cannot be read."""
    try:
        with path.open(newline="") as file:
            rows = [HashedEntry(**row) for row in csv.DictReader(file)]
        if not rows:
            raise ValueError("it has no rows")
        return rows
    except (OSError, TypeError, ValueError, csv.Error) as error:
        raise ResultsError(f"{path}: not a table of hashes ({error})") from error


def differences(here: Iterable[HashedEntry], there: Iterable[HashedEntry]) -> tuple[int, list[str]]:
    """Return how many entries both have from the same compiler with the same hash, and a line for each other one."""
    before, same, lines = {one.key: one for one in there}, 0, list[str]()
    for one in here:
        other = before.get(one.key)
        if other is None:
            lines.append(f"{one.kernel} {one.entry} sm_{one.architecture}: not there")
        elif other.compiler != one.compiler:
            lines.append(f"{one.kernel} {one.entry} sm_{one.architecture}: {other.compiler} there, {one.compiler} here")
        elif other.sass != one.sass:
            lines.append(f"{one.kernel} {one.entry} sm_{one.architecture}: {other.sass} there, {one.sass} here")
        else:
            same += 1
    return same, lines


def main(words: Sequence[str] | None = None) -> int:
    """Write the table, or compare with it; return 1 where a hash differs, or nothing could be compared."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help="kernels or kernel:variant; all without")
    parser.add_argument("--arch", action="append", help="90 unless given")
    parser.add_argument("--catalogue", type=Path, default=REPOSITORY / "kernels")
    parser.add_argument("--check", type=Path, help="compare with this table, and write nothing but --output")
    parser.add_argument("--cubins", type=Path, help="compare with what another machine compiled: its cache of cubins")
    parser.add_argument("--output", type=Path, help=f"write this table; {TABLE.name} of the reports unless it compares")
    chosen = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:  # what another machine compiled may be in the usual cache
        os.environ["PRISM_BENCH_CACHE"] = folder
        cubins = sorted(hashed(discover(chosen.catalogue), chosen.cases, tuple(chosen.arch or ("90",))))
    rows = [one.entry for one in cubins]
    compares = chosen.check or chosen.cubins
    output = chosen.output or (None if compares else TABLE)
    if output:
        write_csv(rows, output)
    if not compares:
        print(f"{count_text(len(rows), 'entry', 'entries')} in {output}")
        return int(not rows)
    there = read_hashes(chosen.check) if chosen.check else kept_entries(cubins, cubin_folder(chosen.cubins))
    same, lines = differences(rows, there)
    print(f"{same} of {count_text(len(rows), 'entry', 'entries')} have the same machine code", *lines, sep="\n")
    return int(bool(lines) or not same)
