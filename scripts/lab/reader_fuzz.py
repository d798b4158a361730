"""Bend files at random, read them, and judge what came out: refused by name, read with right numbers, or neither."""

import argparse
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isclose, isfinite
from pathlib import Path
from random import Random
from time import perf_counter

from lab import REPOSITORY
from lab.reader_subjects import Facts, Subject, sample_subjects, subjects
from prism_bench.errors import PrismBenchError
from prism_bench.units import count_text
from prism_bench.workflows.compile_table import write_csv

SEED, FILES = 17, 10_000
_SLOW = 10.0  # seconds; every file here is small
OUTCOMES = ("refused", "read", "traceback", "wrong number", "unnamed", "slow")
BAD = OUTCOMES[2:]


@dataclass(frozen=True)
class Verdict:
    """What became of one bent file; `words` say what was done to it and what came of that."""

    subject: str
    kind: str
    outcome: str
    words: str
    seconds: float


def verdicts(count: int = FILES, seed: int = SEED, chosen: Sequence[Subject] = ()) -> Iterator[Verdict]:
    """Bend `count` files, of each of the subjects (all without `chosen`) in turn, and judge how each is read."""
    chosen = chosen or subjects()
    intact = {subject.name: _intact(subject) for subject in chosen}
    for number in range(count):
        subject = chosen[number % len(chosen)]
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="error"):
            yield _judged(subject, Path(folder), Random(f"{seed} {subject.name} {number}"), intact[subject.name])


def _intact(subject: Subject) -> Facts:
    with tempfile.TemporaryDirectory() as folder:
        return subject.read(subject.make(Path(folder)))


def _judged(subject: Subject, folder: Path, draw: Random, intact: Facts) -> Verdict:
    path = subject.make(folder)
    bent = draw.choice(subject.benders)(path, draw)
    began = perf_counter()
    try:
        facts, error = subject.read(path), None
    except Exception as raised:
        facts, error = {}, raised
    seconds = perf_counter() - began
    if not error:
        outcome, words = _reading(facts, subject, path, intact)
    elif not isinstance(error, PrismBenchError):
        outcome, words = "traceback", f"{type(error).__name__}: {error}"
    else:
        named = str(folder) in str(error) and "\n" not in str(error)
        outcome, words = "refused" if named else "unnamed", f"{type(error).__name__}: {error}"
    if outcome not in BAD and seconds > _SLOW:
        outcome, words = "slow", f"{seconds:.1f} s"
    return Verdict(subject.name, bent.kind, outcome, f"{bent.words}: {words}", seconds)


def _reading(facts: Facts, subject: Subject, path: Path, intact: Facts) -> tuple[str, str]:
    """Judge the facts of a file that was accepted, against another reading of it."""
    allowed = subject.allowed(path)
    if isinstance(allowed, dict) or (allowed is None and subject.allowed.__name__ == "_rows_of_export"):
        return ("read", "exactly") if facts == allowed else ("wrong number", _difference(facts, allowed or {}))
    changed = {name: value for name, value in facts.items() if intact.get(name) != value}
    odd = [f"{name} is {value!r}" for name, value in changed.items() if not _made_of(value, allowed)]
    return ("wrong number", "; ".join(odd[:3])) if odd else ("read", f"{count_text(len(changed), 'fact')} changed")


def _made_of(value: float, numbers: set[float] | None) -> bool:
    """Return whether the number is in the file, in some unit."""
    if numbers is None:
        return isfinite(value)
    return isfinite(value) and (value in numbers or any(isclose(value, one, rel_tol=1e-6) for one in numbers))


def _difference(facts: Facts, allowed: Facts) -> str:
    odd = [
        f"{name}: {facts.get(name)} for {allowed.get(name)}"
        for name in {*facts, *allowed}
        if facts.get(name) != allowed.get(name)
    ]
    return "; ".join(sorted(odd)[:3])


def table(found: Iterable[Verdict]) -> list[dict[str, str | int]]:
    """Return rows by subject: how many files had which outcome, and the slowest; a last row for all."""
    found = list(found)
    names = list(dict.fromkeys(one.subject for one in found))
    return [_row(name, [one for one in found if one.subject == name]) for name in names] + [_row("all", found)]


def _row(name: str, found: list[Verdict]) -> dict[str, str | int]:
    counts = Counter(one.outcome for one in found)
    slowest = max((one.seconds for one in found), default=0.0)
    return {
        "reader": name,
        "files": len(found),
        **{word: counts[word] for word in OUTCOMES},
        "slowest_seconds": f"{slowest:.3f}",
    }


def peak_megabytes() -> int:
    """Return the most memory that this process ever had."""
    import resource  # POSIX alone

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> int:
    """Damage files for every reader and write the table; return 1 where an outcome was BAD, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--samples", type=Path, help="a folder of other people's captures, to be bent as well")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "reports" / "robustness" / "readers.csv")
    chosen = parser.parse_args()
    every = (*subjects(), *(sample_subjects(chosen.samples) if chosen.samples else ()))
    found = list(verdicts(chosen.files, chosen.seed, every))
    bad = [one for one in found if one.outcome in BAD]
    for one in bad:
        print(f"{one.subject}: {one.outcome}: {one.words:.600}")
    rows = table(found)
    write_csv(rows, chosen.output)
    print(f"{rows[-1]}, peak memory {peak_megabytes()} MB; {chosen.output}")
    return 1 if bad else 0
