"""`scripts/history`: what one night keeps, the next one fetches, and no source is touched."""

import shutil
import subprocess
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parents[2]
WHO = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")


class Checkout:
    """A clone of a project with a remote, where nights are spent."""

    def __init__(self, folder):
        self.folder = folder

    def git(self, *words):
        done = subprocess.run(["git", *WHO, *words], cwd=self.folder, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def history(self, *words):
        script = self.folder / "scripts" / "history"
        return subprocess.run([script, *words], cwd="/", capture_output=True, text=True)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def clone(tmp_path):
    """A function that clones the project anew."""
    first = Checkout(tmp_path / "first")
    (first.folder / "scripts").mkdir(parents=True)
    shutil.copy(HOUSE / "scripts" / "history", first.folder / "scripts")
    first.write("reports/runs/box/old.json.gz", "kept with the sources")
    first.git("init", "--quiet", "--initial-branch", "main")
    first.git("add", "--all")
    first.git("commit", "--quiet", "--message", "Begin")
    subprocess.run(["git", "clone", "--quiet", "--bare", first.folder, tmp_path / "remote.git"], check=True)

    def make(name):
        subprocess.run(["git", "clone", "--quiet", tmp_path / "remote.git", tmp_path / name], check=True)
        return Checkout(tmp_path / name)

    return make


def test_the_first_night_finds_none(clone):
    done = clone("one").history("fetch")
    assert (0, "history: none yet\n") == (done.returncode, done.stdout)


def test_what_one_night_keeps_the_next_one_fetches(clone):
    one = clone("one")
    for name in ("runs/box/new.json.gz", "nights/box.jsonl", "asv-nights/box/a.json", "alerts/box.json", "site/a.html"):
        one.write(f"reports/{name}", name)
    assert 0 == one.history("keep").returncode
    two = clone("two")
    assert "history: 1 nights\n" == two.history("fetch").stdout
    found = sorted(path.relative_to(two.folder / "reports").as_posix() for path in two.folder.glob("reports/*/**/*.*"))
    assert ["alerts/box.json", "asv-nights/box/a.json", "nights/box.jsonl", "runs/box/new.json.gz",
            "runs/box/old.json.gz"] == found  # fmt: skip


def test_nights_follow_each_other_and_the_checkout_stays(clone):
    one = clone("one")
    one.write("reports/nights/box.jsonl", "1\n")
    before = one.git("rev-parse", "HEAD")
    one.history("keep")
    one.write("reports/nights/box.jsonl", "1\n2\n")
    one.history("keep")
    assert (before, "?? .asv/\n?? reports/nights/") == (one.git("rev-parse", "HEAD"), one.git("status", "--short"))
    two = clone("two")
    assert "history: 2 nights\n" == two.history("fetch").stdout
    assert "1\n2\n" == (two.folder / "reports/nights/box.jsonl").read_text()


def test_two_machines_at_once_lose_nothing(clone):
    one, two = clone("one"), clone("two")
    for checkout in (one, two):
        checkout.history("fetch")
        checkout.write(f"reports/nights/{checkout.folder.name}.jsonl", "1\n")
        assert 0 == checkout.history("keep").returncode
    one.write("reports/nights/one.jsonl", "1\n2\n")  # still without the other's first night
    assert 0 == one.history("keep").returncode
    three = clone("three")
    three.history("fetch")
    kept = {path.name: path.read_text() for path in (three.folder / "reports/nights").iterdir()}
    assert {"one.jsonl": "1\n2\n", "two.jsonl": "1\n"} == kept


def test_a_night_that_ended_early_loses_nothing(clone):
    one, two = clone("one"), clone("two")
    one.write("reports/nights/box.jsonl", "1\n")
    one.history("keep")
    two.history("keep")
    three = clone("three")
    three.history("fetch")
    assert (three.folder / "reports/nights/box.jsonl").is_file()


def test_anything_else_is_refused(clone):
    done = clone("one").history("drop")
    assert (2, "history: say 'fetch' or 'keep'\n") == (done.returncode, done.stderr)
