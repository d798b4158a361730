"""What `init` makes of repositories that are not ours: small projects in their manner, judged against a written truth.

Each folder of tests/strangers is a project of CUDA or Triton kernels with `truth.toml`, the right launch and arguments
of each kernel, and `reference.py`, the references that its authors would have. A skeleton is a draft where it does not
load; its launch is wrong where grid, block, shared memory or constants are not those of the truth at the same sizes.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from inspect import signature
from itertools import repeat
from math import prod
from pathlib import Path
from typing import Any

from lab import REPOSITORY, printed_json
from prism_bench.catalogue import discover
from prism_bench.extensions.init.project import NewProject, new_project
from prism_bench.spec.arguments import Array
from prism_bench.spec.case import Case
from prism_bench.spec.kernel import KernelSpec, Launch
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv

PROJECTS, REPORT = REPOSITORY / "tests" / "strangers", REPOSITORY / "reports" / "strangers"
_LONGEST = 300  # of a reason in the table
MANY = 400  # functions of which the time of `init` is measured
_REFERENCE = re.compile(r"reference=reference,")
_TRUTH_HEAD = '''"""The truth of {name}, written for the tests of `init`."""

import math

import numpy as np

from prism_bench import (
    In, InOut, KernelSpec, Launch, Out, Scalar, Size, Struct, Workload, absolute, elementwise, integers, normwise,
    uniform,
)
from prism_bench.spec.inputs import Fill
from prism_bench.spec.tolerance import Tolerance


def next_power_of_2(n):
    return 1 << (int(n) - 1).bit_length()


'''


@dataclass(frozen=True)
class Truth:
    """What is right for one kernel, from truth.toml; `draft` is why a skeleton cannot know it all."""

    name: str
    source: str
    draft: str = ""
    entry: str = ""
    arguments: str = ""
    launch: str = ""
    workload: str = ""
    parameters: str = ""
    derived: str = ""
    tolerance: str = ""
    reference: str = ""

    @property
    def reference_text(self) -> str:
        """The reference of the project as a spec names it."""
        return self.reference or f"reference:{self.name}"

    def spec_text(self, above: str) -> str:
        """Return the text of the right spec; `above` leads from its folder to the project's."""
        fields = [
            f"source={f'{above}/{self.source}'!r}",
            f"entry={(self.entry or self.name)!r}",
            f"arguments=({self.arguments},)",
            f"launch={self.launch}",
            f"workloads={{'S0': Workload({self.workload})}}",
            f"reference={self.reference_text!r}",
        ]
        fields += ["language='triton'"] if self.source.endswith(".py") else []
        fields += [f"parameters=dict({self.parameters})"] if self.parameters else []
        fields += [f"derived=dict({self.derived})"] if self.derived else []
        fields += [f"tolerance={self.tolerance}"] if self.tolerance else []
        return _TRUTH_HEAD.replace("{name}", self.name) + f"spec = KernelSpec({', '.join(fields)})\n"


@dataclass(frozen=True)
class Project:
    """A project of the corpus: its folder and the truth of its kernels by name."""

    folder: Path
    truths: Mapping[str, Truth]

    @property
    def language(self) -> str:
        """`cuda` or `triton`."""
        return "triton" if next(iter(self.truths.values())).source.endswith(".py") else "cuda"

    def copied_to(self, place: Path) -> Path:
        """Return a copy without its truth, as a user's repository would be."""
        folder = place / self.folder.name
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("truth.toml", "__pycache__"))
        return folder


def projects(folder: Path = PROJECTS) -> list[Project]:
    """Return the projects of the corpus, sorted by name."""
    return [
        Project(file.parent, {name: Truth(name, **keys) for name, keys in tomllib.loads(file.read_text()).items()})
        for file in sorted(folder.glob("*/truth.toml"))
    ]


