"""A site is never half new: it changes at once, touches only what changed, and leaves strangers alone."""

import json
import os
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest

from prism_bench.report.site.build import write_site

OLD = {"index.html": b"old", "data/a-1.js": b"a", "kernels/k.html": b"k"}
NEW = {"index.html": b"new", "data/a-2.js": b"b", "kernels/k.html": b"k"}


def contents(folder: Path):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def old(tmp_path):
    write_site(tmp_path, OLD.items())
    return tmp_path


def test_a_site_becomes_the_new_one_and_says_what_changed(old):
    written = write_site(old, NEW.items())
    assert NEW == {name: content for name, content in contents(old).items() if name != "site.json"}
    assert (("data/a-2.js", "index.html"), ("data/a-1.js",)) == (written.changed, written.removed)
    assert 3 == written.files


def test_what_is_the_same_is_not_touched(old):
    before = {path: path.stat().st_mtime_ns for path in old.rglob("*.*")}
    written = write_site(old, OLD.items())
    assert ((), ()) == (written.changed, written.removed)
    assert before == {path: path.stat().st_mtime_ns for path in old.rglob("*.*")}


def test_files_of_others_stay(old):
    (old / "nights").mkdir()
    (old / "nights" / "index.html").write_bytes(b"somebody else's")
    write_site(old, {"index.html": b"new"}.items())
    assert {"index.html", "nights/index.html", "site.json"} == set(contents(old))


def test_what_a_killed_report_laid_down_is_taken_away_but_not_what_another_one_just_does(old):
    for name in (".new-killed", ".new-running"):
        (old / name).mkdir()
    os.utime(old / ".new-killed", (0, 0))
    write_site(old, NEW.items())
    assert [".new-running"] == [path.name for path in old.glob(".new-*")]


def test_folders_that_become_empty_go(old):
    write_site(old, {"index.html": b"new"}.items())
    assert not (old / "kernels").exists() and not (old / "data").exists()


@pytest.mark.parametrize("end", [KeyboardInterrupt, OSError(28, "No space left on device"), RuntimeError])
def test_an_interrupted_report_leaves_the_old_site_whole(old, end):
    def files():
        yield from list(NEW.items())[:2]
        raise end

    before = contents(old)
    with pytest.raises(BaseException) as raised:
        write_site(old, files())
    assert raised.type in (KeyboardInterrupt, OSError, RuntimeError)
    assert before == contents(old)


@contextmanager
def listening():
    """With Ctrl-C's usual effect, which a shell takes from what it starts in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_nothing_interrupts_the_short_go_in_which_files_move(old, monkeypatch):
    move = os.replace

    def interrupted(*names):
        os.kill(os.getpid(), signal.SIGINT)
        move(*names)

    monkeypatch.setattr("os.replace", interrupted)
    with listening(), pytest.raises(KeyboardInterrupt):
        write_site(old, NEW.items())
    assert NEW == {name: content for name, content in contents(old).items() if name != "site.json"}


def test_what_pages_load_is_there_before_them_and_the_first_page_comes_last(tmp_path, monkeypatch):
    moved, move = [], os.replace
    monkeypatch.setattr("os.replace", lambda a, b: (moved.append(Path(b).name), move(a, b)))
    write_site(tmp_path, NEW.items())
    assert ["a-2.js", "k.html", "index.html", "site.json"] == moved


@pytest.mark.parametrize("listed", ["not json", '{"a": 1}', '["../precious", 7]', "[[]]"])
def test_a_damaged_list_removes_nothing(tmp_path, listed):
    (tmp_path / "precious").write_bytes(b"kept")
    site = tmp_path / "site"
    write_site(site, OLD.items())
    (site / "site.json").write_text(listed)
    write_site(site, NEW.items())
    assert b"kept" == (tmp_path / "precious").read_bytes()
    assert sorted(NEW) == json.loads((site / "site.json").read_text())
