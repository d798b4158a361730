"""Many submissions: a crash costs its candidate alone, and what has a verdict is not judged again."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from prism_bench.errors import UsageError
from prism_bench.extensions.judge import batch
from prism_bench.extensions.judge.batch import JudgeBatch, JudgingProcesses, leaderboard_lines
from prism_bench.extensions.judge.command import command
from prism_bench.extensions.judge.submission import Submission, identity_of, read_submission
from prism_bench.extensions.judge.verdict import JudgeVerdict, verdict_json
from prism_bench.io.documents import json_text
from tests.extensions.judge.verdicts import RIGHT, WRONG

HERE = Path(__file__).parent
CARD = 'source = "mine.cu"\n[[launch]]\nentry = "mine"\ngrid = 1\nblock = 1\n'
VERDICTS = {"slow": msgspec.structs.replace(RIGHT, times=()), "fast": RIGHT, "wrong": WRONG}


class Judges:
    """Writes the verdict of each candidate, and none of one that crashes."""

    def __init__(self) -> None:
        self.judged: list[str] = []
        self.secrets: set[int] = set()
        self.ended = False

    def end(self) -> None:
        self.ended = True

    def __call__(self, words: list[str], gpu: str) -> str:
        card, output = Path(words[1]), Path(words[words.index("--output") + 1])
        self.judged.append(f"{card.parent.name} on {gpu}")
        secret = int(words[words.index("--seed") + 1])
        self.secrets.add(secret)
        if card.parent.name == "crashes":
            return "ended (killed by signal 9)"
        source, text = identity_of(read_submission(card))
        verdict = msgspec.structs.replace(VERDICTS[card.parent.name], source_sha256=source, card_sha256=text)
        verdict = msgspec.structs.replace(verdict, secret=secret)
        output.write_text(json_text(verdict_json(verdict)))
        return "ended (exit status 0)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("slow", "wrong", "crashes", "fast", "odd"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "card.toml").write_text(CARD if name != "odd" else "source = ")
        (tmp_path / name / "mine.cu").write_text("__global__ void mine() {}")
    return tmp_path


def test_a_batch_ranks_what_is_right_and_goes_on_where_it_stopped(folder: Path) -> None:
    judges, results = Judges(), folder / "verdicts"
    rows = JudgeBatch(folder, results, "add", ["--gpu"], ["GPU-1"], judges).rows()
    assert ["fast/card", "slow/card"] == [row.candidate for row in rows[:2]]
    ends = {row.candidate: row.ruling for row in rows}
    assert {"crashes/card": "unchecked", "odd/card": "refused", "wrong/card": "wrong"}.items() <= ends.items()
    assert ["killed" in row.reasons[0] for row in rows if row.ruling == "unchecked"] == [True]
    assert all("GPU-1" in one for one in judges.judged)
    page = (results / "index.html").read_text()
    assert page.index("fast/card") < page.index("slow/card") < page.index("wrong/card")
    assert rows[0].page in page
    assert "killed by signal 9" in "\n".join(leaderboard_lines(rows))

    judges.judged.clear()
    JudgeBatch(folder, results, "add", (), ["GPU-1"], judges, task_sha256="of a spec that changed").rows()
    assert 4 == len(judges.judged), "a verdict on another task is none"
    judges.judged.clear()
    JudgeBatch(folder, results, "add", (), ["GPU-1"], judges).rows()
    assert ["crashes on GPU-1"] == judges.judged, "the others have verdicts"
    (folder / "fast" / "mine.cu").write_text("__global__ void mine() { }")
    JudgeBatch(folder, results, "add", (), ["GPU-1"], judges).rows()
    assert "fast on GPU-1" in judges.judged, "its source is another one"
    judges.judged.clear()
    JudgeBatch(folder, results, "other", (), ["GPU-1"], judges).rows()
    assert len(judges.judged) == 4, "another task"


def test_candidates_of_one_leaderboard_have_the_same_hidden_sizes(folder: Path) -> None:
    judges, results = Judges(), folder / "verdicts"
    JudgeBatch(folder, results, "add", (), ["GPU-1"], judges).rows()
    (first,) = judges.secrets
    assert not (results / "unfinished.txt").exists()
    judges.secrets.clear()
    JudgeBatch(folder, results, "add", (), ["GPU-1"], judges).rows()
    assert {first} != judges.secrets, "the sizes of a complete leaderboard are known"
    judges.judged.clear()
    JudgeBatch(folder, results, "add", (), ["GPU-1"], judges, secret=7).rows()
    assert 4 == len(judges.judged), "verdicts by another secret are none"
    assert 7 in judges.secrets


def test_a_batch_that_was_interrupted_goes_on_with_its_secret(folder: Path) -> None:
    class Interrupted(Judges):
        def __call__(self, words: list[str], gpu: str) -> str:
            if judges.judged:
                raise KeyboardInterrupt
            return judges(words, gpu)

    judges, interrupted, results = Judges(), Interrupted(), folder / "verdicts"
    with pytest.raises(KeyboardInterrupt):
        JudgeBatch(folder, results, "add", (), ["GPU-1"], interrupted).rows()
    assert interrupted.ended
    JudgeBatch(folder, results, "add", (), ["GPU-1"], judges).rows()
    assert 1 == len(judges.secrets)
    assert 5 == len(judges.judged), "each once, and the one that crashed again"


def test_what_was_sent_after_a_verdict_is_not_judged_by_its_secret(folder: Path) -> None:
    """Whoever saw a verdict of the batch that was interrupted knows the secret, and may have sent another kernel."""

    class Interrupted(Judges):
        def __call__(self, words: list[str], gpu: str) -> str:
            if self.judged:
                raise KeyboardInterrupt
            return super().__call__(words, gpu)

    first, then, results = Interrupted(), Judges(), folder / "verdicts"
    with pytest.raises(KeyboardInterrupt):
        JudgeBatch(folder, results, "add", (), ["GPU-1"], first).rows()
    (folder / "slow" / "mine.cu").write_text("__global__ void mine() { }")
    JudgeBatch(folder, results, "add", (), ["GPU-1"], then).rows()
    assert "slow on GPU-1" in then.judged
    assert (1, 1, True) == (len(first.secrets), len(then.secrets), first.secrets.isdisjoint(then.secrets))


def test_files_that_change_while_the_batch_is_judged_have_no_verdict(folder: Path) -> None:
    class Overtaken(Judges):
        def __call__(self, words: list[str], gpu: str) -> str:
            (folder / "wrong" / "mine.cu").write_text("__global__ void mine() { }")
            return super().__call__(words, gpu)

    results = folder / "verdicts"
    rows = {row.candidate: row for row in JudgeBatch(folder, results, "add", (), ["GPU-1"], Overtaken()).rows()}
    assert ("no verdict: its files changed while the batch was judged",) == rows["wrong/card"].reasons
    again = Judges()
    rows = {row.candidate: row for row in JudgeBatch(folder, results, "add", (), ["GPU-1"], again).rows()}
    assert ("wrong", True) == (rows["wrong/card"].ruling, "wrong on GPU-1" in again.judged)
    assert [] == list(results.glob("*.new"))


def test_names_that_are_alike_have_verdicts_of_their_own(folder: Path) -> None:
    """Dots, a folder instead of a hyphen, and the name of the leaderboard."""
    root, judges = folder / "fast", Judges()
    for name in ("v1.2.toml", "v1.3.toml", "index.toml", "a-b.toml", "a/fast/b.toml", "a-fast-b.toml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# {name}\n{CARD}")
        (root / name).with_name("mine.cu").write_text("__global__ void mine() {}")
    rows = JudgeBatch(root, folder / "verdicts", "add", (), ["GPU-1"], judges).rows()
    assert {"right"} == {row.ruling for row in rows}
    assert 7 == len(rows) == len({row.page for row in rows}) == len(list((folder / "verdicts").glob("*.json")))
    assert "index.html" not in {row.page for row in rows}


def test_files_of_any_name_and_kind_cost_their_candidate_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that are no text, links in a circle, and whatever else reading a stranger's files may raise."""
    (folder / "fast" / os.fsdecode(b"odd \xff.toml")).write_text(f"# another\n{CARD}")
    (folder / "circle").mkdir()
    (folder / "circle" / "card.toml").write_text(CARD)
    (folder / "circle" / "mine.cu").symlink_to("mine.cu")

    def read(card: Path) -> Submission:
        if card.parent.name == "slow":
            raise RuntimeError("nobody thought of it")
        return read_submission(card)

    monkeypatch.setattr(batch, "read_submission", read)
    rows = JudgeBatch(folder, folder / "verdicts", "add", (), ["GPU-1"], Judges()).rows()
    found = {row.candidate: row for row in rows}
    assert "right" == found["fast/card"].ruling == found["fast/odd \\udcff"].ruling
    assert "refused" == found["circle/card"].ruling
    assert ("unchecked", True) == (found["slow/card"].ruling, "nobody thought" in found["slow/card"].reasons[0])
    assert "odd \\udcff" in (folder / "verdicts" / "index.html").read_text()
    assert json.loads(json_text(msgspec.to_builtins(rows)))


