"""The referee on a GPU: the tasks of the museum, by the same protocol as on the device of the other tests."""

from pathlib import Path

import numpy as np
import pytest

import prism_bench
from prism_bench.backends.cuda.backend import open_backend
from prism_bench.errors import ProfilerError
from prism_bench.extensions.judge.referee.cuda_device import DeviceBytes
from prism_bench.extensions.judge.referee.sanitizer import TOOL
from prism_bench.extensions.judge.task import EVIDENCE
from prism_bench.extensions.judge.verdict import JudgeVerdict
from prism_bench.profilers.tools import find
from prism_bench.spec.inputs import BLOCK, ONE_BY_ONE, InputArray, Runs
from tests.extensions.judge.museum_entries import Entry, entries

HERE = Path(__file__).parent

pytestmark = pytest.mark.gpu


def require_tool() -> None:
    """Skip the test where compute-sanitizer is missing: no submission has a time without it."""
    try:
        find(TOOL)
    except ProfilerError as error:
        pytest.skip(str(error))


def judged(name: str, task: str = "add") -> JudgeVerdict:
    return prism_bench.judge(HERE / "museum" / f"{name}.toml", task, catalogue=HERE / "tasks", gpu=True)


def test_an_honest_kernel_is_timed_and_the_machine_is_as_it_was() -> None:
    require_tool()
    verdict = judged("honest")
    assert ("right", ()) == (verdict.ruling, verdict.objections)
    assert {"submission", "kernel", "ceiling"} == {one.kind for one in verdict.times}
    assert "as before" in verdict.evidence["machine afterwards"]
    assert "as before: processes, environment, working folder, folders" == verdict.evidence[EVIDENCE]
    assert verdict.score > 0
    watched = {one.case for one in verdict.checked if one.where == f"{TOOL}, memcheck" and one.right}
    assert {"honest[n=257]", "honest[n=3000]"} <= watched, "whatever the emulator saw of them"


@pytest.mark.parametrize("name", ["keeps_its_results", "counts_its_calls"])
def test_an_attack_has_no_time(name: str) -> None:
    verdict = judged(name)
    assert verdict.ruling in ("wrong", "refused")
    assert [] == list(verdict.times)


@pytest.mark.parametrize("runs", [ONE_BY_ONE, Runs(96, 32), Runs(50257)])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
def test_an_input_is_put_together_as_the_reference_has_it(dtype: str, runs: Runs) -> None:
    """By the runner's kernel, by CuPy, and by NumPy."""
    backend, shape = open_backend(), (3, BLOCK)
    xp = backend.xp
    block = np.random.default_rng(1).integers(0, 256, BLOCK * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    content = InputArray(block, (0, 1, 2), shape, runs).chosen((1 << 64) - 5)
    place = xp.zeros(content.nbytes, np.uint8)
    DeviceBytes(xp, backend.device).put(place.data.ptr, content)
    wanted = content.on(np).tobytes()
    assert wanted == place.get().tobytes()
    assert wanted == content.on(xp).get().tobytes()


@pytest.mark.parametrize("entry", [one for one in entries() if one.needs], ids=lambda entry: entry.name)
def test_what_only_a_gpu_shows_is_answered_as_its_card_says(entry: Entry) -> None:
    if entry.needs == TOOL or entry.ruling == "right":
        require_tool()
    verdict = judged(entry.name, entry.task)
    assert entry.ruling == verdict.ruling, (verdict.objections, verdict.unjudged)
    if entry.needs == TOOL:
        assert "right" == entry.ruling or any(entry.words in one.text for one in verdict.objections), verdict.objections
        assert "right" != entry.ruling or not [words for words in verdict.unjudged if TOOL in words], verdict.unjudged
    assert ("right" == entry.ruling) == bool(verdict.times)
