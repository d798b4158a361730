"""What a verdict costs next to a plain run: both commands are timed, and a verdict beyond the limit ends with 1."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from lab.judge import overhead
from lab.judge.overhead import main
from lab.judge.sized_trial import SizedJudge

from prism_bench.extensions.judge.verdict import JudgedTime, JudgeVerdict
from prism_bench.io.documents import json_text

FOLDER = Path(__file__).parent / "ranking"
STEPS = {"machine code for sm_90": 1.0, "emulator, fast, forward": 2.0, "GPU, kernel: launches": 3.0, "GPU, peers": 0.5}


def verdict(ruling: str = "right") -> JudgeVerdict:
    times = tuple(JudgedTime(f"[n={n}]", "x", "submission", 1e-6, 1e-6, 1e-6) for n in (1, 2, 2))
    return JudgeVerdict("x", "x", ruling, times=times, seconds=STEPS)  # pyright: ignore[reportArgumentType]


def commands(monkeypatch: pytest.MonkeyPatch, judged: float, made: JudgeVerdict | None) -> list[list[str]]:
    """Replace both commands by one that writes what they would; return the words of all."""
    asked = list[list[str]]()

    def timed(program: str, words: Sequence[str]) -> tuple[float, str]:
        asked.append([program, *words])
        if program == "prism_bench":
            Path(words[words.index("--output") + 1]).write_text("a record")
            return 10.0, ""
        if made:
            Path(words[words.index("--one") + 1]).write_bytes(json_text(msgspec.to_builtins(made)).encode())
        return judged, "" if made else "the process ended (exit status 2): no GPU"

    monkeypatch.setattr(overhead, "_timed", timed)
    return asked


@pytest.mark.parametrize(
    ("judged", "made", "code", "words"),
    [(19.0, verdict(), 0, ""), (21.0, verdict(), 1, ""), (9.0, verdict("wrong"), 1, "wrong"), (9.0, None, 1, "no GPU")],
)
def test_a_verdict_beyond_twice_a_run_ends_with_1(
    judged: float, made: JudgeVerdict | None, code: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    asked = commands(monkeypatch, judged, made)
    output = tmp_path / "overhead.csv"
    assert main([str(FOLDER), "softmax", "vector_add", "--labels", "S0", "S1", "--output", str(output)]) == code
    rows = list(csv.DictReader(output.read_text().splitlines()))
    assert [("softmax", "10.0", str(judged)), ("vector_add", "10.0", str(judged))] == [
        (row["kernel"], row["run"], row["judged"]) for row in rows
    ]
    assert all(words in row["words"] and bool(words) == bool(row["words"]) for row in rows)
    if made:
        assert ("2", "1.0", "2.0", "3.5", "0.5") == tuple(
            rows[0][name] for name in ("timed", "compiling", "emulating", "on_gpu", "peers")
        )
    assert json.loads(output.with_suffix(".json").read_text())["counts"]["beyond it"] == 2 * code
    assert f"{2 - 2 * code} of 2 verdicts within 2 times" in capsys.readouterr().out
    runs = [one for one in asked if one[0] == "prism_bench"]
    assert 3 == len(runs), "one that fills caches, and one of each kernel"
    assert ["softmax[rows=32,cols=1000]", "softmax[rows=8192,cols=32768]", "--backend"] == runs[1][2:5]
    assert "--no-peers" in runs[1]


def test_a_verdict_has_the_sizes_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[tuple[Sequence[str], bool, Path, str]]()

    def judged(judge: SizedJudge, card: Path, task: str, secret: int) -> JudgeVerdict:
        asked.append((judge.labels, judge.peers, card, task))
        return verdict()

    monkeypatch.setattr(SizedJudge, "verdict", judged)
    output = tmp_path / "verdict.json"
    assert main([str(FOLDER), "softmax", "--one", str(output), "--labels", "S1", "--peers"]) == 0
    assert [(["S1"], True, FOLDER / "softmax" / "good.toml", "softmax")] == asked
    assert "right" == json.loads(output.read_text())["ruling"]


def test_without_a_gpu_or_a_card_it_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(FOLDER), "sofmax"]) == 2
    assert "unknown kernel with a card 'sofmax'; did you mean softmax" in capsys.readouterr().err
    assert main([str(FOLDER), "softmax", "--labels", "S7"]) == 2
    assert "no case at S7" in capsys.readouterr().err
    monkeypatch.setattr(overhead, "_timed", lambda program, words: (1.0, "the process ended: no GPU"))
    assert main([str(FOLDER), "softmax"]) == 2
    assert "run of softmax: the process ended: no GPU" in capsys.readouterr().err


def test_a_command_that_fails_has_its_last_words() -> None:
    seconds, ended = overhead._timed("prism_bench", ["no-such-command"])  # pyright: ignore[reportPrivateUsage]
    assert seconds > 0
    assert "exit status 2" in ended
