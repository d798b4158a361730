"""A commit for every night: the ledger, the repository made from it, and whole nights by `scripts/nightly`."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from prism_bench import store
from prism_bench.errors import ResultsError
from suites.nights import Night, commits, configuration, entered, read
from tests.report.synthetic import record_of
from tests.suites.planted import HOUSE, plant

ONE = Night("2026-11-20T22:14:05", "20261120T221405Z-aaaaaaaa.json.gz", "a" * 40, {"driver": "580"})
TWO = Night("2026-11-21T22:14:05", "20261121T221405Z-aaaaaaaa.json.gz", "a" * 40, {"driver": "590"})


def shown(repository, name, what):
    command = ["git", "--git-dir", str(repository), "show", "--no-patch", f"--format={what}", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_same_ledger_gives_the_same_commits_anywhere(tmp_path):
    first, second = (commits({"box": [ONE, TWO]}, tmp_path / name) for name in ("one.git", "two.git"))
    assert first == second
    assert 2 == len(set(first["box"]))


def test_a_later_night_leaves_earlier_commits_as_they_are(tmp_path):
    before = commits({"box": [ONE]}, tmp_path / "nights.git")["box"]
    assert before == commits({"box": [ONE, TWO]}, tmp_path / "nights.git")["box"][:1]


def test_machines_do_not_disturb_each_other(tmp_path):
    alone = commits({"box": [ONE, TWO]}, tmp_path / "one.git")["box"]
    assert alone == commits({"attic": [TWO], "box": [ONE, TWO]}, tmp_path / "two.git")["box"]


def test_a_commit_tells_when_and_what(tmp_path):
    (made,) = commits({"box": [ONE]}, tmp_path / "nights.git")["box"]
    assert "2026-11-20T22:14:05+00:00" == shown(tmp_path / "nights.git", made, "%cI")
    message = shown(tmp_path / "nights.git", made, "%B")
    assert message.startswith("2026-11-20T22:14:05 aaaaaaaa\n") and "driver 580" in message


def test_a_night_is_entered_once(tmp_path):
    ledger = tmp_path / "box.jsonl"
    (night,) = entered(record_of(), "one.json.gz", ledger)
    assert ("one.json.gz", "2026-11-20T22:14:05") == (night.record, night.created)
    text = ledger.read_text()
    assert [night] == entered(record_of(), "one.json.gz", ledger) == read(ledger)
    assert text == ledger.read_text()
    nights = entered(record_of(created="2026-11-21T00:00:00"), "two.json.gz", ledger)
    assert [night.record, "two.json.gz"] == [one.record for one in nights]


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", "<<<<<<< ours", json.dumps({**vars(ONE), "created": "yesterday"}),
             json.dumps({**vars(ONE), "commit": 7}), json.dumps({**vars(ONE), "software": None})],
)  # fmt: skip
def test_a_line_that_is_no_night_is_named(tmp_path, line):
    ledger = tmp_path / "box.jsonl"
    ledger.write_text(json.dumps(vars(ONE)) + "\n" + line + "\n")
    with pytest.raises(ResultsError, match=r"box\.jsonl:2: not a nightly run"):
        read(ledger)


def test_the_configuration_is_ours_with_other_places():
    made = configuration(["box"])
    assert ("nights.git", ["box"], "../suites") == (made["repo"], made["branches"], made["benchmark_dir"])
    assert [".prism_bench.report.asv.publisher"] == made["plugins"]


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """A small project that a night was spent on: its folder, the environment, and what the night ended with."""
    project = plant(tmp_path_factory.mktemp("nights"))
    shutil.copytree(HOUSE / "scripts", project.newer / "scripts")
    for family in ("tensor", "transformer"):  # asv starts a process for each case
        shutil.rmtree(project.newer / "kernels" / family)
    bin_ = project.newer / "bin"
    bin_.mkdir()
    for name, words in {"python": "", "prism-bench": "-m prism_bench"}.items():
        (bin_ / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (bin_ / name).chmod(0o755)
    environment = {**project.environment, "BIN": str(bin_), "PYTHONPATH": str(project.newer)}
    filters = ("--filter", "vector_add", "--filter", "aardvark")
    command = ["scripts/nightly", "--backend", "null", "--processes", "1", *filters]
    shared = {**environment, "GPUS": "2"}
    done = subprocess.run(command, cwd=project.newer, env=shared, capture_output=True, text=True)
    return project.newer, environment, done


def test_a_night_is_judged_and_published_under_a_commit_of_its_own(night):
    folder, _, done = night
    assert 0 == done.returncode, done.stdout + done.stderr
    commit = re.search(r"^night: \S+ ([0-9a-f]{40}),", done.stdout, re.M)[1]
    assert list(folder.glob(f"reports/asv-nights/*/{commit[:8]}-existing-*.json"))
    (graph,) = folder.glob("reports/site/nights/graphs/**/branch-*/**/times.Cold.track_cold_time.json")
    assert 1 == len(json.loads(graph.read_text()))
    assert all((folder / "reports/site" / name).is_file() for name in ("index.html", "check.md", "check.xml"))


def test_gpus_share_a_night(night):
    folder, _, done = night
    assert "merged: 2 parts, 2 kernels" in done.stdout
    (path,) = folder.glob("reports/runs/*/*.json.gz")
    assert [["aardvark"], ["vector_add"]] == sorted(part["kernels"] for part in store.read(path).parts)


@pytest.mark.parametrize("gpus", ["many", "0", "2.5"])
def test_a_number_of_gpus_that_is_none_is_refused(night, gpus):
    folder, environment, _ = night
    done = subprocess.run(
        ["scripts/nightly"], cwd=folder, env={**environment, "GPUS": gpus}, capture_output=True, text=True
    )
    assert (2, f"nightly: GPUS is '{gpus}'; it is a number of GPUs\n") == (done.returncode, done.stderr)


def test_a_part_that_is_lost_leaves_no_record(night):
    folder, environment, _ = night
    command = ["scripts/nightly", "--backend", "null", "--filter", "no_such_kernel"]
    shared = {**environment, "GPUS": "2"}
    done = subprocess.run(command, cwd=folder, env=shared, capture_output=True, text=True)
    assert 2 == done.returncode
    assert "nightly: part 2 of 2 was not measured:" in done.stderr and "no_such_kernel" in done.stderr


@pytest.fixture
def stubbed(tmp_path):
    """A function that runs the script with programs that do nothing and end as they are told."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(HOUSE / "scripts/nightly", tmp_path / "scripts")
    (tmp_path / "bin").mkdir()
    for name, text in {"prism-bench": STUB, "python": "echo box 1234"}.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)

    def night(**environment):
        command, places = ["scripts/nightly"], {"BIN": str(tmp_path / "bin"), "PATH": os.environ["PATH"]}
        return subprocess.run(
            command, cwd=tmp_path, env={**places, **environment}, capture_output=True, text=True, timeout=120
        )

    return night


