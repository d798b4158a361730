"""Measurements in repositories that are made for them, on the scripted backend: bisect, first verdict, pull request."""

import csv
import json

import pytest
from lab import REPOSITORY
from lab.own_repository import bisecting, pull_request, ten_minutes
from lab.own_repository.histories import ITERATIONS, PlantedHistory, added_iterations, iterations_of_all, plant
from lab.own_repository.trial import TrialCommand, TrialRepository
from lab.planted import delayed_text

from docs.measured import NOTHING, measured_part
from prism_bench.backends.null import SCRIPT
from prism_bench.errors import ResultsError
from prism_bench.workflows.compile_table import write_csv

TOYS = REPOSITORY / "tests" / "toys"
TIMES = {
    "chain*": {"seconds": 2e-5, "with_source": {"ITERATIONS 8400": {"seconds": 2.1e-5}}},
    "saxpy:triton*": {"sass": "a", "with_source": {'"BLOCK": 32': {"seconds": 2e-6, "sass": "b"}}},
    "triple*": {"sass": "a", "with_source": {"blockIdx.x % 64": {"seconds": 2e-6, "sass": "b"}}},
}


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    """Scripted times of every kernel that is slowed here; reports are kept under the name `box`."""
    (tmp_path / "script.json").write_text(json.dumps(TIMES))
    monkeypatch.setenv(SCRIPT, str(tmp_path / "script.json"))
    monkeypatch.setenv("PRISM_BENCH_MACHINE", "box")


def ended(history, culprits, ended="decided", none=0.01):
    """A bisection's output, for commits that are called by their numbers."""
    nodes = [{"commits": [str(at)], "change": 0.99 if at in culprits else 0.0, "ratio": 1.05, "processes": 2}
             for at in (0, *history.changing)]  # fmt: skip
    plain = {
        "culprits": [[str(at)] for at in culprits],
        "ended": ended,
        "none": none,
        "measurements": 3,
        "nodes": nodes,
    }
    return TrialCommand("prism-bench bisect", int(bool(culprits)), 44.0, json.dumps(plain), "")


def row_of(history, culprits, **more):
    return bisecting.row(history, 400, [str(at) for at in range(history.commits)], ended(history, culprits, **more))


