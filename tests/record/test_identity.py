"""Machine, commit and software: what makes two numbers comparable."""

import os
import subprocess

import pytest

from prism_bench.record import identity


@pytest.fixture
def checkout(tmp_path):
    """A repository with one commit that holds one file."""

    def git(*words):
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(command, check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "kernel.cu").write_text("one")
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "old.json").write_text("{}")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    return tmp_path


def test_a_clean_checkout_has_its_commit(checkout):
    commit, dirty = identity.commit_of(checkout)
    assert (40, False) == (len(commit), dirty)


def test_the_time_of_a_commit_is_that_of_the_committer(checkout):
    commit, _ = identity.commit_of(checkout)
    command = ["git", "-C", str(checkout), "log", "-1", "--date=format-local:%Y-%m-%dT%H:%M:%S", "--format=%cd"]
    environment = {**os.environ, "TZ": "UTC"}
    when = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()
    assert when == identity.committed_at(checkout, commit)
    assert [None, None] == [identity.committed_at(checkout, unknown) for unknown in (None, "0" * 40)]


def test_a_changed_source_makes_it_dirty(checkout):
    (checkout / "kernel.cu").write_text("two")
    assert identity.commit_of(checkout)[1]


def test_a_new_record_does_not_make_it_dirty(checkout):
    (checkout / "reports" / "old.json").write_text("[]")
    (checkout / "reports" / "new.json").write_text("[]")
    assert not identity.commit_of(checkout)[1]


def test_outside_a_checkout_there_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert (None, False) == identity.commit_of(tmp_path)


def test_an_exported_tree_says_its_commit_through_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv(identity.COMMIT, "0123abcd")
    assert ("0123abcd", False) == identity.commit_of(tmp_path)


def test_without_git_there_is_no_commit(checkout, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert (None, False) == identity.commit_of(checkout)


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"device": "NVIDIA H200", "uuid": "ab"}, "nvidia-h200"),
        ({"device": "AMD EPYC 9654 96-Core"}, "my-host"),
        ({}, "my-host"),
    ],
)
def test_a_machine_is_called_by_its_gpu_or_else_by_its_host(monkeypatch, facts, name):
    monkeypatch.delenv(identity.MACHINE, raising=False)
    monkeypatch.setattr(identity.platform, "node", lambda: "my host")
    assert name == identity.machine(facts)["id"]


def test_a_machine_can_be_given_a_name(monkeypatch):
    monkeypatch.setenv(identity.MACHINE, "Rack 7 / GPU 3")
    assert "rack-7-gpu-3" == identity.machine({"device": "NVIDIA H200", "uuid": "ab"})["id"]


@pytest.mark.parametrize(
    ("name", "slug"), [("NVIDIA H200 (SXM)", "nvidia-h200-sxm"), ("...", "unknown"), ("../../etc", "etc")]
)
def test_a_slug_is_safe_as_a_folders_name(name, slug):
    assert slug == identity.slug(name)


def test_software_names_what_can_change_a_number():
    found = identity.software({"driver": "580"})
    assert {"python", "numpy", "scipy", "driver"} <= set(found)
