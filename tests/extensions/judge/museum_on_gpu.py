"""`scripts/judge_museum`: every entry of the museum on a GPU, judged by the judge, by its referee alone, and naively.

Each is tried in own processes, since a naive judge hangs or dies with what it launches. The table has a line for each
entry. An entry is undetected where the judge answers otherwise than its card says, or times what only a GPU shows and
is right at less than an honest kernel takes. The judge gets a GPU where it rejects nothing without one; what its rules
refuse before any launch is not shown to the referee.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from random import Random
from time import perf_counter
from typing import Literal, TypeVar

from lab.judge.dealt_study import at_least_one, chosen_gpus

from prism_bench.backends import Backend, open_backend
from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable, PrismBenchError, SpecError, unknown
from prism_bench.extensions.judge import machine_code
from prism_bench.extensions.judge.jail.jail import jail_maker
from prism_bench.extensions.judge.jail_client import CellLimits, MachineCodeAnswer
from prism_bench.extensions.judge.on_gpu import OnGpu
from prism_bench.extensions.judge.referee.client import RunnerProcess
from prism_bench.extensions.judge.referee.referee import RefereeRules
from prism_bench.extensions.judge.referee.sanitizer import TOOL
from prism_bench.extensions.judge.referee.session import RefereeSession
from prism_bench.extensions.judge.submission import read_submission
from prism_bench.extensions.judge.task import JudgeTask
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.extensions.judge.verdict import JudgeVerdict, Objection
from prism_bench.io.files import guarded
from prism_bench.monitor.nvml import VISIBLE
from prism_bench.spec.case import Case
from prism_bench.workflows.compile_table import write_csv
from tests.extensions.judge.museum_entries import Entry, entries
from tests.extensions.judge.museum_processes import MuseumProcesses, end_with_parent
from tests.extensions.judge.museum_table import MuseumRow, read_rows, summed_up

HERE = Path(__file__).parent
TASKS, REPOSITORY = HERE / "tasks", HERE.parents[2]
SECONDS = {"judge": 300.0, "referee": 240.0, "naive": 20.0}
SOON = CellLimits(compile_seconds=20)
LAUNCH_SECONDS = 6.0
PROCESSES = MuseumProcesses()
FASTER, FEWER, SHORTER, LONGER = 0.9, 0.5, 0.2, 5.0  # of an honest kernel's, from where on an attack has an effect
COMPARED = ("seconds", "samples", "waited")
Way = Literal["judge", "referee", "naive"]
_Made = TypeVar("_Made")


@dataclass
class RefereeTrial(SubmissionTrial):
    """A trial without the emulator and without rules of form: what the referee on the GPU sees by itself."""

    def passes(self) -> Sequence[tuple[str, str]]:
        return ()

    def form(self, made: MachineCodeAnswer, cubin: bytes) -> list[Objection]:
        return []

    def idlers(self, case: Case) -> tuple[str, ...]:
        return ()


def tried(entry: Entry, way: Way, architecture: str) -> dict[str, object]:
    """Return the answer to an entry in this process, as plain values."""
    catalogue = discover(TASKS)
    if way == "naive":
        from tests.extensions.judge.naive_gpu_judge import naive_verdict

        return asdict(naive_verdict(entry.card, entry.task, catalogue))
    if not _has_jail() and "jail" in entry.defences:
        return {"ruling": entry.ruling, "words": "no jail can be made here, so that the judge takes nothing"}
    machine_code.LARGEST_CUBIN = entry.largest_cubin or machine_code.LARGEST_CUBIN
    task = JudgeTask(catalogue.kernel(entry.task), catalogue)
    if way == "judge" and not entry.needs and entry.ruling != "right":
        verdict = _verdict(entry, task, None, SubmissionTrial, architecture)
        if verdict.ruling in ("wrong", "refused"):
            return _answer(verdict)
    gpu = OnGpu(_impatient_session() if "limits of time" in entry.defences else None, 1, rivals=way == "judge")
    made = SubmissionTrial if way == "judge" else RefereeTrial
    return _answer(_verdict(entry, task, gpu, made, gpu.architecture))


def _verdict(
    entry: Entry, task: JudgeTask, gpu: OnGpu | None, made: type[SubmissionTrial], architecture: str
) -> JudgeVerdict:
    submission = read_submission(entry.card)
    return made(submission, task, (architecture,), _has_jail(), limits=SOON, secret=20261126, gpu=gpu).verdict()


def _answer(verdict: JudgeVerdict) -> dict[str, object]:
    return {
        "ruling": verdict.ruling, "words": _words(verdict), "seconds": sum(verdict.seconds.values()),
        "relative": _relative(verdict),
        "state": verdict.evidence.get("quarantine", verdict.evidence.get("machine afterwards", "")),
    }  # fmt: skip


def _relative(verdict: JudgeVerdict) -> float:
    """Return the time of the largest case over that of the task's own kernel; 0 where either has none."""
    own, kernel = (
        {one.case: one.seconds for one in verdict.times if one.kind == kind} for kind in ("submission", "kernel")
    )
    largest = max(own.keys() & kernel.keys(), key=kernel.__getitem__, default="")
    return round(own[largest] / kernel[largest], 3) if largest else 0.0