class TestBisect:
    def test_histories_are_seeded_and_one_changing_commit_is_planted(self):
        drawn = [PlantedHistory(0.05, number) for number in range(20)]
        assert [one.planted for one in drawn] == [PlantedHistory(0.05, number).planted for number in range(20)]
        assert all(one.planted in one.changing and len(one.changing) == 5 for one in drawn)
        assert len({one.planted for one in drawn}) > 5
        assert None is PlantedHistory(0.0, 1).planted
        with pytest.raises(ResultsError, match="give 1 to 15"):
            PlantedHistory(0.05, 0, codes=16)

    def test_a_history_slows_from_the_planted_commit_on(self, tmp_path):
        history, repository = PlantedHistory(0.05, 3), TrialRepository(tmp_path / "r")
        commits = plant(repository, history, 400)
        texts = [repository.git("show", f"{one}:kernels/chains/chain.cu").output for one in commits]
        slow = [f"ITERATIONS {ITERATIONS + 400}\n" in text for text in texts]
        assert [at >= history.planted for at in range(16)] == slow
        assert list(history.changing) == [at for at in range(1, 16) if texts[at] != texts[at - 1]]

    def test_a_launch_that_takes_time_is_counted_in(self, monkeypatch, tmp_path):
        """4 us of launch and 16 us of iterations: 5 % of 20 us are 6.25 % of the iterations."""
        case = {"case": "chain[n=32768]", "seconds": [20e-6, 36e-6]}
        answers = iter([case, {**case, "seconds": [20e-6, 21e-6]}])
        monkeypatch.setattr(
            TrialRepository, "command",
            lambda self, *words: TrialCommand("compare", 1, 1.0, json.dumps({"cases": [next(answers)]}), ""),
        )  # fmt: skip
        whole = iterations_of_all(TrialRepository(tmp_path / "a"), "null")
        assert 10_000 == pytest.approx(whole)
        assert (496, 200, 0) == tuple(added_iterations(share, whole) for share in (0.05, 0.02, 0.0))
        with pytest.raises(ResultsError, match="nothing to plant"):
            iterations_of_all(TrialRepository(tmp_path / "b"), "null")

    def test_a_row_is_right_wrong_or_nothing(self):
        slow, clean = PlantedHistory(0.05, 1), PlantedHistory(0.0, 1)
        other = next(at for at in slow.changing if at != slow.planted)
        both = row_of(slow, [slow.planted, other])
        undecided = row_of(slow, [], ended="time limit")
        found = [row_of(slow, [slow.planted]), row_of(slow, [other]), both, row_of(slow, []), undecided,
                 row_of(clean, []), row_of(clean, [3])]  # fmt: skip
        assert ["right", "wrong", "wrong", "nothing", "nothing", "right", "wrong"] == [one["found"] for one in found]
        assert ("0.9900", "0.05000", 6) == tuple(
            found[0][name] for name in ("probability", "measured_slowdown", "codes")
        )
        assert ["5%: 1 of 5 searches right, 44 s each", "0%: 1 of 2 searches right, 44 s each"] == bisecting.summary(
            found
        )

    def test_a_later_call_goes_on_and_a_search_cut_by_the_call_is_not_kept(self, monkeypatch, tmp_path):
        done, todo = PlantedHistory(0.05, 0), [PlantedHistory(0.05, 1), PlantedHistory(0.05, 2)]
        path = tmp_path / "bisect.csv"
        write_csv([row_of(done, [done.planted])], path, bisecting.COLUMNS)
        rows = bisecting.kept_rows(path)
        assert todo == bisecting.missing(rows, [done, *todo])
        monkeypatch.setattr(bisecting, "searched", lambda one, added, effort: row_of(one, [], ended="time limit"))
        effort = bisecting.SearchEffort("null", 2, 200.0)
        assert [] == list(bisecting.searches(rows, todo, effort, 100.0))
        assert [] == list(bisecting.searches(rows, todo, effort, 30.0))
        assert 2 == len(list(bisecting.searches(rows, todo, effort, 1000.0))), "its own limit is an answer"

    def test_another_table_is_refused(self, tmp_path, capsys):
        (tmp_path / "a.csv").write_text("a,b\n1,2\n")
        assert 2 == bisecting.main(["--backend", "null", "--output", str(tmp_path / "a.csv")])
        assert "its columns are others" in capsys.readouterr().err

    def test_a_search_on_the_scripted_backend_finds_the_planted_commit(self, scripted, tmp_path, capsys):
        path = tmp_path / "box" / "bisect.csv"
        before = row_of(PlantedHistory(0.05, 99), [])  # so that nothing is calibrated: 400 iterations are 5 %
        write_csv([before], path, bisecting.COLUMNS)
        words = ["--backend", "null", "--slowdown", "0.05", "--repeat", "1", "--commits", "3", "--codes", "1"]
        assert 0 == bisecting.main([*words, "--seconds", "550", "--output", str(path)])
        with path.open(newline="") as file:
            _, found = csv.DictReader(file)
        assert ("right", "1", "2") == (found["found"], found["exit_code"], found["codes"])
        assert 0.05 == pytest.approx(float(found["measured_slowdown"]), abs=1e-3)
        assert "0 searches left" in capsys.readouterr().out
        assert "| box | 5 % | 2 | 1 | 0 | 1 | 5.0 % to 5.0 % |" in measured_part(tmp_path)


