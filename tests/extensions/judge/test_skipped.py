"""Cases that the emulator cannot run: the verdict names them, and only a GPU makes them right."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.compilation import compile_source
from prism_bench.emulator import LaunchReport
from prism_bench.emulator.library import LaunchRequest
from prism_bench.emulator.report import LaunchFinding
from prism_bench.errors import BackendUnavailable, CompilationFailed
from prism_bench.extensions.judge.jail_client import JailedModule
from prism_bench.extensions.judge.on_gpu import OnGpu
from prism_bench.extensions.judge.referee.client import ContestantCode
from prism_bench.extensions.judge.referee.session import WHERE, RefereeFindings
from prism_bench.extensions.judge.submission import read_submission
from prism_bench.extensions.judge.task import JudgeTask
from prism_bench.extensions.judge.trial import SubmissionTrial
from prism_bench.extensions.judge.verdict import CheckedCase, JudgeVerdict, plain_words
from prism_bench.spec.case import Case, Device
from prism_bench.spec.kernel import KernelSpec

HERE = Path(__file__).parent
HIDING = HERE / "museum" / "hides_from_the_emulator.toml"


class SeeingGpu(OnGpu):
    """A GPU that finds every case right but for the first `unseen`, which it does not launch."""

    def __init__(self, unseen: int = 0) -> None:
        self.launched: list[Case] = []
        self._unseen = unseen
        self.started = set[int]()

    @property
    def device(self) -> Device:
        return Device()

    @property
    def architecture(self) -> str:
        return "90"

    def ready(self) -> AbstractContextManager[None]:
        return nullcontext()

    def end(self) -> None:
        pass

    def judge(self, spec: KernelSpec, task: KernelSpec, cases: Sequence[Case], code: ContestantCode) -> RefereeFindings:
        self.launched = [case for case in cases if case.plan.entries(self.device)][self._unseen :]
        return RefereeFindings(checked=[CheckedCase(case.name, WHERE, True) for case in self.launched])


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    try:
        compile_source(HIDING.with_suffix(".cu"), ("attack<Plain>",), "90")
    except BackendUnavailable as error:
        pytest.skip(str(error))


def judged(gpu: SeeingGpu | None) -> JudgeVerdict:
    catalogue = discover(HERE / "tasks")
    task = JudgeTask(catalogue.kernel("large"), catalogue)
    return SubmissionTrial(read_submission(HIDING), task, jailed=False, secret=20261123, gpu=gpu).verdict()


def test_what_the_emulator_lacks_is_named_and_unchecked_without_a_gpu() -> None:
    verdict = judged(None)
    assert ("unchecked", ()) == (verdict.ruling, verdict.objections)
    assert {"hides_from_the_emulator[n=600]"} <= {one.case for one in verdict.checked if one.right}
    words = "\n".join(verdict.unjudged)
    assert "[n=257]" in words
    assert "not judged on the emulator: 'Flushing' is in code for devices alone" in words
    assert "not judged anywhere" in words


SUM = """
__global__ void attack(const float* a, const float* b, float* c, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    float sum;
    if (i < n) { %s c[i] = sum; }
}
"""
IN_PTX = '("add.f32 %0, %1, %2;" : "=f"(sum) : "f"(a[i]), "f"(b[i]));'


@pytest.mark.parametrize(
    ("before", "sum_", "words"),
    [("", f"asm __volatile__{IN_PTX}", "inline PTX"),
     ("#define PTX(a, b) a##b\n", f"PTX(as, m){IN_PTX}", "inline PTX, which"),
     ("#ifdef CPU_CUDA\n#error no such instruction\n#endif\n", "sum = a[i] + b[i];", "no such instruction")],
    ids=["by its word", "by a macro", "refused by the host compiler"],
)  # fmt: skip
def test_what_the_host_compiler_does_not_take_is_not_emulated_and_not_wrong(
    before: str, sum_: str, words: str, tmp_path: Path
) -> None:
    """The compiler of CUDA has taken it."""
    (tmp_path / "honest.cu").write_text(before + SUM % sum_)
    (tmp_path / "honest.toml").write_text((HERE / "museum" / "honest.toml").read_text())
    catalogue = discover(HERE / "tasks")
    task = JudgeTask(catalogue.kernel("add"), catalogue)
    verdict = SubmissionTrial(read_submission(tmp_path), task, jailed=False, secret=20261123).verdict()
    assert ("unchecked", ()) == (verdict.ruling, verdict.objections)
    assert [one for one in verdict.unjudged if "not judged on the emulator" in one and words in one]


def test_a_gpu_launches_all_that_the_emulator_lacks() -> None:
    gpu = SeeingGpu()
    verdict = judged(gpu)
    assert "right" == verdict.ruling
    assert any("not judged on the emulator" in words for words in verdict.unjudged)
    assert not any("not judged anywhere" in words for words in verdict.unjudged)
    emulated = {one.case for one in verdict.checked if one.where.startswith("emulator")}
    small = {name for name in verdict.hidden if name not in emulated and int(name.split("=")[1].rstrip("]")) <= 500}
    assert small
    assert {"edge"} == {case.label for case in gpu.launched if case.name in small}, "their times are none of the score"


def test_a_gpu_that_leaves_one_out_makes_nothing_right() -> None:
    verdict = judged(SeeingGpu(unseen=1))
    assert "unchecked" == verdict.ruling
    assert any("not judged anywhere" in words for words in verdict.unjudged)


def test_a_lack_of_memory_for_threads_is_no_finding_about_a_kernel() -> None:
    class FullCell:
        limits = SubmissionTrial.limits

        def launch(self, question: object, arrays: object) -> object:
            report = LaunchReport("attack", findings=(LaunchFinding("too many threads", "use a smaller grid"),))
            message = type("Answer", (), {"report": report})
            return type("Frame", (), {"arrays": (), "message": message})

    with pytest.raises(BackendUnavailable, match="use a smaller grid"):
        JailedModule(FullCell(), 0).run(LaunchRequest("attack", (1, 1, 1), (1, 1, 1)), ())  # pyright: ignore[reportArgumentType]


def test_words_have_no_folder_of_the_judgement() -> None:
    source = Path("/tmp/prism-judge-1/judged/kernel.cu")
    error = CompilationFailed(f"{source} for sm_90: {source}(6): error; 'a.h' is neither in {source.parent}, "
                              f"{source.parent.parent}/include nor a header; {source.parent.parent}")  # fmt: skip
    assert plain_words(error, source) == (
        "kernel.cu for sm_90: kernel.cu(6): error; 'a.h' is neither in the submission's folder, include nor a header; "
        "the judge's folder"
    )


def test_words_of_a_compiler_are_as_long_as_one_reads() -> None:
    words = plain_words(CompilationFailed("error " * 10_000), Path("/tmp/judge/judged/kernel.cu"))
    assert words.endswith("... and 56,000 more characters")
    assert 4100 > len(words)
