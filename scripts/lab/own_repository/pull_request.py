"""The verdict on a pull request that slows one kernel of a catalogue: reports/judgement/<machine>/pull_request/.

In a new repository with a copy of the catalogue one block in 64 of the kernel waits, and `compare main` judges the
working tree. The first comparison begins with an empty cache (`cold`); those after it have other changes of the same
kernel and what the earlier ones compiled (`warm`). Each is a file `<kernel>-<labels>-<cold or warm>.json`: what
`compare` printed, without the cases that were not measured, and what the command took. A kernel that compiles slowly is
`multi_head_attention`. With --cache FOLDER the cache stays, so that a later call is warm from its beginning.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import REPOSITORY
from lab.own_repository.trial import TrialRepository, machine_of
from lab.planted import delayed_text
from prism_bench import __version__
from prism_bench.catalogue import discover
from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.io.documents import Schema
from prism_bench.io.files import path_part

SCHEMA = Schema("a measured pull request", 1, "scripts/measure_pull_request")
_UNMEASURED = "same machine code"  # the verdict of a case that was not measured
_CYCLES = 20_000  # that one block in 64 waits
# Folders of the caches of all compilers, so that `cold` is cold.
_CACHES = ("PRISM_BENCH_CACHE", "CUPY_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH")


@dataclass(frozen=True)
class SlowedRequest:
    """A pull request that slows `kernel` of the catalogue in a folder, judged at `labels` on `backend`."""

    catalogue: Path
    kernel: str
    labels: tuple[str, ...]
    backend: str

    @property
    def source(self) -> Path:
        """The source of the kernel, relative to the catalogue; a ResultsError where there is none to slow."""
        found = discover(self.catalogue).kernels.get(self.kernel)
        path = found.source_file if found else None
        if path is None or path.suffix != ".cu":
            raise ResultsError(f"--kernel {self.kernel}: choose a kernel in CUDA C++ of {self.catalogue}")
        return path.resolve().relative_to(self.catalogue.resolve())


def requests(
    request: SlowedRequest, folder: Path, cache: Path, count: int
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield `cold` or `warm` and the plain values of so many comparisons, one after the other."""
    source = request.source
    environment = {name: str(cache / name.lower()) for name in _CACHES}
    repository = TrialRepository(folder / "repository", environment)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(request.catalogue, repository.folder / "kernels", ignore=ignored)
    repository.write("prism-bench.toml", 'catalogue = "kernels"\n')
    repository.commit("Measure kernels")
    repository.git("checkout", "--quiet", "-b", "change")
    text = (request.catalogue / source).read_text()
    first = 0 if _is_empty(cache) else _used(cache)
    for number in range(first, first + count):
        state = "cold" if _is_empty(cache) else "warm"
        repository.write(f"kernels/{source.as_posix()}", delayed_text(text, _CYCLES + number))
        yield state, _compared(repository, request, state)
        (cache / "comparisons").write_text(str(number + 1))


def _is_empty(cache: Path) -> bool:
    return not any(cache.iterdir())


def _used(cache: Path) -> int:
    """Return how many comparisons filled the cache, so that the next change is another one."""
    path = cache / "comparisons"
    return int(path.read_text()) if path.is_file() else 1


def _compared(repository: TrialRepository, request: SlowedRequest, state: str) -> Mapping[str, object]:
    labels = [word for label in request.labels for word in ("--label", label)]
    done = repository.command("compare", "main", "--json", "--backend", request.backend, *labels)
    plain: dict[str, Any] = done.plain
    cases: list[dict[str, Any]] = plain["cases"]
    return {
        "kernel": request.kernel,
        "labels": list(request.labels),
        "cache": state,
        "command": done.command,
        "exit_code": done.exit_code,
        "command_seconds": done.seconds,
        "cores": os.cpu_count(),
        "version": __version__,
        "all_cases": len(cases),
        "comparison": {**plain, "cases": [one for one in cases if one["verdict"] != _UNMEASURED]},
    }


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="multi_head_attention", help="the kernel that is slowed")
    parser.add_argument("--label", action="append", help="S0, S1 and S2 unless given; may be repeated")
    parser.add_argument("--comparisons", type=int, default=2, help="one after the other; the first may be cold")
    parser.add_argument("--cache", type=Path, help="keep what was compiled in this folder")
    parser.add_argument("--catalogue", type=Path, default=REPOSITORY / "kernels")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--output", type=Path, help="the folder; below reports/judgement unless given")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Compare and write a file for each comparison; return 2 where that did not work."""
    chosen = _options(words)
    request = SlowedRequest(chosen.catalogue, chosen.kernel, tuple(chosen.label or ("S0", "S1", "S2")), chosen.backend)
    name = f"{path_part(chosen.kernel)}-{'-'.join(request.labels)}"
    try:
        with tempfile.TemporaryDirectory(prefix="prism-bench-request-") as folder:
            machine = machine_of(chosen.backend)
            output: Path = chosen.output or REPOSITORY / "reports" / "judgement" / machine / "pull_request"
            cache: Path = (chosen.cache or Path(folder) / "cache").resolve()
            cache.mkdir(parents=True, exist_ok=True)
            for state, plain in requests(request, Path(folder), cache, chosen.comparisons):
                SCHEMA.write(output / f"{name}-{state}.json", {"machine": machine, **plain})
                print(
                    f"{chosen.kernel} {state}: exit code {plain['exit_code']}, {plain['command_seconds']} s", flush=True
                )
    except PrismBenchError as error:
        print(f"measure_pull_request: {error}", file=sys.stderr)
        return 2
    return 0
