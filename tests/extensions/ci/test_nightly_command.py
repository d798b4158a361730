"""`prism-bench nightly` in a project of its own, on the null backend."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from prism_bench.extensions.ci.commands import nightly as nightly_command
from prism_bench.extensions.ci.nightly import NightlyPlan, measuring, run
from prism_bench.extensions.ci.nightly.run import NightlyResult
from prism_bench.io.workers import environment
from prism_bench.record import store
from tests.cli.conftest import TOYS

QUICK = ("--backend", "null", "--processes", "1", "--filter", "triple", "--filter", "double")


def test_gpus_share_a_run_that_is_judged_and_published(shell, tmp_path, toys, monkeypatch):
    monkeypatch.setattr(run, "FIRST_SECONDS", (0.0,))  # the parts may end before the usual first line is due
    done = shell("nightly", *toys, "--workers", 2, *QUICK)
    assert 0 == done.code, done.out + done.err
    (path,) = tmp_path.glob("reports/runs/*/*.json.gz")
    assert [["double"], ["triple"]] == sorted(one["kernels"] for one in store.read(path).parts)
    assert f"record: {path.relative_to(tmp_path)}\n" in done.out
    assert "pages: reports/site/index.html\n" in done.out
    assert all((tmp_path / "reports/site" / name).is_file() for name in ("index.html", "check.md", "check.xml"))
    assert re.search(r"^nightly: \d+ s: part 1 of 2: ", done.err, re.MULTILINE), "it reports how far each part is"
    assert "alerts: no webhook" in done.err


def test_undecided_cases_are_measured_again_before_it_answers(shell, tmp_path, toys, monkeypatch):
    """One process a side decides nothing; two more do. Each case stays on the GPU that measured it."""
    monkeypatch.setattr(measuring, "nightly_looks", lambda start: (start, start + 2))
    words = ("nightly", *toys, "--workers", 2, *QUICK)
    assert 0 == shell(*words).code
    done = shell(*words)
    assert 0 == done.code, done.out + done.err
    assert "nightly: 3 undecided cases: measured again in 2 processes" in done.err
    first, second = (store.read(path) for path in sorted(tmp_path.glob("reports/runs/*/*.json.gz")))
    counts = [[len(one.measurement("cold_time").processes) for one in record.cases if one.measurements]
              for record in (first, second)]  # fmt: skip
    assert [[1, 1, 1], [3, 3, 3]] == counts
    assert 2 == first.protocol["looks"] == second.protocol["looks"]


def test_measuring_again_keeps_the_options_and_chooses_the_cases(tmp_path):
    words = ["softmax", "--filter", "gelu", "--label", "S0", "--label", "S1", "--no-energy", "--processes", "5",
             "--timeout", "30", "--no-peers", "--json"]  # fmt: skip
    asked = nightly_command.parsed(words)
    processes, rest = asked.processes, asked.options
    assert (5, ("--label", "S0", "--label", "S1", "--timeout", "30.0", "--no-energy")) == (processes, rest)
    plan = NightlyPlan(tmp_path, (), 1, None, tmp_path, tmp_path, tmp_path, processes=processes, options=rest)
    output = str(tmp_path / "again.json.gz")
    again_arguments = plan.again_arguments(tmp_path / "again.json.gz", ["softmax[n=1]"], 2)
    assert ["--no-peers", "--processes", "2", "--output", output, "softmax[n=1]"] == again_arguments[-6:]
    nightly_command.parsed(again_arguments[1:-3] + again_arguments[-1:])


def test_a_kernel_that_is_not_there_ends_with_2_and_its_reason(shell, toys):
    done = shell("nightly", *toys, "--backend", "null", "--filter", "no_such_kernel")
    assert 2 == done.code
    assert "no_such_kernel" in done.err and done.err.endswith("prism-bench: nightly: no record was written\n")


def test_the_plan_is_what_a_shell_would_do(shell, toys, tmp_path):
    (tmp_path / "prism-bench.toml").write_text('[history]\nto = "kept"\n')
    words = ("nightly", *toys, "--dry-run", "--workers", 2, "--history", "--filter", "a b")
    done = shell(*words)
    assert 0 == done.code, done.err
    lines = done.out.splitlines()
    assert [
        "prism-bench store", "CUDA_VISIBLE_DEVICES=0 prism-bench run", "CUDA_VISIBLE_DEVICES=1 prism-bench run",
        "prism-bench store", "prism-bench check", "prism-bench report", "prism-bench store",
    ] == [re.match(r"(CUDA\S+ )?prism-bench \w+", line)[0] for line in lines]  # fmt: skip
    chosen = shell(*words, "--runs", "x/records", "--noise", "x/noise").out.splitlines()
    assert [line for line in chosen if "merge" in line or "--runs x/records" in line] == chosen
    assert "--noise x/noise" in chosen[4]
    assert "--filter 'a b'" in lines[1] and "--part 1/2" in lines[1]
    assert ["prism-bench.toml"] == [path.name for path in tmp_path.iterdir()], "a plan writes nothing"
    assert lines == shell(*words, "--json").json["commands"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [(("--lable", "S0"), "No such option: --lable"), (("--processes", "many"), "'--processes'"),
     (("--part", "1/2"), "--part: nightly chooses it, by --workers"),
     (("--workers", "0"), "--workers"), (("--workers", "many"), "--workers"), (("--workers", "2.5"), "--workers")],
    ids=str,
)  # fmt: skip
def test_options_are_refused_before_anything_is_measured(shell, tmp_path, words, reason):
    done = shell("nightly", *words)
    assert 2 == done.code and reason in done.err, done.err
    assert [] == list(tmp_path.iterdir())


def test_a_project_configures_its_nightly_run(shell, tmp_path):
    (tmp_path / "prism-bench.toml").write_text(
        f'catalogue = "{TOYS}"\nstorage = "measured"\n[nightly]\ngpus = 2\nrun = ["triple", "--processes", "5"]\n'
        'history = true\n[history]\nto = "kept"\n'
    )
    lines = shell("nightly", "--dry-run").out.splitlines()
    assert 7 == len(lines)
    assert f"--to {tmp_path / 'kept'}" in lines[0]
    assert "run --runs measured/runs" in lines[1] and "triple --processes 5" in lines[1]
    assert "--output measured/site" in lines[5]
    assert "run --runs measured/runs double" in shell("nightly", "--dry-run", "--workers", 1, "double").out
    (tmp_path / "prism-bench.toml").write_text("[nightly]\ngpu = 2\n")
    done = shell("nightly")
    assert (2, True) == (done.code, "unknown key 'gpu'; did you mean gpus?" in done.err)


def test_json_is_one_document(shell, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "nightly", lambda *_: NightlyResult(1, tmp_path / "logs", tmp_path / "one.json.gz"))
    done = shell("nightly", "--json", "--backend", "null")
    assert 1 == done.code
    assert {"exit_code": 1, "interrupted": False, "record": "one.json.gz", "pages": None, "asv": None, "logs": "logs",
            "check": None} == done.json  # fmt: skip


def usual():
    """As on a terminal: a shell in the background has its commands ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_keeps_what_was_measured(tmp_path, toys):
    """More processes than anybody waits for: the first ones are measured and kept."""
    inherited = {**environment(), "PRISM_BENCH_SAVE_SECONDS": "0"}
    words = ["nightly", *map(str, toys), "--backend", "null", "--processes", "900", "triple"]
    process = subprocess.Popen(
        [sys.executable, "-m", "prism_bench", *words], cwd=tmp_path, env=inherited, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, preexec_fn=usual,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 90
        while not list(tmp_path.glob("reports/runs/*/*.json.gz")) and time.monotonic() < deadline:
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert 2 == process.returncode, err
    (path,) = tmp_path.glob("reports/runs/*/*.json.gz")
    record = store.read(path)
    assert not record.complete and record.cases
    assert f"record: {path.relative_to(tmp_path)}\n" in out
    assert "interrupted by SIGINT" in err and "Traceback" not in err
