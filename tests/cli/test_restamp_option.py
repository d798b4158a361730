"""`prism-bench tune FILE`: a store of choices is brought up to date without a device."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from prism_bench.catalogue import discover
from prism_bench.workflows.tuning.choice import KeptChoices, launched, read_kept, write_kept
from tests.workflows.tuning.choices import choice

TUNABLE = Path(__file__).parent.parent / "tunable"


@pytest.fixture
def repository(tmp_path):
    """A checkout of the toy catalogue, and a function that commits it and returns the commit."""
    shutil.copytree(TUNABLE, tmp_path / "kernels", ignore=shutil.ignore_patterns("__pycache__"))

    def git(*words):
        who = ("-c", "user.name=Prism", "-c", "user.email=prism@example.org")
        done = subprocess.run(["git", "-C", tmp_path, *who, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "--quiet")
    git("add", "kernels")
    git("commit", "--quiet", "-m", "Add the toy")
    return tmp_path / "kernels", git("rev-parse", "HEAD")


@pytest.mark.parametrize(("file", "old", "new", "kept"), [
    ("tripled.py", "reference=lambda x: 3 * x", "reference=lambda x: x + x + x", 1),
    ("tripled.cu", "3.0f *", "3.f *", 0),
])  # fmt: skip
def test_a_choice_is_kept_where_the_launch_is_the_same(shell, repository, file, old, new, kept):
    folder, commit = repository
    path = write_kept(
        KeptChoices("h200", "NVIDIA H200", "cuda", (choice(commit=commit, source="by another rule"),)),
        folder.parent / "choices.json",
    )
    edited = folder / "arith" / file
    assert old in edited.read_text()
    edited.write_text(edited.read_text().replace(old, new))
    found = shell("tune", path, "--catalogue", folder)
    assert 0 == found.code
    assert f"{kept} kept, {kept} of them with a new hash" in found.out
    assert ("dropped: tripled[n=2500]: what is launched changed since" in found.out) == (not kept)
    today = launched(discover(folder).kernel("tripled"))
    after = read_kept(path)
    assert after is not None
    assert [today] * kept == [one.source for one in after.choices]


def test_a_store_that_is_not_there_ends_with_2(shell, tmp_path):
    found = shell("tune", tmp_path / "none.json")
    assert (2, True) == (found.code, "no such file" in found.err)


def test_json_names_what_is_dropped(shell, tmp_path):
    path = write_kept(KeptChoices("h200", "NVIDIA H200", "cuda", (choice(kernel="gone"),)), tmp_path / "choices.json")
    found = shell("tune", path, "--json")
    assert {"kept": 0, "changed": 0} == {key: json.loads(found.out)[key] for key in ("kept", "changed")}
    assert "the catalogue has no such kernel" == found.json["dropped"][0]["reason"]
