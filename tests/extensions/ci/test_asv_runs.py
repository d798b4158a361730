"""A commit for every nightly run: the ledger, the repository made from it, and asv's configuration."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prism_bench.errors import ResultsError, UsageError
from prism_bench.extensions.ci.asv_runs import AsvProject, NightlyRun, commits, configuration, entered, project_at, read
from prism_bench.io.installation import pip_install
from tests.report.synthetic import record_of

HOUSE = Path(__file__).resolve().parents[3]
ONE = NightlyRun("2026-11-20T22:14:05", "20261120T221405Z-aaaaaaaa.json.gz", "a" * 40, {"driver": "580"})
TWO = NightlyRun("2026-11-21T22:14:05", "20261121T221405Z-aaaaaaaa.json.gz", "a" * 40, {"driver": "590"})


def shown(repository, name, what):
    command = ["git", "--git-dir", str(repository), "show", "--no-patch", f"--format={what}", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_same_ledger_gives_the_same_commits_anywhere(tmp_path):
    first, second = (commits({"box": [ONE, TWO]}, tmp_path / name) for name in ("one.git", "two.git"))
    assert first == second
    assert 2 == len(set(first["box"]))


def test_the_commits_of_kept_results_stay_what_they_were(tmp_path):
    """Results of asv that are kept already are named by them."""
    assert ["18cc4ba1"] == [one[:8] for one in commits({"box": [ONE]}, tmp_path / "one.git")["box"]]


def test_a_later_run_leaves_earlier_commits_as_they_are(tmp_path):
    before = commits({"box": [ONE]}, tmp_path / "runs.git")["box"]
    assert before == commits({"box": [ONE, TWO]}, tmp_path / "runs.git")["box"][:1]


def test_machines_do_not_disturb_each_other(tmp_path):
    alone = commits({"box": [ONE, TWO]}, tmp_path / "one.git")["box"]
    assert alone == commits({"attic": [TWO], "box": [ONE, TWO]}, tmp_path / "two.git")["box"]


def test_a_commit_tells_when_and_what(tmp_path):
    (made,) = commits({"box": [ONE]}, tmp_path / "runs.git")["box"]
    assert "2026-11-20T22:14:05+00:00" == shown(tmp_path / "runs.git", made, "%cI")
    message = shown(tmp_path / "runs.git", made, "%B")
    assert message.startswith("2026-11-20T22:14:05 aaaaaaaa\n") and "driver 580" in message


def test_a_run_is_entered_once(tmp_path):
    ledger = tmp_path / "box.jsonl"
    (run,) = entered(record_of(), "one.json.gz", ledger)
    assert ("one.json.gz", "2026-11-20T22:14:05") == (run.record, run.created)
    text = ledger.read_text()
    assert [run] == entered(record_of(), "one.json.gz", ledger) == read(ledger)
    assert text == ledger.read_text()
    runs = entered(record_of(created="2026-11-21T00:00:00"), "two.json.gz", ledger)
    assert [run.record, "two.json.gz"] == [one.record for one in runs]


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", "<<<<<<< ours", json.dumps({**vars(ONE), "created": "yesterday"}),
             json.dumps({**vars(ONE), "commit": 7}), json.dumps({**vars(ONE), "software": None})],
)  # fmt: skip
def test_a_line_that_is_no_run_is_named(tmp_path, line):
    ledger = tmp_path / "box.jsonl"
    ledger.write_text(json.dumps(vars(ONE)) + "\n" + line + "\n")
    with pytest.raises(ResultsError, match=r"box\.jsonl:2: not a nightly run"):
        read(ledger)


def test_the_configuration_is_that_of_the_project_with_other_places(tmp_path):
    project = AsvProject(HOUSE, HOUSE / "reports", HOUSE / "reports/site")
    made = configuration(project, ["box"])
    given = json.loads(
        "\n".join(line for line in (HOUSE / "asv.conf.json").read_text().splitlines() if "//" not in line)
    )
    assert ("runs.git", ["box"]) == (made["repo"], made["branches"])
    found = {name: (project.generated / made[name]).resolve() for name in ("benchmark_dir", "results_dir", "html_dir")}
    assert {
        "benchmark_dir": HOUSE / given["benchmark_dir"], "results_dir": HOUSE / "reports/asv-nights",
        "html_dir": HOUSE / "reports/site/nights",
    } == found  # fmt: skip
    assert [".prism_bench.report.asv.publisher"] == made["plugins"]


class TestWhoseProject:
    """Another project's asv suites are left alone."""

    def found(self, folder, text):
        (folder / "asv.conf.json").write_text(text)
        return project_at(folder, folder / "reports", folder / "site")

    def test_none(self, tmp_path):
        assert project_at(tmp_path, tmp_path, tmp_path) is None

    def test_other_suites(self, tmp_path):
        assert self.found(tmp_path, '{"version": 1, "repo": "."}') is None

    def test_with_the_plugin(self, tmp_path):
        assert tmp_path == self.found(tmp_path, '{"plugins": [".prism_bench.report.asv.publisher"]}').folder

    def test_not_readable(self, tmp_path):
        with pytest.raises(ResultsError, match=r"asv\.conf\.json: not readable"):
            self.found(tmp_path, "{")

    def test_without_asv(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "asv.util", None)
        with pytest.raises(UsageError, match=re.escape(f"needs asv: {pip_install('asv')}")):
            self.found(tmp_path, "{}")
