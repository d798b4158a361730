"""`prism-bench store fetch` and `keep` with bad input, and after a keep that was interrupted."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism_bench.extensions.ci.keeping.storage import UrlStorage
from prism_bench.io.installation import pip_install
from tests.cli.clones import alerts, git, remote_project  # noqa: F401


@pytest.mark.parametrize("name", ["../evil", "runs/../../evil", "site/index.html", "runs"])
def test_a_name_that_leads_elsewhere_is_refused(remote, shell, monkeypatch, tmp_path, name):
    """Whoever may write to the branch writes nothing outside the folders that are kept."""
    git(tmp_path, "clone", "--quiet", str(remote), "one")
    one = tmp_path / "one"
    blob = subprocess.run(["git", "hash-object", "-w", "--stdin"], cwd=one, input="x", text=True, capture_output=True)
    mode = "100644 blob"
    if ".." in name:  # git itself refuses such a path in an index, and not in a tree
        tree = f"{mode} {blob.stdout.strip()}\t{name.replace('/', chr(92))}\n"
    else:
        tree = f"{mode} {blob.stdout.strip()}\t{name.replace('/', '-')}\n"
    made = subprocess.run(["git", "mktree"], cwd=one, input=tree, text=True, capture_output=True, check=True)
    commit = git(one, "commit-tree", made.stdout.strip(), "-m", "x")
    git(one, "push", "--quiet", "origin", f"{commit}:refs/heads/odd")
    monkeypatch.chdir(one)
    done = shell("store", "fetch", "--to", "branch:odd")
    assert 2 == done.code
    assert "prism-bench: the branch odd is no history, it has " in done.err


class TestBadInput:
    """One sentence with the cure, exit code 2, and nothing written."""

    def refused(self, done, *words):
        assert 2 == done.code
        assert 1 == done.err.count("\n"), done.err
        for word in words:
            assert word in done.err

    def test_an_unknown_action(self, shell):
        done = shell("store", "drop")
        assert 2 == done.code and "'drop'" in done.err

    def test_no_repository(self, shell):
        self.refused(shell("store", "keep"), "is in no git repository", "--to FOLDER")

    def test_no_remote(self, shell, tmp_path):
        git(tmp_path, "init", "--quiet")
        self.refused(shell("store", "keep"), "has no remote origin", "git remote add origin URL")

    def test_no_git(self, shell, monkeypatch):
        monkeypatch.setenv("PATH", "/nowhere")
        self.refused(shell("store", "keep"), "git does not answer here", "install git")

    def test_a_remote_that_is_gone(self, shell, tmp_path):
        git(tmp_path, "init", "--quiet")
        git(tmp_path, "remote", "add", "origin", str(tmp_path / "gone.git"))
        self.refused(shell("store", "fetch"), "origin does not answer", "check the address")

    def test_a_branch_of_sources(self, shell, remote, tmp_path, monkeypatch):
        (tmp_path / "first/code.py").write_text("x")
        git(tmp_path / "first", "add", "code.py")
        git(tmp_path / "first", "commit", "--quiet", "--message", "Add code")
        git(tmp_path / "first", "push", "--quiet", str(remote), "main")
        git(tmp_path, "clone", "--quiet", str(remote), "one")
        monkeypatch.chdir(tmp_path / "one")
        before = git(remote, "rev-parse", "main")
        for action in ("fetch", "keep"):
            done = shell("store", action, "--to", "branch:main")
            self.refused(done, "the branch main is no history, it has 'code.py'", "name another one")
        assert before == git(remote, "rev-parse", "main")

    def test_no_name_of_a_branch(self, shell, tmp_path):
        git(tmp_path, "init", "--quiet")
        self.refused(shell("store", "keep", "--to", "branch:a..b"), "is no name of a branch")

    def test_a_remote_that_refuses(self, shell, remote, tmp_path, monkeypatch):
        hook = remote / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\necho 'no token' >&2\nexit 1\n")
        hook.chmod(0o755)
        git(tmp_path, "clone", "--quiet", str(remote), "one")
        monkeypatch.chdir(tmp_path / "one")
        self.refused(shell("store", "keep"), "origin refused the branch", "no token", "contents: write")

    def test_a_folder_of_other_files(self, shell, tmp_path):
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept/notes.txt").write_text("mine")
        for action in ("fetch", "keep", "list", "verify"):
            self.refused(shell("store", action, "--to", "kept"), "kept is no history, it has 'notes.txt'")
        assert ["notes.txt"] == [path.name for path in (tmp_path / "kept").rglob("*")]

    def test_a_file_for_a_folder(self, shell, tmp_path):
        (tmp_path / "kept").write_text("mine")
        self.refused(shell("store", "keep", "--to", "kept"), "it is a file; name a folder")

    def test_a_format_of_later(self, shell, tmp_path):
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept/prism-bench-history.json").write_text('{"schema": 2}')
        self.refused(shell("store", "keep", "--to", "kept"), "of another format", "upgrade prism-bench")

    def test_an_address_that_is_none(self, shell):
        self.refused(shell("store", "keep", "--to", "brunch:x"), "write branch:NAME, a folder, or a URL")

    def test_a_bucket_without_its_package(self, shell, monkeypatch):
        monkeypatch.setitem(sys.modules, "fsspec", None)
        self.refused(shell("store", "keep", "--to", "s3://bucket/x"), pip_install("history"))

    def test_a_bucket_that_does_not_answer(self, shell, monkeypatch, tmp_path):
        memory = pytest.importorskip("fsspec.implementations.memory")
        monkeypatch.setattr(
            memory.MemoryFileSystem, "find", lambda *_, **__: (_ for _ in ()).throw(OSError("no route"))
        )
        self.refused(shell("store", "keep", "--to", "memory://x"), "no route", "check the address, the network")

    @pytest.mark.parametrize(("protocol", "folders"), [(("s3", "s3a"), 0), ("gcs", 0), ("sftp", 1)])
    def test_a_bucket_is_never_created(self, protocol, folders):
        """Its name may be mistyped."""
        files = SimpleNamespace(protocol=protocol, made=[], kept=[])
        files.makedirs = lambda folder, exist_ok: files.made.append(folder)
        files.pipe_file = lambda path, data: files.kept.append(path)
        UrlStorage("x://bucket/p", files, "bucket/p").create("files/a", b"a")
        assert (folders, ["bucket/p/files/a"]) == (len(files.made), files.kept)

    def test_a_state_of_alerts_that_cannot_be_merged(self, shell, tmp_path):
        path = tmp_path / "reports/alerts/box.json"
        for folder in (path.parent, tmp_path / "reports/runs"):
            folder.mkdir(parents=True)
        path.write_text(alerts("a"))
        shell("store", "keep", "--to", "kept")
        path.write_text("{")
        (tmp_path / ".prism-bench").rename(tmp_path / "another-clone")
        self.refused(shell("store", "keep", "--to", "kept"), "alerts/box.json: ", "correct or remove the file")


def test_a_shallow_clone_keeps_and_fetches(remote, shell, monkeypatch, tmp_path):
    """As actions/checkout makes one."""
    for name in ("one", "two"):
        git(tmp_path, "clone", "--quiet", "--depth", "1", remote.as_uri(), name)
    monkeypatch.chdir(tmp_path / "one")
    for number in (1, 2):
        Path(f"reports/runs/box/{number}.json.gz").write_text("x")
        assert 0 == shell("store", "keep").code
    monkeypatch.chdir(tmp_path / "two")
    assert 0 == shell("store", "fetch").code
    assert Path("reports/runs/box/2.json.gz").is_file()
    assert 2 == len(shell("store", "list", "--json").json["keeps"])


class TestFolderOfRecords:
    """The records of the folder that is named are kept and fetched, whatever its name, or the command refuses."""

    @pytest.fixture
    def measured(self, tmp_path):
        for folder in ("runs", "measured"):  # a sibling has the usual name
            path = tmp_path / "results" / folder / "box" / f"{folder}.json.gz"
            path.parent.mkdir(parents=True)
            path.write_text(folder)
        return tmp_path / "results"

    @pytest.mark.parametrize("folder", ["results/measured", "results/measured/", "."])
    def test_its_records_are_kept(self, shell, measured, tmp_path, monkeypatch, folder):
        if folder == ".":
            monkeypatch.chdir(measured / "measured")
        done = shell("store", "keep", "--runs", folder, "--to", tmp_path / "kept", "--json").json
        assert ["runs/box/measured.json.gz"] == done["written"]
        fetched = tmp_path / "elsewhere" / "some name"
        assert 0 == shell("store", "fetch", "--runs", fetched, "--to", tmp_path / "kept").code
        assert "measured" == (fetched / "box" / "measured.json.gz").read_text()
        assert ["some name"] == [path.name for path in fetched.parent.iterdir()]

    @pytest.mark.parametrize(("folder", "problem"), [
        ("results", "no run record is in a folder of it"), ("results/measurd", "no such folder"),
        ("results/measured/box", "no run record is in a folder of it"),
    ])  # fmt: skip
    def test_a_folder_of_something_else_is_refused(self, shell, measured, tmp_path, folder, problem):
        done = shell("store", "keep", "--runs", folder, "--to", "kept")
        assert (2, True) == (done.code, f"{folder}: {problem}" in done.err)
        assert not (tmp_path / "kept").exists()


class TestInterruptedKeep:
    """A keep that ended before its manifest is not seen; the next one completes it."""

    @pytest.fixture
    def kept(self, shell, tmp_path):
        path = tmp_path / "reports/runs/box/a.json.gz"
        path.parent.mkdir(parents=True)
        path.write_text("a")
        shell("store", "keep", "--to", "kept")
        return tmp_path / "kept"

    def test_contents_without_a_manifest(self, shell, kept):
        (manifest,) = (kept / "keeps").iterdir()
        manifest.unlink()
        assert 0 == shell("store", "fetch", "--to", "kept", "--json").json["files"]
        assert 1 == len(shell("store", "keep", "--to", "kept", "--json").json["written"])

    def test_a_manifest_that_is_half_written(self, shell, kept):
        (manifest,) = (kept / "keeps").iterdir()
        manifest.write_bytes(manifest.read_bytes()[:-20])
        assert 0 == shell("store", "fetch", "--to", "kept", "--json").json["files"]
        done = shell("store", "verify", "--to", "kept")
        assert 1 == done.code and "no complete manifest" in done.out
        assert 1 == len(shell("store", "keep", "--to", "kept", "--json").json["written"])

    def test_a_content_that_is_damaged_or_missing(self, shell, kept):
        (content,) = kept.glob("files/runs/box/*/a.json.gz")
        content.write_text("b")
        done = shell("store", "verify", "--to", "kept")
        assert 1 == done.code and "runs/box/a.json.gz: its content is not what was kept" in done.out
        content.unlink()
        done = shell("store", "verify", "--to", "kept")
        assert 1 == done.code and "1 file at" in done.out and "1 damaged or missing" in done.out
        assert 2 == len(done.out.splitlines())

    def test_fetch_and_verify_go_on_after_damage_and_count_it(self, shell, kept, tmp_path):
        here = tmp_path / "reports"
        for name in ("runs/box/b.json.gz", "runs/box/c.json.gz", "nights/box.jsonl", "nights/other.jsonl"):
            (here / name).parent.mkdir(exist_ok=True)
            (here / name).write_text(name)
        assert 0 == shell("store", "keep", "--to", "kept").code
        for name, damage in (("a.json.gz", None), ("b.json.gz", bytes(9)), ("box.jsonl", bytes(9))):
            (content,) = kept.glob(f"files/*/**/{name}")
            content.write_bytes(damage) if damage else content.unlink()
        verified = shell("store", "verify", "--to", "kept", "--json").json
        lost = [one for one in verified["problems"] if "not what was kept" in one or "a.json.gz: No such file" in one]
        assert (5, 3) == (verified["files"], len(lost))
        shutil.rmtree(here)
        done = shell("store", "fetch", "--to", "kept")
        assert (1, True) == (done.code, f"3 of 5 files damaged or missing at {kept}" in done.out)
        files = {path.relative_to(here).as_posix() for path in here.rglob("*") if path.is_file()}
        assert {"runs/box/c.json.gz", "nights/other.jsonl"} == files
        (here / "nights/box.jsonl").write_text("new")
        assert 2 == shell("store", "keep", "--to", "kept").code  # a ledger is merged with its copy, never with zeros

    def test_temporary_files_are_no_history(self, shell, kept):
        (kept / "files/runs/box/.a.json.gz.x.prism-tmp").write_text("half")
        done = shell("store", "fetch", "--to", "kept", "--json")
        assert (0, 1) == (done.code, done.json["files"])


def test_what_is_common_stays_out_of_git(shell, remote, tmp_path, monkeypatch):
    git(tmp_path, "clone", "--quiet", str(remote), "one")
    monkeypatch.chdir(tmp_path / "one")
    shell("store", "keep")
    assert (tmp_path / "one/.prism-bench/history").is_dir()
    assert "" == git(tmp_path / "one", "status", "--short")
    assert os.listdir(tmp_path / "one/.prism-bench/history")
