"""Verification carried over from an earlier run of this machine: nothing that it depends on has changed since.

That is the code of a kernel with the headers it includes, its spec with the modules it imports and the other files of
its family (launches, inputs, references), compiler options, driver, compilers and libraries, the device, the seeds, and
the modules of this package that verify. Kernels that are a callable, and those whose reference is a function of the
user's repository, are verified anew: their code may be anywhere.
"""

import hashlib
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import prism_bench
from prism_bench.catalogue import Catalogue
from prism_bench.catalogue.project_reference import ProjectReference
from prism_bench.compilation.program import compiler_of, content_hash, toolchain_of
from prism_bench.compilation.sources import python_texts
from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.io.documents import json_of, json_text
from prism_bench.io.files import cache_folder, write_atomically
from prism_bench.record.measurement import Measurement
from prism_bench.record.run_record import CARRIED, CARRIED_FROM, CaseResult, decode_case, encode_case
from prism_bench.run.controls import DAYS, Controls, is_turn
from prism_bench.run.settings import Settings, to_plain
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import KernelSpec

# Of so many tasks one is verified anew each day, by turns: on a day on which the case is no control.
_ANEW = 3 * DAYS
_SECONDS = 86400.0  # for which the times of a pass are kept
_VERIFYING = ("backends", "catalogue", "compilation", "emulator", "io", "measure", "run", "spec")


class Carrier:
    """Results of verification by task, kept in the user's cache under all that they depend on.

    `record` is the name of the record of this run, which a later run names where it carries a result over. `controls`
    are the cases that may be measured as such where their verification is known, `passed` what an interrupted pass of
    the same commit has measured.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        backend: str,
        facts: Mapping[str, Any],
        seeds: Sequence[int],
        day: int | None = None,
    ) -> None:
        """`facts` are the backend's; the number of the `day`, today's by default, decides what is verified anew."""
        self._catalogue, self._folder = catalogue, cache_folder("verified")
        self.day = datetime.now(UTC).toordinal() if day is None else day
        device = {name: facts.get(name) for name in ("device", "uuid", "compute_capability")}
        # The backend's software has the driver; compilers of other languages, NumPy and so on are distributions.
        packages = sorted(f"{package.name} {package.version}" for package in metadata.distributions())
        software = [platform.python_version(), packages, facts.get("software", {})]
        self._surroundings = json_text([_package_hash(), backend, device, software, list(seeds)])
        self.facts = dict(facts)
        self.passed: PassResults | None = None
        self._known_cases: dict[str, list[Case]] = {}
        self.record, self.controls = "", Controls()

    def controls_of(self, cases: Iterable[Case]) -> Controls:
        """Return the controls among the cases."""
        return self.controls.only(
            {case.name for case in cases if case.name in self.controls.known and self.knows(case.task)}
        )

    def knows(self, task: str) -> bool:
        """Return whether the task was verified as it is now, whether or not it is its turn."""
        path = self.path(task)
        return path is not None and path.is_file()

    def carries(self, task: str) -> bool:
        """Return whether the task is not verified again."""
        return not is_turn(task.partition("@")[0], _ANEW, self.day) and self.knows(task)

    def carried(self, task: str, *, peers: bool = False) -> list[CaseResult]:
        """Return the results of a task as they were verified, with its `peers`; empty if it is to be verified."""
        path = self.path(task)
        if path is None or not self.carries(task):
            return []
        with suppress(ResultsError, KeyError, TypeError, ValueError):
            kept: Any = json_of(path, "kept verification")
            results = [decode_case(plain) for plain in kept["results"]]
            expected = [(case.name, case.configuration) for case in self._cases(task)]
            if [(result.name, result.configuration) for result in results] == expected and kept["peers"] >= peers:
                mark = {CARRIED: str(kept["verified"]), **({CARRIED_FROM: name} if (name := kept["record"]) else {})}
                return [
                    _marked(result if peers else replace(result, measurements=(), peers={}), mark) for result in results
                ]
        return []

    def keep(self, task: str, results: Sequence[CaseResult], *, peers: bool = False) -> None:
        """Keep the results of a task that was verified now, with its `peers`, if every case of it is right."""
        path = self.path(task)
        is_right = all(result.status == "ok" and result.verification for result in results)
        is_whole = [result.name for result in results] == [case.name for case in self._cases(task)]
        if path is None or not is_right or not is_whole:
            return
        plain = [
            encode_case(replace(result, measurements=_peers_without_samples(result), spent={}, code={}))
            for result in results
        ]
        with suppress(OSError):  # without a cache everything is verified
            path.parent.mkdir(parents=True, exist_ok=True)
            moment = datetime.now(UTC).isoformat(timespec="seconds")
            content = {"verified": moment, "record": self.record, "peers": peers, "results": plain}
            write_atomically(path, json_text(content).encode())

    def _cases(self, task: str) -> list[Case]:
        if task not in self._known_cases:
            edges = task.removeprefix("edges:")
            self._known_cases[task] = (
                self._catalogue.edges_of(edges) if edges != task else [self._catalogue.anywhere(task)]
            )
        return self._known_cases[task]

    def path(self, task: str) -> Path | None:
        """Return the file of a task's results; None where what they depend on is unknown."""
        cases = self._cases(task)
        code = _code_hash(cases[0].spec.file, cases[0].spec.source_path, cases[0].spec.options) if cases else None
        if code is None or any(_is_elsewhere(case.spec) for case in cases):
            return None
        return self._folder / f"{_digest([self._surroundings, code, task])}.json"