class TestTenMinutes:
    def test_a_slower_triton_kernel_is_found_in_an_empty_repository(self, scripted, tmp_path):
        path = tmp_path / "reports" / "box" / "own_repository.json"
        assert 0 == ten_minutes.main(["--backend", "null", "--language", "triton", "--output", str(path)])
        plain = json.loads(path.read_text())
        way = plain["languages"]["triton"]
        assert ("box", ["triton"], True) == (plain["machine"], list(plain["languages"]), way["found"])
        words = [one["command"].split()[1] for one in way["commands"]]
        assert ["init", "commit", "compare", "run", "run", "check"] == words
        assert [0, 0, 1, 0, 0, 1] == [one["exit_code"] for one in way["commands"]]
        assert {"saxpy[n=100000]": "same", "saxpy:triton[n=100000]": "slower"} == way["commands"][2]["verdict"]
        part = measured_part(tmp_path / "reports")
        assert "| box | triton | 1 case slower, exit code 1 | exit code 1 |" in part

    @pytest.mark.parametrize(
        ("verdict", "codes", "found"),
        [({"saxpy[n=1]": "slower"}, (1, 1), True), ({"saxpy[n=1]": "same"}, (0, 1), False),
         ({"saxpy[n=1]": "slower"}, (1, 0), False),
         ({"saxpy[n=1]": "slower", "saxpy:triton[n=1]": "slower"}, (1, 1), False)],
    )  # fmt: skip
    def test_only_the_slowed_kernel_may_be_slower(self, verdict, codes, found):
        steps = [ten_minutes.StepTaken("prism-bench compare --json", codes[0], 1.0, verdict),
                 ten_minutes.StepTaken("prism-bench check", codes[1], 1.0, "")]  # fmt: skip
        assert found == ten_minutes.was_found("cuda", steps)

    def test_every_slowed_file_of_the_guide_has_what_is_replaced(self):
        assert '"BLOCK": 1024' in ten_minutes.guide_file(ten_minutes.TRITON)
        with pytest.raises(ResultsError, match=r"has no file other\.py"):
            ten_minutes.guide_file("other.py")

    def test_a_wheel_that_pip_does_not_install_is_one_sentence(self, tmp_path, capsys):
        words = ["--backend", "null", "--wheel", str(tmp_path / "none.whl"), "--output", str(tmp_path / "a.json")]
        assert 2 == ten_minutes.main(words)
        assert "pip does not install" in capsys.readouterr().err


class TestPullRequest:
    def test_a_slowed_kernel_is_judged_with_an_empty_cache(self, scripted, tmp_path):
        folder = tmp_path / "reports" / "box" / "pull_request"
        words = ["--backend", "null", "--kernel", "triple", "--catalogue", str(TOYS), "--label", "S0"]
        assert 0 == pull_request.main([*words, "--comparisons", "1", "--output", str(folder)])
        plain = json.loads((folder / "triple-S0-cold.json").read_text())
        assert ("triple", ["S0"], "cold", 1) == tuple(
            plain[name] for name in ("kernel", "labels", "cache", "exit_code")
        )
        assert 1 == plain["comparison"]["counts"]["slower"]
        assert plain["all_cases"] > len(plain["comparison"]["cases"]) > 0
        assert "| box | `triple` | S0 | 4 | 3 | cold | 1 |" in measured_part(tmp_path / "reports")

    def test_comparisons_after_the_first_are_warm_and_of_other_changes(self, monkeypatch, tmp_path):
        texts = []

        def compared(repository, request, state):
            texts.append((repository.folder / "kernels/arith/triple.cu").read_text())
            return {}

        monkeypatch.setattr(pull_request, "_compared", compared)
        request = pull_request.SlowedRequest(TOYS, "triple", ("S0",), "null")
        (tmp_path / "cache").mkdir()
        states = [state for call in ("a", "b")
                  for state, _ in pull_request.requests(request, tmp_path / call, tmp_path / "cache", 2)]  # fmt: skip
        assert ["cold", "warm", "warm", "warm"] == states
        assert 4 == len(set(texts))

    @pytest.mark.parametrize("kernel", ["other", "softmax.tile"])
    def test_a_kernel_that_is_not_there_is_one_sentence(self, kernel, tmp_path, capsys):
        words = ["--backend", "null", "--kernel", kernel, "--catalogue", str(TOYS), "--output", str(tmp_path)]
        assert 2 == pull_request.main(words)
        assert f"--kernel {kernel}: choose a kernel in CUDA C++" in capsys.readouterr().err

    @pytest.mark.parametrize("name", ["transformer/multi_head_attention", "basic/relu"])
    def test_every_entry_of_a_source_gets_the_wait(self, name):
        text = (REPOSITORY / "kernels" / f"{name}.cu").read_text()
        slowed = delayed_text(text, 1234)
        assert text.count("__global__") == slowed.count("clock64() - from < 1234ll")
        assert text == slowed.replace(slowed[slowed.index("\n#ifndef CPU_CUDA") : slowed.index("#endif\n") + 7], "")
        with pytest.raises(ResultsError, match="no __global__ function"):
            delayed_text('#include "a.cuh"\n', 1)


def test_nothing_measured_is_nothing_shown(tmp_path):
    (tmp_path / "box").mkdir()
    assert NOTHING == measured_part(tmp_path)
