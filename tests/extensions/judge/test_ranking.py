"""Ten slow and ten fast kernels for tasks of the catalogue: all are right, and a ranking of them is checked."""

from pathlib import Path

import pytest

from prism_bench.backends.emulator import EmulatorBackend
from prism_bench.catalogue.listing import edge_cases, timed_cases
from prism_bench.extensions.judge import ranking
from prism_bench.extensions.judge.judged_spec import judged_spec
from prism_bench.extensions.judge.submission import read_submission
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

    def judged(card: Path, task: str, *, secret: int, **options: object) -> JudgeVerdict:
        secrets.add((task, secret))
        return slow if card.stem == "naive" else fast

    monkeypatch.setattr(ranking, "judge", judged)
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