def test_a_result_has_a_name_that_no_other_candidate_can_have() -> None:
    names = [batch._result_name(f"A{number}.toml") for number in range(9)]
    assert 9 == len({name.rpartition("-")[2] for name in names})
    assert {32} == {len(name.rpartition("-")[2]) for name in names}
    assert "a.toml" == batch._result_name("a.toml")


def test_a_folder_without_cards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no card"):
        JudgeBatch(tmp_path, tmp_path / "verdicts", "add").rows()


def test_a_folder_of_cards_gets_a_folder_of_verdicts(folder: Path) -> None:
    with pytest.raises(UsageError, match="gets a folder of verdicts"):
        command(folder, "add", output=[folder / "page.html"], catalogue=HERE / "tasks")


def test_a_candidate_is_judged_by_a_process(tmp_path: Path) -> None:
    assert "exit status 2" in JudgingProcesses()(["judge", str(tmp_path / "missing.toml"), "softmax"], "")


def test_an_interrupted_batch_waits_for_no_candidate_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    processes, words = JudgingProcesses(), ["judge", str(HERE / "museum" / "hangs.toml"), "add"]
    with ThreadPoolExecutor(1) as pool:
        judged = pool.submit(processes, [*words, "--catalogue", str(HERE / "tasks"), "--trust-source"], "")
        while not list(tmp_path.glob("prism-judge-*")):
            assert not judged.done(), judged.result()
            time.sleep(0.05)
        processes.end()
        assert "exit status 2" in judged.result(60)
    assert "interrupted" in processes(words, "")
    assert [] == list(tmp_path.glob("prism-judge-*"))


def test_a_verdict_is_read_as_it_was_written() -> None:
    content = verdict_json(RIGHT)
    assert RIGHT == msgspec.convert({key: content[key] for key in JudgeVerdict.__struct_fields__}, JudgeVerdict)
