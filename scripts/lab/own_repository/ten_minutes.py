"""From an empty git repository to a verdict on this machine: reports/judgement/<machine>/own_repository.json.

For each language: a new repository, `init`, the kernels of the guide (CUDA and Triton) committed, one of them slowed on
a branch, `compare` and `check`. The file has each command's exit code, seconds and verdict. It is written after each
language, and keeps the languages that this call leaves out. With --wheel the package is installed from that file first,
without a network. Ends with 1 where a slower kernel was not found, with 2 where something did not work.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lab import REPOSITORY
from lab.own_repository.trial import TrialCommand, TrialRepository, machine_of
from prism_bench import __version__
from prism_bench.errors import PrismBenchError, ResultsError
from prism_bench.io.documents import Schema

GUIDE = REPOSITORY / "docs" / "pages" / "guides" / "ten_minutes.md"
SCHEMA = Schema("measured ways to a verdict", 1, "scripts/measure_own_repository")
TRITON = "kernels/example/saxpy.triton.py"
# Of each language: the file that is slowed, by which replacement, and the name that its cases begin with.
SLOWED = {
    "cuda": ("kernels/example/saxpy.py", "256", "32", "saxpy["),
    "triton": (TRITON, "1024", "32", "saxpy:triton["),
}


@dataclass(frozen=True)
class StepTaken:
    """A command on the way: exit code, seconds, and its verdict: words by case, or the first line that it printed."""

    command: str
    exit_code: int
    seconds: float
    verdict: str | Mapping[str, str]


def guide_file(name: str) -> str:
    """Return a file of the guide; a ResultsError where it has no such one."""
    found = re.search(rf'^```\w+ title="{re.escape(name)}"\n(.*?)^```$', GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    if not found:
        raise ResultsError(f"{GUIDE} has no file {name}")
    return found[1]


def way(language: str, repository: TrialRepository, backend: str) -> list[StepTaken]:
    """Go the way in a new repository, up to `check`; return the commands in their order."""
    name, old, new, _ = SLOWED[language]
    on = ("--backend", backend)
    steps = [_step(repository.required("init"))]
    repository.write(TRITON, guide_file(TRITON))
    repository.write(".gitignore", "reports/\n")
    steps.append(_step(repository.commit("Measure kernels")))
    repository.replace(name, old, new)
    steps.append(_step(repository.command("compare", "--json", *on)))
    repository.git("stash", "--quiet")
    steps.append(_step(repository.required("run", "--filter", "saxpy", *on)))
    repository.git("checkout", "--quiet", "-b", "change")
    repository.git("stash", "pop", "--quiet")
    repository.commit("Change the kernel")
    steps.append(_step(repository.required("run", "--filter", "saxpy", *on)))
    return [*steps, _step(repository.command("check"))]


def _step(done: TrialCommand) -> StepTaken:
    if done.command.startswith("prism-bench compare"):
        cases: Sequence[Mapping[str, Any]] = done.plain["cases"]
        verdict: str | Mapping[str, str] = {one["case"]: one["verdict"] for one in cases}
    else:
        verdict = next((line.strip() for line in done.output.splitlines() if line.strip()), "")
    return StepTaken(done.command, done.exit_code, done.seconds, verdict)


def was_found(language: str, steps: Sequence[StepTaken]) -> bool:
    """Return whether `compare` called only cases of the slowed kernel slower, and `check` ended with 1."""
    compared = next(one for one in steps if one.command.startswith("prism-bench compare"))
    verdicts = compared.verdict if isinstance(compared.verdict, Mapping) else {}
    slower = [case for case, word in verdicts.items() if word == "slower"]
    own = [case for case in slower if case.startswith(SLOWED[language][3])]
    return bool(own) and own == slower and (1, 1) == (compared.exit_code, steps[-1].exit_code)


def to_the_verdict(steps: Sequence[StepTaken]) -> float:
    """Return the seconds of the commands up to `compare`."""
    last = next(place for place, one in enumerate(steps) if one.command.startswith("prism-bench compare"))
    return round(sum(one.seconds for one in steps[: last + 1]), 2)


def installed(wheel: Path, folder: Path) -> StepTaken:
    """Install the wheel into the folder with pip, without a network; a ResultsError where that fails."""
    words = ("install", "--quiet", "--no-index", "--no-deps", "--target")
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, str(folder), str(wheel)], capture_output=True, text=True
    )
    if done.returncode:
        raise ResultsError(f"pip does not install {wheel}: {(done.stderr.strip() or 'no reason').splitlines()[-1]}")
    seconds = round(time.perf_counter() - began, 2)
    return StepTaken(f"pip {' '.join(words)} FOLDER {wheel.name}", done.returncode, seconds, "")


def _measured(chosen: argparse.Namespace, machine: str, output: Path) -> bool:
    """Go the ways and write them; return whether every slower kernel was found."""
    kept: dict[str, Any] = (SCHEMA.read(output) or {}).get("languages", {})
    languages: list[str] = chosen.language or list(SLOWED)
    with tempfile.TemporaryDirectory(prefix="prism-bench-way-") as folder:
        site, first = REPOSITORY, list[StepTaken]()
        if chosen.wheel:
            site = Path(folder) / "site"
            first = [installed(chosen.wheel.resolve(), site)]
        for language in languages:
            repository = TrialRepository(Path(folder) / language, site=site)
            steps = [*first, *way(language, repository, chosen.backend)]
            kept[language] = {
                "found": was_found(language, steps),
                "seconds_to_verdict": to_the_verdict(steps),
                "backend": chosen.backend,
                "version": __version__,
                "commands": [asdict(one) for one in steps],
            }
            print(f"{language}: {kept[language]['seconds_to_verdict']} s to the verdict", flush=True)
            SCHEMA.write(output, {"machine": machine, "languages": kept})
    return all(kept[language]["found"] for language in languages)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and write the file; return 1 where a slower kernel was not found, 2 where something did not work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", action="append", choices=list(SLOWED), help="both unless given")
    parser.add_argument("--wheel", type=Path, help="install this wheel, instead of the package of this checkout")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--output", type=Path, help="the file; below reports/judgement unless given")
    chosen = parser.parse_args(words)
    try:
        machine = machine_of(chosen.backend)
        output = chosen.output or REPOSITORY / "reports" / "judgement" / machine / "own_repository.json"
        return 0 if _measured(chosen, machine, output) else 1
    except PrismBenchError as error:
        print(f"measure_own_repository: {error}", file=sys.stderr)
        return 2