# `run` ends with RUN, its second part with SECOND; `check` with CHECK. `run` takes SLOW seconds.
STUB = """
part=; output=
while [ $# -gt 0 ]; do
    case $1 in run | check | merge) command=$1 ;; --part) part=$2 ;; --output) output=$2 ;; esac
    shift
done
[ -z "$output" ] || touch "$output"
[ "$command" != run ] || [ -z "$SLOW" ] || { echo "60 s: process 1, ${part%/*} of 9: case"; sleep "$SLOW"; }
[ "$command" = check ] || echo "record: one.json.gz"
case $command$part in run2/2) exit "${SECOND:-0}" ;; run*) exit "${RUN:-0}" ;; check) exit "${CHECK:-0}" ;; esac
"""


@pytest.mark.parametrize(
    ("ended", "code"),
    [({}, 0), ({"RUN": "2"}, 2), ({"RUN": "1"}, 1), ({"RUN": "137"}, 2), ({"RUN": "2", "CHECK": "1"}, 1),
     ({"RUN": "1", "CHECK": "3"}, 3), ({"GPUS": "2"}, 0), ({"GPUS": "2", "SECOND": "2"}, 2),
     ({"GPUS": "2", "RUN": "1", "SECOND": "3"}, 3), ({"GPUS": "2", "SECOND": "130"}, 2)],
    ids=str,
)  # fmt: skip
def test_how_the_run_ended_counts(stubbed, ended, code):
    """A run that was cut short, or one with a broken spec, was a night with 0 where the check found nothing."""
    done = stubbed(**ended)
    assert code == done.returncode, done.stdout + done.stderr
    assert ("nightly: the run ended with" in done.stderr) == (code != 0 and "CHECK" not in ended)


def test_how_far_every_part_is_comes_along_the_way(stubbed):
    """Four GPUs measured for minutes, and nothing was said."""
    done = stubbed(GPUS="2", SLOW="3", NIGHTLY_SECONDS="0.3")
    assert 0 == done.returncode, done.stdout + done.stderr
    for part in (1, 2):
        assert re.search(rf"^nightly: \d+ s: part {part} of 2: 60 s: process 1, {part} of 9: case$", done.stderr, re.M)
    assert "nightly: " not in done.stdout


def test_the_wait_for_the_next_line_of_progress_holds_up_nothing(stubbed, tmp_path):
    """A night of several GPUs ended up to a minute late, and the next one found its lock taken until then."""
    done = stubbed(GPUS="2", NIGHTLY_SECONDS="3600")
    assert 0 == done.returncode, done.stdout + done.stderr
    with (tmp_path / ".asv/nightly.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_another_night_of_the_same_commit_is_another_one(night):
    """Entered again, a night is the same; a second record of the same sources is a second commit after it."""
    folder, environment, _ = night
    (path,) = folder.glob("reports/runs/*/*.json.gz")
    second = store.save(replace(store.read(path), created="2099-01-01T00:00:00"), path.with_name("second.json.gz"))
    told = [_entered(folder, environment, one) for one in (path, second, path)]
    assert told[0] == told[2] != told[1]
    assert 2 == len(next(folder.glob("reports/nights/*.jsonl")).read_text().splitlines())


def _entered(folder, environment, path):
    command = [sys.executable, "-m", "suites.nights", path]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout


def test_two_nights_at_once_are_refused(night):
    folder, _, _ = night
    with (folder / ".asv/nightly.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["scripts/nightly"], cwd=folder, capture_output=True, text=True)
    assert (2, "nightly: another night is being measured here\n") == (done.returncode, done.stderr)


def test_a_night_without_a_record_ends_with_2(night):
    folder, environment, _ = night
    command = ["scripts/nightly", "--filter", "no_such_kernel"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert 2 == done.returncode
    assert "no_such_kernel" in done.stderr and done.stderr.endswith("nightly: no record was written\n")