def _impatient_session() -> RefereeSession:
    """Return a session that waits less for a launch that never ends, since the others wait for the GPU meanwhile."""
    reference = cache(partial[Backend](open_backend, "cuda"))
    return RefereeSession(RunnerProcess, reference, Random(1), RefereeRules(launch_seconds=LAUNCH_SECONDS))


def _has_jail() -> bool:
    try:
        return bool(jail_maker())
    except PrismBenchError:
        return False


def _words(verdict: JudgeVerdict) -> str:
    lines = [*map(str, verdict.objections), *(words for words in verdict.unjudged if TOOL in words)]
    return " ".join("; ".join(lines).split())[:200]


def answered(entry: Entry, way: Way, gpu: str, architecture: str = "90") -> dict[str, object]:
    """Return the answer that an own process gives on a GPU, or how that ended."""
    asked = ["--one", entry.name, way, entry.task, architecture]
    variables = {VISIBLE: gpu} if gpu else {}
    ended = PROCESSES.run(["tests.extensions.judge.museum_on_gpu", *asked], variables, SECONDS[way])
    if ended is None:
        return {"ended": "hangs"}
    lines = ended.stdout.strip().splitlines()
    if ended.returncode or not lines:
        words = (ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"])[-1]
        return {"ended": f"dies: {words.replace(f'{REPOSITORY}/', '')[:150]}"}
    return json.loads(lines[-1].replace(f"{REPOSITORY}/", ""))


def row(entry: Entry, gpu: str, honest: dict[str, float], architecture: str = "90") -> MuseumRow:
    """Return the line of an entry; what is refused by the form of the submission needs no GPU."""
    try:
        read_submission(entry.card)
    except SpecError as error:
        detected = entry.ruling == "refused" and entry.words in str(error)
        return MuseumRow(entry.name, entry.attack, entry.expected, "refused", "by its form", "", "", detected, 0.0)
    judge = answered(entry, "judge", gpu, architecture)
    ruling = str(judge.get("ruling", judge.get("ended")))
    referee = {"ruling": "not asked"} if ruling == "refused" else answered(entry, "referee", gpu, architecture)
    naive = answered(entry, "naive", gpu, architecture)
    relative = float(str(judge.get("relative", 0)))
    return MuseumRow(
        entry.name, entry.attack, entry.expected, ruling, str(judge.get("words", "")),
        f"{referee.get('ruling', referee.get('ended'))} {referee.get('words', '')}".strip()[:120],
        _effect(naive, honest) or _acceptance(entry, naive),
        _is_as_demanded(entry, ruling, str(judge.get("words", "")), relative),
        round(float(str(judge.get("seconds", 0))), 1), relative,
    )  # fmt: skip


def _is_as_demanded(entry: Entry, ruling: str, words: str, relative: float) -> bool:
    """Return whether the ruling is the card's, by the sanitizer where that alone shows it, and no time is flattered.

    A GPU decides what is `unchecked` without one: its code for a GPU is right.
    """
    if entry.ruling == "unchecked":
        return ruling == "right"
    if entry.needs == "gpu" and entry.ruling == "right" and relative < FASTER:
        return False
    return ruling == entry.ruling and (entry.needs != TOOL or entry.words in words)


def _effect(naive: dict[str, object], honest: dict[str, float]) -> str:
    """Return in words what an attack does to a naive judge; nothing where it is found wrong, or is as honest ones."""
    if "ended" in naive:
        return f"it {naive['ended']}"
    if not naive["right"]:
        return ""
    of_honest = {name: float(str(naive[name])) / max(honest[name], 1e-9) for name in COMPARED}
    effects = {
        "timed launches did not do the work": not naive["worked"],
        "wrong at edges, which it does not try": not naive["edges"],
        f"{of_honest['seconds']:.2f} of an honest kernel's time": of_honest["seconds"] < FASTER,
        f"{naive['samples']} samples instead of {honest['samples']:.0f}": of_honest["samples"] < FEWER,
        "a clock that does not wait names a fifth of its time": (
            float(str(naive["enqueued"])) < SHORTER * float(str(naive["waited"])) and of_honest["waited"] > LONGER
        ),
    }  # fmt: skip
    return ", ".join(words for words, holds in effects.items() if holds)


def _acceptance(entry: Entry, naive: dict[str, object]) -> str:
    """Return in words that a naive judge takes for right what a sanitizer alone sees."""
    fools = entry.needs == TOOL and entry.ruling != "right" and naive.get("right")
    return "taken for right: it looks at outputs alone" if fools else ""


@guarded
def main(arguments: Sequence[str] | None = None) -> int:
    """Try the entries and write the table; 1 where an answer is not as the card says, 3 where some have none."""
    chosen, begin = _parser().parse_args(arguments), perf_counter()
    known = {one.name: one for one in entries()}
    if chosen.one:
        end_with_parent()
        name, way, task, architecture = chosen.one
        print(json.dumps(tried(replace(known[name], task=task), way, architecture)))
        return 0
    try:
        odd = [name for name in chosen.entries if name not in known]
        if odd:
            raise unknown("entry of the museum", odd[0], known)
        rows = _rows(chosen, [known[name] for name in chosen.entries or known])
    except PrismBenchError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return summed_up(chosen.output, rows, len(chosen.entries or known), perf_counter() - begin)


def _rows(chosen: argparse.Namespace, found: Sequence[Entry]) -> list[MuseumRow]:
    """Try what has no line yet, and write the table after each."""
    rows = read_rows(chosen.output) if chosen.resume and chosen.output else []
    rows = [one for one in rows if one.entry in {entry.name for entry in found}]
    lacking = [entry for entry in found if entry.name not in {one.entry for one in rows}]
    for one in _tried_all(lacking, chosen_gpus(chosen.gpus), chosen.jobs, perf_counter() + chosen.seconds):
        print(f"{one.entry}: {one.judge} ({one.referee}); naive: {one.naive or 'no effect'}"
              f"{'' if one.detected else f' NOT AS ITS CARD SAYS: {one.expected}; {one.words}'}",
              flush=True)  # fmt: skip
        rows = sorted([*rows, one], key=lambda row: row.entry)
        if chosen.output:
            write_csv(rows, chosen.output)
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("entries", nargs="*", help="entries that are tried; default: all")
    parser.add_argument(
        "--output", type=Path, help="write a table with a line for each entry, and a summary next to it"
    )
    parser.add_argument(
        "--gpus", nargs="+", default=[""], help="numbers or UUIDs of the GPUs, or 'all'; default: the current one"
    )
    parser.add_argument("--jobs", type=at_least_one, default=4, help="entries that a GPU has at the same time")
    parser.add_argument("--resume", action="store_true", help="keep the lines of --output that are as their cards say")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further entry after that time")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    return parser


def _tried_all(found: Sequence[Entry], gpus: Sequence[str], jobs: int, end: float) -> Iterator[MuseumRow]:
    """Yield the lines as they are known, while the GPUs are shared among the entries; those that last begin first.

    None begins after the time `end`.
    """
    honest = next(one for one in entries() if one.name == "honest")
    free: SimpleQueue[str] = SimpleQueue()
    for gpu in [*gpus] * jobs:
        free.put(gpu)

    def on_free(work: Callable[[str], _Made]) -> _Made:
        gpu = free.get()
        try:
            return work(gpu)
        finally:
            free.put(gpu)

    def tried_on(entry: Entry) -> MuseumRow | None:
        if perf_counter() > end:
            return None
        of_honest = usual[entry.task]
        compared = {name: float(str(of_honest.get(name, 1.0))) for name in COMPARED}
        return on_free(lambda gpu: row(entry, gpu, compared, str(of_honest.get("architecture", "90"))))

    pool = ThreadPoolExecutor(len(gpus) * jobs)
    try:
        tasks = sorted({one.task for one in found})
        naive = pool.map(lambda task: on_free(partial(answered, replace(honest, task=task), "naive")), tasks)
        usual = dict(zip(tasks, naive, strict=True))
        if usual and all("ended" in one for one in usual.values()):
            raise BackendUnavailable(f"no GPU works here: an honest kernel {next(iter(usual.values()))['ended']}")
        for one in as_completed([pool.submit(tried_on, entry) for entry in sorted(found, key=_lasts, reverse=True)]):
            if answer := one.result():
                yield answer
    finally:
        PROCESSES.end()
        pool.shutdown(cancel_futures=True)
        PROCESSES.begin()


def _lasts(entry: Entry) -> bool:
    """Return whether the whole judgement is made of an entry, or a limit of time ends it."""
    return bool(entry.needs) or entry.ruling == "right" or "limits of time" in entry.defences


if __name__ == "__main__":
    sys.exit(main())
