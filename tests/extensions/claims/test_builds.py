"""Claims about two builds: names that a reader elsewhere understands, and their replay."""

import shutil
import subprocess

import pytest

from prism_bench.catalogue import discover
from prism_bench.errors import UsageError
from prism_bench.extensions.claims import replaying
from prism_bench.extensions.claims.checks import checked
from prism_bench.extensions.claims.document import encoded
from prism_bench.extensions.claims.making import ClaimMeasurement, of_builds
from prism_bench.extensions.claims.replaying import ClaimReplay
from tests.extensions.claims.planted import plant

CASE = "triple[n=1000]"
MEASUREMENT = ClaimMeasurement("null", processes=2)


def git(folder, *words):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path):
    """Two commits of a catalogue whose sources differ."""
    root = tmp_path / "repository"
    source = plant(root / "own").folder / "arith" / "triple.cu"
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    source.write_text(f"{source.read_text()}// second\n")
    git(root, "commit", "-qam", "second")
    return root


def test_commits_are_named_by_their_hash(repository, monkeypatch):
    """`HEAD~1` is another commit for each reader."""
    catalogue = discover(repository / "own")
    made = of_builds(("HEAD~1", "HEAD"), catalogue, MEASUREMENT, case=CASE)
    second, first = git(repository, "log", "--format=%H").split()
    assert [f"triple at {commit[:8]}" for commit in (second, first)] == [side.name for side in made.sides]
    assert f"of triple at {first[:8]}, " in made.sentence
    monkeypatch.setattr(replaying, "verify", lambda *_: [{"passed": True}])
    found = ClaimReplay(*checked(encoded(made), "claim"), catalogue, "emulator", trusted=True).replay()
    assert [f"outputs of {side.name}" for side in made.sides] == [
        one.what for one in found.checks if one.what.startswith("outputs")
    ]


def test_folders_of_one_name_are_told_apart(tmp_path):
    folders = [plant(tmp_path / place / "kernels").folder for place in ("a", "b")]
    source = folders[1] / "arith" / "triple.cu"
    source.write_text(f"{source.read_text()}// second\n")
    catalogue = discover(folders[0])
    made = of_builds((str(folders[0]), str(folders[1])), catalogue, MEASUREMENT, case=CASE)
    assert ["triple at b/kernels", "triple at a/kernels"] == [side.name for side in made.sides]
    shutil.copytree(folders[0], tmp_path / "old")
    other = of_builds((str(tmp_path / "old"), str(folders[1])), catalogue, MEASUREMENT, case=CASE)
    assert "of triple at old, " in other.sentence


def test_a_build_is_not_claimed_against_itself(repository):
    with pytest.raises(UsageError, match="both sides are"):
        of_builds(("HEAD", "HEAD"), discover(repository / "own"), MEASUREMENT, case=CASE)