def write_truth(project: Project, place: Path) -> Path:
    """Copy the project, write the right spec of each kernel that has one, and return the copy; it is configured."""
    folder = project.copied_to(place)
    catalogue = folder / "right" / "specs"
    catalogue.mkdir(parents=True)
    (folder / "prism-bench.toml").write_text('catalogue = "right"\n')
    for truth in project.truths.values():
        if not truth.draft:
            (catalogue / f"{truth.name.lower()}.py").write_text(truth.spec_text("../.."))
    return folder


# The launch of a skeleton against the truth.


def launch_error(case: Case, right: KernelSpec) -> str:
    """Return how the launch of a skeleton's case differs from the right one at the same sizes; empty where it does not.

    Names of the truth are names of the case, constants of its launch, or follow from the sizes of its buffers.
    """
    step = _launched(case.spec, case.axes)
    names: dict[str, Any] = {**step.constants, **case.axes}
    _solve(names, right, {array.name: prod(case.sizes.shape(array.name)) for array in case.spec.arrays})
    asked = list(signature(right.launch).parameters)
    names = {**right.parameters, **names} if not set(asked) <= names.keys() else names
    unknown = [name for name in asked if name not in names]
    if unknown:
        return f"the truth's {', '.join(unknown)} is no name or size of the skeleton"
    expected = _launched(right, names)
    pairs = [("grid", _three(step.grid), _three(expected.grid))]
    if right.language == "cuda":
        pairs += [("block", _three(step.block), _three(expected.block)), ("shared", step.shared, expected.shared)]
    options = ("num_warps", "num_stages", "num_ctas")
    pairs += [
        (name, step.constants.get(name, "missing"), value)
        for name, value in expected.constants.items()
        if name not in options
    ]
    return "; ".join(f"{name} {have} for {want}" for name, have, want in pairs if have != want)


def _launched(spec: KernelSpec, names: Mapping[str, Any]) -> Launch:
    step: Any = spec.launch(**{name: names[name] for name in signature(spec.launch).parameters})
    return next(part for part in step if isinstance(part, Launch)) if isinstance(step, tuple | list) else step


def _three(extents: Any) -> tuple[int, ...]:
    parts = tuple(extents) if isinstance(extents, Sequence) else (extents,)
    return (*(int(part) for part in parts), 1, 1)[:3]


def _solve(names: dict[str, Any], right: KernelSpec, elements: Mapping[str, int]) -> None:
    """Add the axes of the truth that follow from the numbers of elements: the only unknown one of a buffer."""
    for _ in range(3):
        for array in right.arguments:
            if not isinstance(array, Array) or array.name not in elements:
                continue
            axes = array.shape.split()
            free = [axis for axis in axes if not axis.isdigit() and axis not in names]
            known = prod(int(axis) if axis.isdigit() else int(names[axis]) for axis in axes if axis not in free)
            if len(free) == 1 and known and elements[array.name] % known == 0:
                names[free[0]] = elements[array.name] // known


# A project from `init` to a verdict.


@dataclass
class Row:
    """A kernel of the corpus: what its skeleton is, and what became of it."""

    project: str
    language: str
    kernel: str
    skeleton: str = "none"  # or `draft`, `loads`, or `refused` by the catalogue
    reason: str = ""
    launch: str = ""  # `right`, or how it is wrong
    outputs: int = 0
    verified: str = ""  # `ok`, or why not
    hand_written: int = 0


def initialised(project: Project, place: Path) -> tuple[Path, NewProject]:
    """Return a copy of the project after `prism-bench init . .`, and what `init` made."""
    folder = project.copied_to(place)
    here = Path.cwd()
    os.chdir(folder)
    try:
        return folder, new_project(Path(), source=Path())
    finally:
        os.chdir(here)


def with_references(folder: Path, project: Project, made: NewProject) -> dict[str, Path]:
    """Write the line `reference="module:function"` into each skeleton that loads; return its file by kernel."""
    written: dict[str, Path] = {}
    assert made.source_specs is not None
    for spec in made.source_specs.specs:
        truth, path = project.truths.get(spec.kernel.name), folder / spec.file.path
        if truth and not truth.draft and spec.skeleton.loads:
            path.write_text(_REFERENCE.sub(f'reference="{truth.reference_text}",', path.read_text(), count=1))
            written[spec.kernel.name] = path
    return written


