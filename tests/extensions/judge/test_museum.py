"""The museum of attacks: the judge answers each as its card says, and without the defences each bites."""

import faulthandler
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.catalogue import Catalogue, discover
from prism_bench.emulator.build import find_compiler
from prism_bench.errors import BackendUnavailable, SpecError
from prism_bench.extensions.judge import machine_code
from prism_bench.extensions.judge import submission as judged_spec
from prism_bench.extensions.judge.defences import DEFENCES
from prism_bench.extensions.judge.jail.jail import jail_maker
from prism_bench.extensions.judge.jail_client import USUAL, CellLimits
from prism_bench.extensions.judge.submission import read_submission
from prism_bench.extensions.judge.task import JudgeTask
from prism_bench.extensions.judge.trial import MODES
from prism_bench.extensions.judge.verdict import JudgeVerdict
from prism_bench.run.verification import verify
from prism_bench.spec.case import Case
from tests.extensions.judge.lenient_trial import LenientTrial, SharedCell, shared_cell
from tests.extensions.judge.museum_entries import Entry, entries

pytestmark = pytest.mark.xdist_group("museum")  # one jailed process, and files of one name outside of it
HERE = Path(__file__).parent
ENTRIES = entries()
ATTACKED, SECRET = Path("/tmp/attacked"), Path("/tmp/attacker_secret")
SOON = CellLimits(compile_seconds=2)
IMPATIENT = CellLimits(patience=0.5)
NEVER = CellLimits(None, None, 1e9)
HOST_WORDS = "#define __global__\nstatic struct { long long x; } blockIdx, blockDim, threadIdx;\n"
NUMBERS = set(range(1, 49))  # of the attacks in the table of research/field_2026_11.md


@pytest.fixture(scope="module")
def tasks() -> Catalogue:
    return discover(HERE / "tasks")


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedCell]:
    try:
        jail_maker()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    with shared_cell(tmp_path_factory.mktemp("judged"), MODES) as opened:
        yield opened


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    SECRET.write_text("of the host\n")
    yield
    SECRET.unlink(missing_ok=True)
    ATTACKED.unlink(missing_ok=True)


def trial(
    entry: Entry, tasks: Catalogue, cell: SharedCell | None, without: Collection[str] = (), limits: CellLimits = USUAL
) -> LenientTrial:
    """Return the trial of an entry, with the same secret each time, in the shared process if one is given."""
    task = JudgeTask(tasks.kernel(entry.task), tasks)
    ground = Path(cell.root) if cell else None
    usual = LenientTrial(read_submission(entry.card), task, jailed="jail" not in without, secret=20261123)
    usual.without, usual.memory, usual.cell, usual.ground = without, entry.memory, cell, ground
    usual.limits = limits
    return usual


def objections(verdict: JudgeVerdict) -> str:
    return "\n".join(map(str, verdict.objections))


KERNELS = [one for one in ENTRIES if not one.is_host_program]


@pytest.mark.parametrize("entry", KERNELS, ids=lambda entry: entry.name)
def test_an_attack_is_caught_and_bites_without_its_defences(
    entry: Entry, tasks: Catalogue, cell: SharedCell, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str], surroundings: None,
) -> None:  # fmt: skip
    if entry.largest_cubin:
        monkeypatch.setattr(machine_code, "LARGEST_CUBIN", entry.largest_cubin)
    if entry.defences and not entry.needs:
        BITES[entry.bites](entry, tasks, cell, monkeypatch)
    limits = (SOON if entry.ruling == "refused" else IMPATIENT) if "limits of time" in entry.defences else USUAL
    try:
        verdict = trial(entry, tasks, cell if limits is USUAL else None, limits=limits).verdict()
    except SpecError as error:  # a card that none may be
        assert entry.ruling == "refused"
        assert entry.words in str(error)
    else:
        assert entry.needs or verdict.ruling == entry.ruling, objections(verdict)
        assert entry.needs or entry.words in objections(verdict)
        assert "prism-judge-" not in "\n".join(verdict.reasons), "the folder of this judgement"
    assert not ATTACKED.exists()
    assert not capfd.readouterr().out, "a judge's output is its own"


