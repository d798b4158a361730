"""Code of a case at every commit: many are compiled at once, checkouts go, and a time limit ends it."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from prism_bench.errors import UsageError
from prism_bench.spec.case import Device
from prism_bench.workflows import bisecting
from prism_bench.workflows.bisecting import HistoryCode
from prism_bench.workflows.case_code import CodeReader

TOYS = Path(__file__).parents[1] / "toys"
CASE = "triple[n=1000]"


@pytest.fixture
def compiled(monkeypatch):
    """The sources that were compiled together, call by call, by a compiler that refuses 9.0f."""
    calls = []

    def compile_together(jobs):
        texts = {job: job.request.source.read_text() for job in jobs}
        calls.append([text.split("y[i] = ")[1][:4] for text in texts.values()])
        return {job: "error: 9" if "9.0f" in text else None for job, text in texts.items()}

    monkeypatch.setattr(bisecting, "compiled_jobs", compile_together)
    return calls


class Checkouts:
    """Commits named by the factor in the source; `most` is how many were kept at once."""

    def __init__(self, folder):
        self.folder, self.most, self.number = folder, 0, 0

    @contextmanager
    def __call__(self, commit):
        self.number += 1
        path = self.folder / f"{self.number}"
        shutil.copytree(TOYS, path, ignore=shutil.ignore_patterns("__pycache__"))
        source = path / "arith" / "triple.cu"
        source.write_text(source.read_text().replace("3.0f", commit[:4]))
        self.most = max(self.most, len(list(self.folder.iterdir())))
        yield path
        shutil.rmtree(path)


def codes(folder, commits, name=CASE, **words):
    opened = Checkouts(folder)
    found = HistoryCode(name, opened, lambda: CodeReader(Device(), "machine code")).at(commits, **words)
    assert [] == list(folder.iterdir()), "every checkout is removed"
    return found, opened


def test_sources_that_are_new_are_compiled_together_and_once(tmp_path, compiled):
    commits = ["3.0f", "3.0f again", "4.0f", "9.0f", "4.0f again", "5.0f"]
    found, opened = codes(tmp_path, commits)
    assert [["3.0f", "4.0f", "9.0f", "5.0f"]] == compiled
    assert commits == list(found)
    assert found["3.0f"] == found["3.0f again"] != found["4.0f"] == found["4.0f again"]
    assert None is found["9.0f"]
    assert opened.most <= 5, "a checkout whose source is known is not kept"


def test_few_checkouts_are_kept_at_once(tmp_path, compiled, monkeypatch):
    monkeypatch.setattr(bisecting, "usable_cores", lambda: 1)
    _, opened = codes(tmp_path, [f"{number}.1f" for number in range(10, 30)])
    assert [8, 8, 4] == [len(call) for call in compiled]
    assert 8 == opened.most


def test_a_case_that_did_not_exist_has_no_code(tmp_path, compiled):
    assert {"3.0f": None} == codes(tmp_path, ["3.0f"], "triple[n=7]")[0]
    assert [[]] == compiled


def test_a_time_limit_ends_compiling(tmp_path, compiled):
    with pytest.raises(UsageError, match="the time limit ended after 0 of 2 commits were read and compiled"):
        codes(tmp_path, ["3.0f", "4.0f"], end=0.0)