def verdicts(folder: Path, catalogue: str, timeout: float = 600.0) -> dict[str, str]:
    """Return `ok` or the first complaint of each kernel of a catalogue, verified on the emulator at S0."""
    words = ("--catalogue", catalogue, "--backend", "emulator", "--label", "S0", "--timeout", str(timeout))
    answers: dict[str, str] = {}
    for case in printed_json(folder, "verify", *words):
        name = str(case["name"]).partition("[")[0]
        reason = str(case.get("reason") or "").replace(f"{folder.resolve()}/", "")
        text = "ok" if case["status"] == "ok" else f"{case['status']}: {' '.join(reason.split())[:_LONGEST]}"
        if answers.get(name, "ok") == "ok":
            answers[name] = text.strip()
    return answers


def study(chosen: Sequence[Project]) -> list[Row]:
    """Return a row for each kernel of the projects, of which some are studied side by side."""
    jobs = max(1, (os.cpu_count() or 1) // 2)
    with tempfile.TemporaryDirectory() as place, ProcessPoolExecutor(jobs) as pool:
        return [row for rows in pool.map(_rows, chosen, repeat(Path(place))) for row in rows]


def _rows(project: Project, place: Path) -> list[Row]:
    return list(studied(project, place, verify=True))


def studied(project: Project, place: Path, *, verify: bool) -> Iterator[Row]:
    """Yield a row for each kernel of a project, which is copied to `place`; with `verify` the emulator runs them."""
    right = discover(write_truth(project, place / "truth") / "right")
    folder, made = initialised(project, place)
    assert made.source_specs is not None
    with_references(folder, project, made)
    catalogue = discover(folder / made.catalogue)
    answers = verdicts(folder, made.catalogue) if verify and catalogue.kernels else {}
    for truth in project.truths.values():
        row = Row(project.folder.name, project.language, truth.name)
        spec = next((spec for spec in made.source_specs.specs if spec.kernel.name == truth.name), None)
        if spec is not None:
            row.skeleton = "loads" if spec.skeleton.loads else "draft"
            row.reason = "" if spec.skeleton.loads else spec.skeleton.open_points[0]
            name = spec.file.path.name.partition(".")[0]
            loaded = catalogue.kernels.get(name)
            row.outputs = len(loaded.outputs) if loaded else 0
            problem = next((str(p.message) for p in catalogue.problems if p.path.name.startswith(f"{name}.")), "")
            if spec.skeleton.loads and loaded is None:
                row.skeleton, row.reason = "refused", problem
            if loaded is not None and not truth.draft:
                cases = catalogue.cases([loaded.name], ["S0", "S1"])
                errors = [launch_error(case, right.kernels[truth.name.lower()]) for case in cases]
                row.launch = next((error for error in errors if error), "right")
            row.verified = answers.get(name, "") if loaded else ""
            row.hand_written = 1 if loaded else 0
        yield row


# A slowed copy, and what `compile --against` reports of it.

# Microseconds that no compiler removes: of an empty loop, volatile or not, CUDA 13.0 leaves nothing.
_SLOWER = {
    "cuda": (
        re.compile(r"(__global__[^;{}]*\)\s*\{)"),
        r"\1 for (int slowed = 0; slowed < 8; ++slowed) __nanosleep(500);",
    ),
    "triton": (
        re.compile(r"^( +)(tl\.(?:store|atomic_\w+)\()", re.MULTILINE),
        r"\1for slowed in range(500):\n\1    tl.debug_barrier()\n\1\2",  # one alone may be merged with another one
    ),
}


def slow_down(folder: Path, project: Project) -> None:
    """Make every kernel of a copy slower and leave its results: it sleeps, or has barriers before its stores."""
    pattern, replacement = _SLOWER[project.language]
    for source in {truth.source for truth in project.truths.values()}:
        path = folder / source
        path.write_text(pattern.sub(replacement, path.read_text()))


def changed_since(folder: Path, catalogue: str, architecture: str = "90") -> set[str]:
    """Return the kernels of which `compile --against HEAD` reports other machine code."""
    words = ("--catalogue", catalogue, "--arch", architecture, "--against", "HEAD")
    changes = printed_json(folder, "compile", *words)["changes"]
    return {str(change["kernel"]) for change in changes if "code" in change["reasons"]}


def slower_since(folder: Path, catalogue: str, backend: str) -> dict[str, tuple[str, float | None]]:
    """Return the verdict of `compare HEAD` on each kernel, and its new time by the old one.

    The null backend takes times from a script, which doubles that of a kernel whose source is slowed.
    """
    script = folder / ".git" / "times.json"
    slowed = {"seconds": 2e-6, "sass": "slowed"}
    script.write_text(json.dumps({"*": {"seconds": 1e-6, "noise": 0.001, "with_source": {"slowed": slowed}}}))
    words = ("--catalogue", catalogue, "--backend", backend, "--processes", "2")
    cases = printed_json(folder, "compare", "HEAD", *words, PRISM_BENCH_NULL=str(script))["cases"]
    return {
        str(case["case"]).partition("[")[0]: (str(case["verdict"] or case["reason"]), case.get("ratio"))
        for case in cases
    }


def commit(folder: Path) -> None:
    """Make a repository of a folder, with all of it in one commit."""
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "Fast")):
        subprocess.run([*git, *words], cwd=folder, check=True, capture_output=True)