def is_taken_for_right(
    entry: Entry, tasks: Catalogue, cell: SharedCell | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    jailed = "jail" not in entry.defences
    verdict = trial(entry, tasks, cell if jailed else None, entry.defences).verdict()
    assert verdict.ruling == "right", objections(verdict)


def passes(entry: Entry, tasks: Catalogue, cell: SharedCell | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No rule holds back what a GPU would launch."""
    verdict = trial(entry, tasks, None, entry.defences).verdict()
    assert not verdict.objections
    assert verdict.code


def acts(entry: Entry, tasks: Catalogue, cell: SharedCell | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does outside of the jail, or where a judge runs what it is sent as a program, shows in a file."""
    if {"form of the submission", "form of machine code"} & set(entry.defences):
        run_as_a_program(entry)
    else:
        trial(entry, tasks, None, entry.defences).verdict()
    assert ATTACKED.exists()
    ATTACKED.unlink()


def run_as_a_program(entry: Entry) -> None:
    """Do what judges do that take programs: evaluate the card, start the file, load what a source makes on the host."""
    submission = tomllib.loads(entry.card.read_text())
    if submission.get("cubin"):
        subprocess.run(["sh", entry.card.with_name(submission["cubin"])], check=True)
    elif "__import__" in (grid := submission["launch"][0]["grid"]):
        eval(grid)
    else:
        load_on_the_host(entry.card.with_name(submission["source"]).read_text())


def load_on_the_host(source: str) -> None:
    """Compile a source as host code, and load it in another process."""
    library = ATTACKED.with_suffix(".so")
    build = [find_compiler().command, "-x", "c++", "-shared", "-fPIC", "-o", library, "-"]
    subprocess.run(build, input=f"{HOST_WORDS}{source}", text=True, check=True)
    subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(library)!r})"], check=True)
    library.unlink()


def leaks(entry: Entry, tasks: Catalogue, cell: SharedCell | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the host is shown by the compiler, or read in the place of the source."""
    if "form of the submission" in entry.defences:
        named = next(line for line in entry.card.read_text().splitlines() if line.startswith("source")).split('"')[1]
        assert "root:" in (entry.card.parent / named).read_text()
    else:
        assert "root:" in objections(trial(entry, tasks, None, entry.defences).verdict())


def prints(entry: Entry, tasks: Catalogue, cell: SharedCell | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it writes is on the output of this process, before any verdict."""
    with tempfile.TemporaryFile() as output:
        own = os.dup(1)
        os.dup2(output.fileno(), 1)
        try:
            trial(entry, tasks, None, entry.defences).verdict()
        finally:
            os.dup2(own, 1)
            os.close(own)
        output.seek(0)
        assert json.loads(output.readline())["score"] == 100


def dies(entry: Entry, tasks: Catalogue, cell: SharedCell | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that compares dies where it runs the kernel itself."""
    spec = judged_spec.judged_spec(tasks.kernel(entry.task), read_submission(entry.card))
    child = os.fork()
    if not child:
        faulthandler.disable()
        verify(EmulatorBackend(), Case(spec, spec.workloads["S0"], "S0"))
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def hangs(entry: Entry, tasks: Catalogue, cell: SharedCell | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing ends it but this test."""
    endless = trial(entry, tasks, None, entry.defences, NEVER)
    judging = threading.Thread(target=endless.verdict, daemon=True)
    judging.start()
    while entry.ruling == "wrong" and judging.is_alive() and not any(one.builds for one in endless.cells):
        time.sleep(0.02)
    judging.join(1.5)
    assert judging.is_alive()
    for one in endless.cells:
        one.kill()
    judging.join()


BITES = {
    "right": is_taken_for_right, "acts": acts, "leaks": leaks, "prints": prints, "dies": dies, "hangs": hangs,
    "passes": passes,
}  # fmt: skip


@pytest.fixture(scope="module")
def naive_results() -> dict[str, dict[str, object]]:
    """What host programs get of a judge that runs them in its own process."""
    programs = [one for one in ENTRIES if one.is_host_program]
    named = [f"{one.card.with_suffix('.py')}{one.against and f':{one.against}'}" for one in programs]
    done = subprocess.run(
        [sys.executable, "-S", HERE / "naive_judge.py", *named], capture_output=True, text=True, timeout=120
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(programs), done.stderr
    return {one.name: json.loads(line) for one, line in zip(programs, lines, strict=True)}


@pytest.mark.parametrize("entry", [one for one in ENTRIES if one.is_host_program], ids=lambda entry: entry.name)
def test_a_host_program_is_no_submission_and_beats_a_judge_that_runs_it(
    entry: Entry, naive_results: dict[str, dict[str, object]]
) -> None:
    result = naive_results[entry.name]
    if entry.bites == "acts":
        assert result["acted"]
    else:
        assert result["right"]
        assert result["work"] < 64, "as much as an honest one"
    with pytest.raises(SpecError, match=entry.words):
        read_submission(entry.card)


def test_every_attack_of_the_table_has_an_entry() -> None:
    assert {number for entry in ENTRIES for number in entry.numbers} == NUMBERS


def test_every_defence_has_an_attack_that_it_catches() -> None:
    assert {defence for entry in ENTRIES for defence in entry.defences} == set(DEFENCES)