class PassResults:
    """Timed results of a pass over a commit, kept as they come, so that the next pass within a day goes on from there.

    Those of ceiling benchmarks that nobody chose are the machine's: they hold for all passes of that day.
    """

    def __init__(self, carrier: Carrier, settings: Settings, commit: str | None, chosen: Iterable[Case]) -> None:
        self._carrier, self._folder, self._chosen = carrier, cache_folder("passes"), {case.task for case in chosen}
        self._commit, self._settings = commit or "", json_text(to_plain(settings))
        self._kept: set[Path] = set()

    def result(self, task: str, process: int) -> CaseResult | None:
        """Return what the process of that number measured of the task; None if it is to be measured."""
        path = self._path(task, process)
        with suppress(OSError, ResultsError, KeyError, TypeError, ValueError):
            if path is not None and _is_fresh(path):
                return decode_case(json_of(path, "kept times"))
        return None

    def keep(self, task: str, process: int, result: CaseResult) -> None:
        """Keep what the process of that number measured of the task, if it is right."""
        path = self._path(task, process)
        if path is not None and result.status == "ok" and result.measurements:
            with suppress(OSError):  # without a cache the next pass measures all
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, json_text(encode_case(result)).encode())

    def forget(self) -> None:
        """Remove the results of the pass, and whatever is older than a day."""
        for path in self._folder.glob("*.json"):
            with suppress(OSError):
                if path in self._kept or not _is_fresh(path):
                    path.unlink()

    def _path(self, task: str, process: int) -> Path | None:
        known = self._carrier.path(task)
        if known is None:
            return None
        of_pass = task in self._chosen
        parts = [known.stem, self._settings, str(process), self._commit if of_pass else ""]
        path = self._folder / f"{_digest(parts)}.json"
        self._kept |= {path} if of_pass else set()
        return path


def _is_fresh(path: Path) -> bool:
    return path.is_file() and time.time() - path.stat().st_mtime < _SECONDS


def _is_elsewhere(spec: KernelSpec) -> bool:
    """Return whether code of the kernel or its reference may be in files that nothing here knows."""
    return spec.callable is not None or isinstance(spec.reference, ProjectReference)


def _peers_without_samples(result: CaseResult) -> tuple[Measurement, ...]:
    """Return the empty measurements of peers that have no time, since they are wrong or cannot be had."""
    peers = (measurement for measurement in result.measurements if measurement.subject.startswith("peer:"))
    return tuple(measurement for measurement in peers if not measurement.samples)


def _marked(result: CaseResult, mark: Mapping[str, str]) -> CaseResult:
    return replace(result, verification=tuple({**entry, **mark} for entry in result.verification))


@cache
def _code_hash(file: Path | None, source: Path | None, options: tuple[str, ...]) -> str | None:
    """Return a hash of a kernel's files and options; None if one of them is unknown or unreadable."""
    if file is None or source is None:
        return None
    try:
        data = sorted(path for path in file.parent.glob("*") if path.is_file() and path.suffix not in (".py", ".cu"))
        texts = [*python_texts(file), *(python_texts(source) if source.suffix == ".py" else ())]
        code = content_hash(source, options) if source.suffix != ".py" else ""
        # The version of NVRTC is the backend's; nvcc may be any on the path.
        nvcc = compiler_of(source, options) if toolchain_of(options).compiler == "nvcc" else ""
        return _digest([*texts, code, nvcc, *options, *(path.read_bytes() for path in data)])
    except (OSError, ValueError, SyntaxError, PrismBenchError):
        return None


@cache
def _package_hash() -> str:
    """Return a hash of the package's own files that decide what verification compares."""
    root = Path(prism_bench.__file__).parent
    files = sorted(
        path for part in _VERIFYING for path in (root / part).rglob("*") if path.suffix in (".py", ".h", ".cpp")
    )
    return _digest(path.read_bytes() for path in files)


def _digest(parts: Iterable[str | bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:32]