@dataclass(frozen=True)
class SlowedRow:
    """A kernel whose copy was made slower: the answers of `compile --against` and `compare`."""

    project: str
    kernel: str
    code: str  # `changed`, or `the same`
    verdict: str = ""
    ratio: str = ""  # of the new time to the old one
    backend: str = ""


def slowed(project: Project, place: Path) -> tuple[Path, list[SlowedRow]]:
    """Return a repository whose last commit is the project and whose files are slower, and a row for each kernel.

    Only kernels that have a right spec are in it; `compared` gives the rows their verdicts.
    """
    folder = write_truth(project, place)
    commit(folder)
    slow_down(folder, project)
    changed = changed_since(folder, "right")
    kernels = sorted(truth.name.lower() for truth in project.truths.values() if not truth.draft)
    return folder, [SlowedRow(folder.name, name, "changed" if name in changed else "the same") for name in kernels]


def compared(folder: Path, rows: Sequence[SlowedRow], backend: str) -> list[SlowedRow]:
    """Return the rows with the verdict of `compare` on each kernel on a backend."""
    judged = slower_since(folder, "right", backend)
    named = [(row, *judged.get(row.kernel, ("none", None))) for row in rows]
    return [
        replace(row, verdict=verdict, ratio=f"{ratio:.3f}" if ratio else "", backend=backend)
        for row, verdict, ratio in named
    ]


# The time of many functions.


def cost_of_many(functions: int = MANY) -> tuple[float, float]:
    """Return CPU seconds of `init` on copies of the corpus with that many functions, and printed lines per kernel."""
    with tempfile.TemporaryDirectory() as place:
        folder, count, copy = Path(place), 0, 0
        while count < functions:
            for project in projects():
                if count < functions:
                    shutil.copytree(project.folder, folder / f"copy_{copy}" / project.folder.name)
                    count += len(project.truths)
            copy += 1
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "prism_bench", "init", ".", "."]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, len(done.stdout.splitlines()) / count


# The table, with the goals.


@dataclass(frozen=True)
class Figure:
    """A line of the table: its text, the measured number, and the bound that it has to keep."""

    text: str
    value: float
    goal: float
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        """Whether the number keeps the bound."""
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return f"| {self.text} | {self.value:.3g} | {sign} {self.goal:g} | {'yes' if self.is_met else 'no'} |"


