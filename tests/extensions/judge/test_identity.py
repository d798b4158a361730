"""What a verdict is on, and how somebody else judges the same again."""

import shutil
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.judge.jail.jail import jail_maker
from prism_bench.extensions.judge.judging import judge
from prism_bench.extensions.judge.task import headers_hash, task_hash

HERE = Path(__file__).parent
HEADER = "#pragma once\n"


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    shutil.copytree(HERE / "tasks", tmp_path / "tasks", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tasks" / "include").mkdir()
    (tmp_path / "tasks" / "include" / "add.cuh").write_text(HEADER)
    (tmp_path / "tasks" / "include" / "sizes.py").write_text("N = 1\n")
    return tmp_path / "tasks"


@pytest.mark.parametrize(
    ("file", "headers", "task"),
    [("include/add.cuh", True, False), ("include/sizes.py", False, True), ("sums/add.py", False, True),
     ("sums/add.cu", False, True), ("sums/small.py", False, False)],
)  # fmt: skip
def test_a_change_of_what_a_verdict_rests_on_changes_its_hash(
    catalogue: Path, file: str, headers: bool, task: bool
) -> None:
    def hashes() -> tuple[str, str]:
        return headers_hash(catalogue), task_hash(discover(catalogue).kernel("add"), catalogue)

    before = hashes()
    assert before == hashes()
    comment = "#" if file.endswith(".py") else "//"
    with (catalogue / file).open("a") as stream:
        stream.write(f"\n{comment} changed\n")
    assert (headers, task) == tuple(now != then for now, then in zip(hashes(), before, strict=True))


def test_a_secret_repeats_a_judgement(catalogue: Path) -> None:
    try:
        jail_maker()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    first, again, other = (
        judge(HERE / "museum" / "honest.toml", "add", catalogue=catalogue, secret=secret) for secret in (5, 5, 6)
    )
    assert "right" == first.ruling, first.objections
    assert 2 == len(first.hidden)
    assert first.hidden == again.hidden != other.hidden
    assert {one.case for one in first.checked} >= set(first.hidden)
    assert (first.secret, first.task_sha256, first.headers_sha256) == (5, again.task_sha256, headers_hash(catalogue))
