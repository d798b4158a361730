"""`prism-bench history`: what one run keeps, the next one fetches, wherever it is kept; no source is touched."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from prism_bench.studies.keeping import Checkout, keep, opened

WHO = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")
PLACES = ("runs/box/new.json.gz", "nights/box.jsonl", "asv-nights/box/a.json", "alerts/box.json")


def git(folder, *words):
    done = subprocess.run(["git", *WHO, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Clone:
    """A clone of a project with a remote, where nightly runs are made."""

    def __init__(self, folder, shell, monkeypatch, to):
        self.folder, self._shell, self._monkeypatch, self.to = folder, shell, monkeypatch, to

    def history(self, action, *words, to=None):
        self._monkeypatch.chdir(self.folder)
        return self._shell("history", action, "--to", to or self.to, *words)

    def write(self, name, text):
        path = self.folder / "reports" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def kept(self):
        found = (path for path in self.folder.glob("reports/*/**/*") if path.is_file())
        return {path.relative_to(self.folder / "reports").as_posix(): path.read_text() for path in found}


@pytest.fixture(params=["branch:history", "folder", "memory"])
def address(request, tmp_path):
    """Every kind of place."""
    if request.param == "memory":
        fsspec = pytest.importorskip("fsspec", reason="fsspec is an extra: pip install 'prism-bench[history]'")
        fsspec.filesystem("memory").store.clear()
        return "memory://bucket/prefix"
    return str(tmp_path / "kept") if request.param == "folder" else request.param


@pytest.fixture
def remote(tmp_path):
    """A project with one commit, as a bare repository."""
    first = tmp_path / "first"
    (first / "reports/runs/box").mkdir(parents=True)
    (first / "reports/runs/box/old.json.gz").write_text("kept with the sources")
    git(first, "init", "--quiet", "--initial-branch", "main")
    git(first, "add", "--all")
    git(first, "commit", "--quiet", "--message", "Begin")
    git(tmp_path, "clone", "--quiet", "--bare", str(first), "remote.git")
    return tmp_path / "remote.git"


@pytest.fixture
def clone(remote, address, shell, monkeypatch, tmp_path):
    """A function that clones the project anew."""

    def make(name):
        git(tmp_path, "clone", "--quiet", str(remote), name)
        return Clone(tmp_path / name, shell, monkeypatch, address)

    return make


def test_the_first_run_finds_none(clone, address):
    one = clone("one")
    for action in ("fetch", "list"):
        done = one.history(action)
        assert (0, f"history: none yet at {address}\n") == (done.code, done.out)


def test_what_one_run_keeps_the_next_one_fetches(clone):
    one, two = clone("one"), clone("two")
    for name in (*PLACES, "site/a.html"):
        one.write(name, name)
    kept = one.history("keep", "--json").json
    assert sorted([*PLACES, "runs/box/old.json.gz"]) == kept["written"]
    fetched = two.history("fetch", "--json").json
    assert (5, sorted(PLACES)) == (fetched["files"], sorted(fetched["written"]))
    assert {"runs/box/old.json.gz": "kept with the sources", **{name: name for name in PLACES}} == two.kept()


def test_keeps_follow_each_other_and_the_checkout_stays(clone):
    one, two = clone("one"), clone("two")
    one.write("nights/box.jsonl", "1\n")
    before = git(one.folder, "rev-parse", "HEAD")
    one.history("keep")
    one.write("nights/box.jsonl", "1\n2\n")
    one.history("keep")
    assert (before, "?? reports/nights/") == (
        git(one.folder, "rev-parse", "HEAD"), git(one.folder, "status", "--short"),
    )  # fmt: skip
    keeps = two.history("list", "--json").json["keeps"]
    assert [1, 2] == [keep["files"] for keep in keeps]
    assert keeps[0]["when"] >= keeps[1]["when"]
    two.history("fetch")
    assert "1\n2\n" == two.kept()["nights/box.jsonl"]


def test_twice_is_once(clone):
    one = clone("one")
    one.write("nights/box.jsonl", "1\n")
    assert one.history("keep", "--json").json["id"]
    again = one.history("keep", "--json").json
    assert (None, []) == (again["id"], again["written"])
    assert [] == one.history("fetch", "--json").json["written"]
    assert 1 == len(one.history("list", "--json").json["keeps"])


def test_two_machines_in_turn_lose_nothing(clone):
    one, two, three = clone("one"), clone("two"), clone("three")
    for checkout in (one, two):
        checkout.history("fetch")
        checkout.write(f"nights/{checkout.folder.name}.jsonl", "1\n")
        assert 0 == checkout.history("keep").code
    one.write("nights/one.jsonl", "1\n2\n")  # still without the other's first run
    assert 0 == one.history("keep").code
    three.history("fetch")
    assert {"nights/one.jsonl": "1\n2\n", "nights/two.jsonl": "1\n"}.items() <= three.kept().items()


def test_a_keep_without_a_fetch_loses_nothing(clone):
    one, two, three = clone("one"), clone("two"), clone("three")
    one.write("nights/box.jsonl", "1\n")
    one.history("keep")
    assert "nothing new" in two.history("keep").out
    three.history("fetch")
    assert "1\n" == three.kept()["nights/box.jsonl"]


def test_what_was_removed_here_stays_there(clone):
    one, two = clone("one"), clone("two")
    one.write("runs/box/a.json.gz", "a")
    one.history("keep")
    (one.folder / "reports/runs/box/a.json.gz").unlink()
    assert "nothing new" in one.history("keep").out
    two.history("fetch")
    assert "a" == two.kept()["runs/box/a.json.gz"]


def test_records_of_one_name_are_both_kept(clone):
    """Two machines of one name that began in the same second."""
    one, two, three = clone("one"), clone("two"), clone("three")
    one.write("runs/box/20261120T221405Z-aaaaaaaa.json.gz", "first")
    two.write("runs/box/20261120T221405Z-aaaaaaaa.json.gz", "second")
    assert [0, 0] == [checkout.history("keep").code for checkout in (one, two)]
    assert "nothing new" in two.history("keep").out
    three.history("fetch")
    both = {f"runs/box/20261120T221405Z-aaaaaaaa{n}.json.gz": text for n, text in (("", "first"), ("-2", "second"))}
    assert both.items() <= three.kept().items()
    two.history("fetch")
    assert both.items() <= two.kept().items()
    assert "nothing new" in two.history("keep").out


def test_a_record_that_is_not_kept_yet_survives_a_fetch(clone):
    one, two, three = clone("one"), clone("two"), clone("three")
    one.write("runs/box/20261120T221405Z-aaaaaaaa.json.gz", "first")
    two.write("runs/box/20261120T221405Z-aaaaaaaa.json.gz", "second")
    one.history("keep")
    two.history("fetch")
    contents = {"kept with the sources", "first", "second"}
    assert contents == set(two.kept().values())
    assert 1 == len(two.history("keep", "--json").json["written"])
    three.history("fetch")
    assert contents == set(three.kept().values())
    assert 3 == len(three.kept()), "each content once"


def test_a_record_that_grew_replaces_its_earlier_version(clone):
    one, two = clone("one"), clone("two")
    one.write("runs/box/a.json.gz", "cut short")
    one.history("keep")
    two.history("fetch")
    one.write("runs/box/a.json.gz", "complete")
    assert ["runs/box/a.json.gz"] == one.history("keep", "--json").json["written"]
    assert ["runs/box/a.json.gz"] == two.history("fetch", "--json").json["written"]
    assert "complete" == two.kept()["runs/box/a.json.gz"]


def test_ledgers_of_one_machine_in_two_checkouts_are_joined(clone):
    one, two, three = clone("one"), clone("two"), clone("three")
    one.write("nights/box.jsonl", "1\n")
    one.history("keep")
    two.history("fetch")
    one.write("nights/box.jsonl", "1\n2\n")
    two.write("nights/box.jsonl", "1\n3\n")
    for checkout in (one, two):
        assert 0 == checkout.history("keep").code
    three.history("fetch")
    assert "1\n2\n3\n" == three.kept()["nights/box.jsonl"]
    one.history("fetch")
    assert "1\n2\n3\n" == one.kept()["nights/box.jsonl"]


def alerts(*names):
    sent = {"slack": {"when": "2026-11-20", "state": "s", "severity": 1.0}}
    entry = {"source": "gate", "kind": "slower", "subject": "x", "message": "m", "told": sent}
    return json.dumps({"version": 1, "entries": dict.fromkeys(names, entry)})


def test_the_state_of_alerts_is_merged_and_what_was_settled_stays_settled(clone):
    one, two, three = clone("one"), clone("two"), clone("three")
    one.write("alerts/failures.json", alerts("a", "b"))
    one.history("keep")
    two.history("fetch")
    one.write("alerts/failures.json", alerts("b"))  # `a` is settled
    two.write("alerts/failures.json", alerts("a", "b", "c"))
    assert [0, 0] == [checkout.history("keep").code for checkout in (one, two)]
    three.history("fetch")
    assert {"b", "c"} == set(json.loads(three.kept()["alerts/failures.json"])["entries"])


def test_results_of_asv_are_the_last_writers(clone):
    one, two, three = clone("one"), clone("two"), clone("three")
    for checkout, text in ((one, "1"), (two, "2")):
        checkout.write("asv-nights/benchmarks.json", text)
        assert 0 == checkout.history("keep").code
    three.history("fetch")
    assert "2" == three.kept()["asv-nights/benchmarks.json"]


def test_many_keepers_at_once_lose_nothing(clone, address):
    clones = [clone(f"clone{i}") for i in range(4)]
    for i, one in enumerate(clones):
        one.write(f"runs/box{i}/a.json.gz", str(i))
        one.write("nights/box.jsonl", f"{i}\n")

    def kept(one):
        target = opened(address, one.folder)
        return keep(target, Checkout.at(one.folder, one.folder / "reports", target)).id

    with ThreadPoolExecutor(4) as pool:
        assert 4 == len(set(pool.map(kept, clones)) - {None})
    last = clone("last")
    last.history("fetch")
    found = last.kept()
    assert {f"runs/box{i}/a.json.gz": str(i) for i in range(4)}.items() <= found.items()
    assert {"0", "1", "2", "3"} == set(found["nights/box.jsonl"].split())


def test_verify_finds_what_cannot_be_read(clone):
    one = clone("one")
    (one.folder / "reports/runs/box/old.json.gz").unlink()
    one.write("alerts/box.json", alerts("a"))
    one.history("keep")
    assert (0, 1) == (one.history("verify").code, one.history("verify", "--json").json["files"])
    one.write("runs/box/a.json.gz", "no record")
    one.history("keep")
    done = one.history("verify", "--json")
    assert 1 == done.code
    (problem,) = done.json["problems"]
    assert problem.startswith("runs/box/a.json.gz: not a readable run record")


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
    done = shell("history", "fetch", "--to", "branch:odd")
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
        done = shell("history", "drop")
        assert 2 == done.code and "'drop'" in done.err

    def test_no_repository(self, shell):
        self.refused(shell("history", "keep"), "is in no git repository", "--to FOLDER")

    def test_no_remote(self, shell, tmp_path):
        git(tmp_path, "init", "--quiet")
        self.refused(shell("history", "keep"), "has no remote origin", "git remote add origin URL")

    def test_no_git(self, shell, monkeypatch):
        monkeypatch.setenv("PATH", "/nowhere")
        self.refused(shell("history", "keep"), "git does not answer here", "install git")

    def test_a_remote_that_is_gone(self, shell, tmp_path):
        git(tmp_path, "init", "--quiet")
        git(tmp_path, "remote", "add", "origin", str(tmp_path / "gone.git"))
        self.refused(shell("history", "fetch"), "origin does not answer", "check the address")

    def test_a_branch_of_sources(self, shell, remote, tmp_path, monkeypatch):
        (tmp_path / "first/code.py").write_text("x")
        git(tmp_path / "first", "add", "code.py")
        git(tmp_path / "first", "commit", "--quiet", "--message", "Add code")
        git(tmp_path / "first", "push", "--quiet", str(remote), "main")
        git(tmp_path, "clone", "--quiet", str(remote), "one")
        monkeypatch.chdir(tmp_path / "one")
        before = git(remote, "rev-parse", "main")
        for action in ("fetch", "keep"):
            done = shell("history", action, "--to", "branch:main")
            self.refused(done, "the branch main is no history, it has 'code.py'", "name another one")
        assert before == git(remote, "rev-parse", "main")

    def test_no_name_of_a_branch(self, shell, tmp_path):
        git(tmp_path, "init", "--quiet")
        self.refused(shell("history", "keep", "--to", "branch:a..b"), "is no name of a branch")

    def test_a_remote_that_refuses(self, shell, remote, tmp_path, monkeypatch):
        hook = remote / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\necho 'no token' >&2\nexit 1\n")
        hook.chmod(0o755)
        git(tmp_path, "clone", "--quiet", str(remote), "one")
        monkeypatch.chdir(tmp_path / "one")
        self.refused(shell("history", "keep"), "origin refused the branch", "no token", "contents: write")

    def test_a_folder_of_other_files(self, shell, tmp_path):
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept/notes.txt").write_text("mine")
        for action in ("fetch", "keep", "list", "verify"):
            self.refused(shell("history", action, "--to", "kept"), "kept is no history, it has 'notes.txt'")
        assert ["notes.txt"] == [path.name for path in (tmp_path / "kept").rglob("*")]

    def test_a_file_for_a_folder(self, shell, tmp_path):
        (tmp_path / "kept").write_text("mine")
        self.refused(shell("history", "keep", "--to", "kept"), "it is a file; name a folder")

    def test_a_format_of_later(self, shell, tmp_path):
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept/prism-bench-history.json").write_text('{"schema": 2}')
        self.refused(shell("history", "keep", "--to", "kept"), "of another format", "upgrade prism-bench")

    def test_an_address_that_is_none(self, shell):
        self.refused(shell("history", "keep", "--to", "brunch:x"), "write branch:NAME, a folder, or a URL")

    def test_a_bucket_without_its_package(self, shell, monkeypatch):
        monkeypatch.setitem(sys.modules, "fsspec", None)
        self.refused(shell("history", "keep", "--to", "s3://bucket/x"), "pip install 'prism-bench[history]'")

    def test_a_bucket_that_does_not_answer(self, shell, monkeypatch, tmp_path):
        fsspec = pytest.importorskip("fsspec")
        monkeypatch.setattr(
            fsspec.implementations.memory.MemoryFileSystem,
            "find",
            lambda *_, **__: (_ for _ in ()).throw(OSError("no route")),
        )
        self.refused(shell("history", "keep", "--to", "memory://x"), "no route", "check the address, the network")

    def test_a_state_of_alerts_that_cannot_be_merged(self, shell, tmp_path):
        path = tmp_path / "reports/alerts/box.json"
        path.parent.mkdir(parents=True)
        path.write_text(alerts("a"))
        shell("history", "keep", "--to", "kept")
        path.write_text("{")
        (tmp_path / ".prism-bench").rename(tmp_path / "another-clone")
        self.refused(shell("history", "keep", "--to", "kept"), "alerts/box.json: ", "correct or remove the file")


def test_a_shallow_clone_keeps_and_fetches(remote, shell, monkeypatch, tmp_path):
    """As actions/checkout makes one."""
    for name in ("one", "two"):
        git(tmp_path, "clone", "--quiet", "--depth", "1", remote.as_uri(), name)
    monkeypatch.chdir(tmp_path / "one")
    for number in (1, 2):
        Path(f"reports/runs/box/{number}.json.gz").write_text("x")
        assert 0 == shell("history", "keep").code
    monkeypatch.chdir(tmp_path / "two")
    assert 0 == shell("history", "fetch").code
    assert Path("reports/runs/box/2.json.gz").is_file()
    assert 2 == len(shell("history", "list", "--json").json["keeps"])


class TestInterruptedKeep:
    """A keep that ended before its manifest is not seen; the next one completes it."""

    @pytest.fixture
    def kept(self, shell, tmp_path):
        path = tmp_path / "reports/runs/box/a.json.gz"
        path.parent.mkdir(parents=True)
        path.write_text("a")
        shell("history", "keep", "--to", "kept")
        return tmp_path / "kept"

    def test_contents_without_a_manifest(self, shell, kept):
        (manifest,) = (kept / "keeps").iterdir()
        manifest.unlink()
        assert 0 == shell("history", "fetch", "--to", "kept", "--json").json["files"]
        assert 1 == len(shell("history", "keep", "--to", "kept", "--json").json["written"])

    def test_a_manifest_that_is_half_written(self, shell, kept):
        (manifest,) = (kept / "keeps").iterdir()
        manifest.write_bytes(manifest.read_bytes()[:-20])
        assert 0 == shell("history", "fetch", "--to", "kept", "--json").json["files"]
        done = shell("history", "verify", "--to", "kept")
        assert 1 == done.code and "no complete manifest" in done.out
        assert 1 == len(shell("history", "keep", "--to", "kept", "--json").json["written"])

    def test_a_content_that_is_damaged_or_missing(self, shell, kept):
        (content,) = kept.glob("files/runs/box/*/a.json.gz")
        content.write_text("b")
        done = shell("history", "verify", "--to", "kept")
        assert 1 == done.code and "runs/box/a.json.gz: its content is not what was kept" in done.out
        content.unlink()
        done = shell("history", "verify", "--to", "kept")
        assert 2 == done.code and "a.json.gz" in done.err

    def test_temporary_files_are_no_history(self, shell, kept):
        (kept / "files/runs/box/.a.json.gz.x.prism-tmp").write_text("half")
        done = shell("history", "fetch", "--to", "kept", "--json")
        assert (0, 1) == (done.code, done.json["files"])


def test_what_is_common_stays_out_of_git(shell, remote, tmp_path, monkeypatch):
    git(tmp_path, "clone", "--quiet", str(remote), "one")
    monkeypatch.chdir(tmp_path / "one")
    shell("history", "keep")
    assert (tmp_path / "one/.prism-bench/history").is_dir()
    assert "" == git(tmp_path / "one", "status", "--short")
    assert os.listdir(tmp_path / "one/.prism-bench/history")