def figures(result: Sequence[Row], seconds: float, printed: float) -> list[Figure]:
    """Return the numbers of a study with their goals; shares are percent of all kernels of the corpus."""
    rows, percent = result, 100 / len(result)
    loads = [row for row in rows if row.skeleton == "loads"]
    return [
        Figure("drafts, percent of kernels", sum(row.skeleton != "loads" for row in rows) * percent, 25),
        Figure("verify with only a reference, percent", sum(row.verified == "ok" for row in rows) * percent, 60, True),
        Figure("wrong launches", sum(row.launch not in ("", "right") for row in rows), 0),
        Figure("skeletons without output", sum(not row.outputs for row in loads), 0),
        Figure(f"CPU seconds of `init` on {MANY} functions", seconds, 10),
        Figure("printed lines per kernel", printed, 2),
    ]


def write_report(result: Sequence[Row], lines: Sequence[Figure], folder: Path = REPORT) -> None:
    """Write the table of kernels and the page with the goals."""
    write_csv(result, folder / "kernels.csv")
    counts = {name: sum(row.language == name for row in result) for name in ("cuda", "triton")}
    number = len({row.project for row in result})
    hand = sum(row.hand_written for row in result)
    ok = sum(row.verified == "ok" for row in result)
    page = [
        "# Kernels of other repositories",
        "",
        f"`scripts/strangers` runs `prism-bench init . .` on {count_text(number, 'project')} of `tests/strangers` with",
        f"{counts['cuda']} CUDA and {counts['triton']} Triton kernels. It judges each skeleton by `truth.toml` of",
        "the project: grid, block, shared memory and constants at the sizes of the skeleton's S0 and S1. Then it",
        'adds the line `reference="reference:..."` to each skeleton that loads, and verifies S0 on the emulator.',
        "",
        "| number | measured | goal | met |",
        "|---|---|---|---|",
        *map(str, lines),
        "",
        f"{count_text(ok, 'kernel')} verified with {hand} hand-written lines in all skeletons that load.",
        "`kernels.csv` has a row for each kernel, with the reason of each draft.",
    ]
    (folder / "README.md").write_text("\n".join(page) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Study all projects, or those that are named, and write the report; return 1 where a goal is missed.

    Only a study of all projects is written.
    """
    every = projects()
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "project", nargs="*", metavar="project", choices=[[], *(project.folder.name for project in every)], default=[]
    )
    parser.add_argument(
        "--slowed", choices=["cuda", "null"], help="slow copies down instead, and compare them on this backend"
    )
    parser.add_argument("--output", type=Path, default=REPORT, metavar="FOLDER", help="write the tables here")
    parsed = parser.parse_args(arguments)
    names: list[str] = parsed.project
    chosen = [project for project in every if not names or project.folder.name in names]
    if parsed.slowed:
        return _study_slowed(chosen, parsed.slowed, parsed.output / "slowed.csv")
    result = study(chosen)
    lines = figures(result, *cost_of_many())
    for row in result:
        print(f"{row.project:20} {row.kernel:34} {row.skeleton:6} {row.launch:14.60} {row.verified or row.reason:.90}")
    print(*lines, sep="\n")
    if not names:
        write_report(result, lines, parsed.output)
    return 0 if all(line.is_met for line in lines) else 1


def _study_slowed(chosen: Sequence[Project], backend: str, table: Path) -> int:
    """Write the rows of each project as soon as it is compared; return 1 where a slowed kernel is not called slower."""
    jobs, rows = max(1, (os.cpu_count() or 1) // 2), list[SlowedRow]()
    with tempfile.TemporaryDirectory() as place, ProcessPoolExecutor(jobs) as pool:
        prepared = list(pool.map(slowed, chosen, repeat(Path(place))))
        for folder, of_project in prepared:  # one after the other: they are timed
            rows += compared(folder, of_project, backend)
            write_csv(rows, table)
            print(*rows[-len(of_project) :], sep="\n", flush=True)
    return 0 if all((row.code, row.verdict) == ("changed", "slower") for row in rows) else 1
