"""Ten slow and ten fast kernels for tasks of the catalogue: all are right, and a ranking of them is checked."""

from pathlib import Path

import msgspec
import pytest
from lab.judge import ranking, sized_trial
from lab.judge.sized_trial import SMALL, SizedJudge, SizedTrial, reduced

from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.catalogue.catalogue import edge_cases, timed_cases
from prism_bench.extensions.judge.referee.referee import WAITING
from prism_bench.extensions.judge.submission import judged_spec, read_submission
from prism_bench.extensions.judge.task import HIDDEN, JudgeTask, hidden_cases
from prism_bench.extensions.judge.verdict import JudgedTime, JudgeVerdict
from prism_bench.run.verification import complaint, passed, verify
from tests.built_in import CATALOGUE

FOLDER = Path(__file__).parent / "ranking"
PAIRS = sorted(path.name for path in FOLDER.iterdir())


@pytest.mark.parametrize("kind", ["naive", "good"])
@pytest.mark.parametrize("task", PAIRS)
def test_a_kernel_of_the_ranking_is_right_on_the_emulator(task: str, kind: str) -> None:
    spec = judged_spec(CATALOGUE.kernel(task), read_submission(FOLDER / task / f"{kind}.toml"))
    backend = EmulatorBackend()
    for case in [*(one for one in timed_cases(spec, None) if one.label == "S0"), *edge_cases(spec, None)]:
        entries = verify(backend, case, (3,))
        assert passed(entries), complaint(case, "emulator", entries)


def verdict(seconds: float, ruling: str = "right") -> JudgeVerdict:
    times = [
        JudgedTime("[n=9]", "x", kind, each, each, each) for kind, each in (("kernel", 1e-6), ("submission", seconds))
    ]
    return JudgeVerdict("x", "x", ruling, times=tuple(times) if seconds else ())


@pytest.mark.parametrize(
    ("slow", "fast", "words"),
    [(verdict(9e-6), verdict(1e-6), ""), (verdict(1e-6), verdict(1e-6), "naive is not slower than good"),
     (verdict(9e-6), verdict(1e-6, "wrong"), "good is wrong"), (verdict(0), verdict(0), "no time")],
)  # fmt: skip
def test_a_pair_that_ranks_otherwise_ends_with_1(
    slow: JudgeVerdict, fast: JudgeVerdict, words: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], tmp_path: Path,
) -> None:  # fmt: skip
    secrets = set[tuple[str, int]]()

    def judged(judge: SizedJudge, card: Path, task: str, secret: int) -> JudgeVerdict:
        secrets.add((task, secret))
        return slow if card.stem == "naive" else fast

    monkeypatch.setattr(SizedJudge, "verdict", judged)
    assert ranking.main([str(FOLDER), "--output", str(tmp_path / "ranks.csv")]) == int(bool(words))
    assert words in capsys.readouterr().out
    assert 10 == len(secrets), "both kernels of a task are judged at the same sizes"
    assert 11 == len((tmp_path / "ranks.csv").read_text().splitlines())
    assert ranking.main([str(FOLDER), "--tasks", "softmax", "matmul"]) == int(bool(words))
    assert "of 2 pairs" in capsys.readouterr().out


def test_a_folder_without_pairs_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ranking.main([str(tmp_path)]) == 2
    assert "no folder" in capsys.readouterr().err
    assert ranking.main([str(FOLDER), "--tasks", "no_such"]) == 2
    assert "unknown task of the ranking 'no_such'" in capsys.readouterr().err


def test_sizes_of_a_ranking_fill_a_device_and_take_seconds() -> None:
    """What is timed is small enough for the slowest kernel, and no hidden size is one that launches alone decide."""
    for name in PAIRS:
        task = CATALOGUE.kernel(name)
        known = {case.label: case for case in timed_cases(task, None)}
        bound = reduced(known["S0"], known["S1"])
        assert bound.sizes.allocated_bytes <= sized_trial.MOST_BYTES
        assert (bound.sizes.flops or 0) <= sized_trial.MOST_OPERATIONS
        assert bound.sizes.allocated_bytes > 8 * known["S0"].sizes.allocated_bytes
        drawn = hidden_cases(task, [known["S0"], bound], secret=7)
        assert 2 == len(drawn), name
        assert all(one.sizes.allocated_bytes <= bound.sizes.allocated_bytes for one in drawn)


def test_a_study_chooses_the_sizes_of_its_judgements() -> None:
    task, sent = CATALOGUE.kernel("vector_add"), read_submission(FOLDER / "vector_add" / "good.toml")
    for labels, published, most in ((SMALL, {"S0"}, sized_trial.MOST_BYTES), (("S0", "S1"), {"S0", "S1"}, 3 << 28)):
        trial = SizedTrial(sent, JudgeTask(task, CATALOGUE), secret=3, labels=labels)
        cases = trial.gpu_cases(judged_spec(task, sent))
        assert published == {case.label for case in cases} - {"edge", "golden", HIDDEN}
        hidden = [case for case in cases if case.label == HIDDEN]
        assert 2 == len(hidden) == len(trial.drawn)
        assert all(case.sizes.allocated_bytes <= most for case in hidden)
    small = SizedTrial(sent, JudgeTask(task, CATALOGUE), labels=("S1",)).span()
    assert ["S1"] == [case.label for case in small]


def test_the_seconds_of_a_pair_are_kept(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seconds = {"machine code for sm_90": 1.5, "emulator, fast, forward": 2.0, "GPU": 0.1, "GPU, kernel: launches": 3.0,
               f"GPU, submission: {WAITING}": 0.5}  # fmt: skip
    one = msgspec.structs.replace(verdict(1e-6), seconds=seconds)
    monkeypatch.setattr(SizedJudge, "verdict", lambda *asked: one)
    row = ranking.ranked_pair(FOLDER / "softmax", SizedJudge(CATALOGUE, EmulatorBackend))
    assert (7.1, 7.1) == (row.slow_judged, row.fast_judged)
    assert (3.0, 4.0, 7.2, 1.0) == (row.compiling, row.emulating, row.on_gpu, row.waiting)
    printed = capsys.readouterr().out
    assert "softmax, naive: right in 7.1 s (machine code for sm_90 1.5, emulator, fast, forward 2.0" in printed
