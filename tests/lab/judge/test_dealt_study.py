"""Studies dealt over the GPUs of a host: each process has its GPU and its table, and none outlives the study."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab.judge import dealt_study, fairness, ranking
from lab.judge.dealt_study import DealtStudy, chosen_gpus
from lab.judge.fairness import JudgedForm
from lab.judge.ranking import RankedPair

from prism_bench.errors import BackendUnavailable, UsageError
from prism_bench.workflows.compile_table import write_csv
from tests.extensions.judge import dealt_items, museum_on_gpu
from tests.extensions.judge.museum_table import MuseumRow

ROOT = Path(__file__).parents[3]
TASKS, FOLDER = ROOT / "tests" / "extensions" / "judge" / "tasks", Path(__file__).with_name("ranking")


def study(folder: Path, *words: str) -> DealtStudy:
    return DealtStudy(dealt_items.__name__, words, "--items", folder / "all.csv")


def lines(study: DealtStudy) -> list[tuple[str, str]]:
    found = [row for path in study.tables() for row in csv.DictReader(path.read_text().splitlines())]
    return sorted((row["item"], row["gpu"]) for row in found)


def test_items_are_dealt_over_the_places_of_all_gpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dealt = study(tmp_path)
    dealt.run(["a", "b", "c", "d", "bad"], ["0", "7"], 2)
    assert [("a", "0"), ("b", "7"), ("c", "0"), ("d", "7")] == lines(dealt)
    assert "dealt_items: the process ended (exit status 2): it is bad" in capsys.readouterr().err
    dealt.forget()
    assert [] == dealt.tables()
    dealt.run([], ["0"], 2)
    with pytest.raises(BackendUnavailable, match="it is bad"):
        dealt.run(["bad"], ["0"], 1)


def test_who_has_ended_its_items_takes_those_that_nobody_has_begun(tmp_path: Path) -> None:
    """`waits` ends once all others have been begun: by another place, though one of them was dealt to its own."""
    dealt = study(tmp_path, "--share")
    dealt.run(["waits", "b", "c", "d"], ["0", "7"], 1)
    found = dict(lines(dealt))
    assert ["b", "c", "d", "waits"] == sorted(found)
    assert found["waits"] != found["c"]


_DEALING = """
import sys
from pathlib import Path
from prism_bench.io.files import guarded
from tests.lab.judge.test_dealt_study import study
guarded(lambda: study(Path(sys.argv[1]), "--pause", "60").run(["a", "b"], ["0"], 2))()
"""


def test_a_signal_ends_all_processes_and_their_tables_stay(tmp_path: Path) -> None:
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "scripts")])}
    with subprocess.Popen([sys.executable, "-c", _DEALING, str(tmp_path)], env=variables) as process:
        end = time.monotonic() + 60
        while len(study(tmp_path).tables()) < 2:
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 2
    assert [("a", "0"), ("b", "0")] == lines(study(tmp_path))


def test_gpus_are_all_or_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dealt_study, "open_gpus", lambda: ["GPU-1", "GPU-2"])
    assert ["GPU-1", "GPU-2"] == chosen_gpus(["all"])
    assert ["0", "2"] == chosen_gpus(["0", "2"])
    with pytest.raises(UsageError, match="names 2 twice"):
        chosen_gpus(["2", "2"])


@pytest.mark.parametrize("main", [lambda words: fairness.main([*words, "--catalogue", str(TASKS)]),
                                  lambda words: ranking.main([str(FOLDER), *words]), museum_on_gpu.main])  # fmt: skip
def test_words_that_make_no_sense_end_with_2(main: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(main)
    assert main(["--gpus", "1", "1", "--output", "never.csv"]) == 2
    assert "twice" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["--jobs", "0"])
    assert 2 == ended.value.code
    assert "--jobs" in capsys.readouterr().err


def test_an_unknown_entry_form_or_missing_table_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert museum_on_gpu.main(["honset"]) == 2
    assert "unknown entry of the museum 'honset'; did you mean honest" in capsys.readouterr().err
    assert fairness.main(["--catalogue", str(TASKS), "--forms", "ad"]) == 2
    assert "unknown form 'ad'" in capsys.readouterr().err
    for words in (["--catalogue", str(TASKS)], None):
        ended = fairness.main([*words, "--gpus", "0"]) if words else ranking.main([str(FOLDER), "--gpus", "0"])
        assert ended == 2
        assert "--gpus needs --output" in capsys.readouterr().err


def test_a_catalogue_goes_on_from_the_tables_of_a_study_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output, asked = tmp_path / "nvidia" / "catalogue.csv", list[str]()

    def run(study: DealtStudy, items: list[str], gpus: list[str], jobs: int) -> None:
        asked.extend(items)
        write_csv([JudgedForm(one, "right") for one in items[:-1]], output.with_name("catalogue.part1.csv"))

    monkeypatch.setattr(DealtStudy, "run", run)
    names = [one.name for one in fairness.forms(fairness.of_project(TASKS))]
    write_csv([JudgedForm(names[0], "right")], output)
    write_csv([JudgedForm(names[1], "right")], output.with_name("catalogue.part3.csv"))
    words = ["--catalogue", str(TASKS), "--gpus", "0", "--output", str(output), "--resume"]
    assert fairness.main(words) == 3
    assert names[2:] == asked
    assert "1 form without an answer: --resume goes on" in capsys.readouterr().out
    assert ["catalogue.csv", "catalogue.json"] == sorted(path.name for path in output.parent.iterdir())
    summary = json.loads(output.with_suffix(".json").read_text())
    assert {"right": len(names) - 1, "without an answer": 1} == summary["counts"]
    assert {"commit", "devices", "sanitizer", "software"} <= set(summary)


def test_forms_that_last_begin_first_and_unchecked_ones_are_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, asked = tmp_path / "catalogue.csv", list[str]()
    names = [one.name for one in fairness.forms(fairness.of_project(TASKS))]
    kernels = list(dict.fromkeys(name.partition("__")[0] for name in names))
    known = [JudgedForm(f"{kernels[-1]}__another", "right", emulating=90.0, on_gpu=9.0, waiting=8.0),
             JudgedForm(f"{kernels[0]}__another", "right", on_gpu=95.0, waiting=90.0),
             JudgedForm(names[1], "unchecked", "CuTe is missing")]  # fmt: skip
    assert 91.0 == known[0].seconds

    def run(study: DealtStudy, items: list[str], gpus: list[str], jobs: int) -> None:
        asked.extend(items)
        write_csv([JudgedForm(items[-1], "right")], output.with_name("catalogue.part1.csv"))

    monkeypatch.setattr(DealtStudy, "run", run)
    write_csv(known, output)
    words = ["--catalogue", str(TASKS), "--gpus", "0", "--output", str(output), "--resume"]
    assert fairness.main(words) == 3
    assert (kernels[-1], kernels[0], names[1]) == (asked[0], asked[1], asked[-1])
    assert sorted(names) == sorted(asked)
    table = {row["form"]: row["outcome"] for row in csv.DictReader(output.read_text().splitlines())}
    assert "right" == table[names[1]], "a new answer takes the place of the old one"


@pytest.mark.parametrize("name", ["catalogue", "ranking"])
def test_a_signal_leaves_one_table_of_what_was_judged(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, rows = tmp_path / f"{name}.csv", {"catalogue": JudgedForm("add", "right"),
                                              "ranking": RankedPair("softmax", 0.5, 1.0, 2)}  # fmt: skip

    def run(study: DealtStudy, *asked: object) -> None:
        write_csv([rows[name]], output.with_name(f"{name}.part1.csv"))
        raise KeyboardInterrupt

    monkeypatch.setattr(DealtStudy, "run", run)
    words = ["--gpus", "0", "--output", str(output)]
    with pytest.raises(SystemExit):
        ranking.main([str(FOLDER), *words]) if name == "ranking" else fairness.main(["--catalogue", str(TASKS), *words])
    assert [f"{name}.csv"] == [path.name for path in tmp_path.iterdir()]
    assert 2 == len(output.read_text().splitlines())


def test_a_ranking_tries_pairs_again_that_were_not_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, asked = tmp_path / "ranking.csv", list[str]()

    def ranked(folder: Path, *_: object, **__: object) -> RankedPair:
        asked.append(folder.name)
        return RankedPair(folder.name, 0.5, 1.0, 2)

    monkeypatch.setattr(ranking, "ranked_pair", ranked)
    write_csv([RankedPair("softmax", 0.5, 1.0, 2), RankedPair("matmul", 1.0, 0.5, 2, "naive is not slower")], output)
    words = [str(FOLDER), "--tasks", "softmax", "matmul", "--output", str(output), "--resume"]
    assert ranking.main(words) == 0
    assert ["matmul"] == asked
    assert ranking.main([*words[:-1], "--seconds", "-1"]) == 3
    assert ["matmul"] == asked


def test_a_museum_tries_again_what_was_not_as_its_card_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, tried = tmp_path / "museum.csv", list[str]()
    kept = MuseumRow("prints", "", "refused", "refused", "", "not asked", "", True, 1.0)
    write_csv([kept, MuseumRow("races", "", "wrong", "right", "", "", "", False, 1.5)], output)
    monkeypatch.setattr(museum_on_gpu, "answered", lambda *asked: {"right": True})

    def row(entry: museum_on_gpu.Entry, *_: object) -> MuseumRow:
        tried.append(entry.name)
        return MuseumRow(entry.name, "", "wrong", "wrong", "", "", "", True, 2.0)

    monkeypatch.setattr(museum_on_gpu, "row", row)
    words = ["prints", "races", "--output", str(output), "--resume"]
    assert museum_on_gpu.main([*words, "--seconds", "-1"]) == 3
    assert museum_on_gpu.main(words) == 0
    assert ["races"] == tried
    assert 2 == json.loads(output.with_suffix(".json").read_text())["counts"]["as their cards say"]


def test_without_a_working_gpu_no_entry_is_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(museum_on_gpu, "answered", lambda *asked: {"ended": "dies: no CUDA"})
    assert museum_on_gpu.main(["races", "prints"]) == 2
    assert "no GPU works here: an honest kernel dies: no CUDA" in capsys.readouterr().err
