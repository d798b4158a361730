"""Files are created and never replaced; a writer's own file is replaced by its next version only; names stay inside."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from prism_bench.errors import ResultsError
from prism_bench.io.files import OwnFile, confined, create_file, create_first, path_part

WRITERS, FILES_EACH = 4, 10


def offered(folder: Path, count: int = 1000) -> list[Path]:
    return [folder / f"{number}.txt" for number in range(count)]


@pytest.fixture(params=["hard links", "no hard links"])
def linking(request, monkeypatch):
    def refused(*_):
        raise OSError(95, "Operation not supported")

    if request.param == "no hard links":
        monkeypatch.setattr(os, "link", refused)


def test_a_file_is_created_with_its_folder(tmp_path, linking):
    create_file(tmp_path / "a" / "new", b"data")
    assert b"data" == (tmp_path / "a" / "new").read_bytes()
    assert 0o644 == (tmp_path / "a" / "new").stat().st_mode & 0o777
    assert ["new"] == os.listdir(tmp_path / "a")


def test_a_file_is_never_replaced(tmp_path, linking):
    (tmp_path / "old").write_bytes(b"theirs")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "old", b"ours")
    assert (b"theirs", ["old"]) == ((tmp_path / "old").read_bytes(), os.listdir(tmp_path))


def test_a_dangling_link_is_a_file_of_somebody_too(tmp_path, linking):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "link", b"ours")
    assert not (tmp_path / "elsewhere").exists()


def test_the_first_free_name_is_taken(tmp_path, linking):
    (tmp_path / "0.txt").write_bytes(b"theirs")
    assert [tmp_path / "1.txt", tmp_path / "2.txt"] == [create_first(offered(tmp_path), b"ours") for _ in range(2)]
    with pytest.raises(FileExistsError):
        create_first(offered(tmp_path, 3), b"ours")
    assert b"theirs" == (tmp_path / "0.txt").read_bytes()


def test_a_file_in_the_folders_place_is_no_free_name(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError):
        create_first(offered(tmp_path / "file"), b"ours")


_WRITER = """
import os, sys
from pathlib import Path
if sys.argv[2] == "no links":
    def refused(*_):
        raise OSError(95, "Operation not supported")
    os.link = refused
from prism_bench.io.files import create_first
for number in range(int(sys.argv[3])):
    create_first((Path(sys.argv[1]) / f"{name}.txt" for name in range(1000)), f"{os.getpid()} {number}".encode())
"""


@pytest.mark.parametrize("links", ["links", "no links"])
def test_simultaneous_writers_lose_nothing(tmp_path, links):
    words = [sys.executable, "-c", _WRITER, str(tmp_path / "shared"), links, str(FILES_EACH)]
    writers = [subprocess.Popen(words) for _ in range(WRITERS)]
    assert [0] * WRITERS == [writer.wait() for writer in writers]
    contents = {path.read_text() for path in (tmp_path / "shared").iterdir()}
    assert {f"{writer.pid} {number}" for writer in writers for number in range(FILES_EACH)} == contents


def test_the_next_version_replaces_the_one_before(tmp_path, linking):
    own = OwnFile(lambda: offered(tmp_path))
    assert tmp_path / "0.txt" == own.write(b"first") == own.write(b"second")
    assert (b"second", ["0.txt"]) == ((tmp_path / "0.txt").read_bytes(), os.listdir(tmp_path))


def test_what_another_program_put_there_stays(tmp_path):
    own = OwnFile(lambda: offered(tmp_path))
    own.write(b"ours")
    (tmp_path / "theirs").write_bytes(b"theirs, longer")
    os.replace(tmp_path / "theirs", tmp_path / "0.txt")
    assert tmp_path / "1.txt" == own.write(b"ours again")
    assert b"theirs, longer" == (tmp_path / "0.txt").read_bytes()


def test_a_version_that_was_removed_is_written_again(tmp_path):
    own = OwnFile(lambda: offered(tmp_path))
    own.write(b"first").unlink()
    assert b"second" == own.write(b"second").read_bytes()


def test_a_failed_write_is_tried_under_the_same_name_again(tmp_path, monkeypatch):
    own, link = OwnFile(lambda: offered(tmp_path)), os.link

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="No space"):
        own.write(b"first")
    monkeypatch.setattr(os, "link", link)
    assert tmp_path / "0.txt" == own.write(b"second")
    assert ["0.txt"] == os.listdir(tmp_path)


HOSTILE = ["../../x", "/etc/passwd", "..", ".", "", "a/b", "a\\b", "a\0b", "a\nb", ".hidden", "-rf", "x" * 5000, "é",
           "<b>&amp;", "CON:", "\ud800", None, 7, {"a": 1}]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name)[:20])
def test_any_name_becomes_one_part_of_a_path(name, tmp_path):
    part = path_part(name)
    (tmp_path / part).write_bytes(b"")
    assert [part] == os.listdir(tmp_path)
    assert part.isascii() and len(part) <= 100 and not part.startswith((".", "-"))


def test_plain_names_stay_as_they_are_and_different_ones_differ():
    plain = ["nvidia-h200", "20261120T221405Z-7471611d-dirty", "softmax", "laptop_2", "v1.2"]
    assert plain == [path_part(name) for name in plain]
    assert len(HOSTILE) == len({path_part(name) for name in HOSTILE})
    assert path_part("a/b") != path_part("a-b") != path_part("a\\b")


def test_a_foreign_path_stays_below_its_folder(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "out").symlink_to(tmp_path)
    assert tmp_path / "root" / "a" / "0.bin" == confined(tmp_path / "root", "a/0.bin")
    assert tmp_path / "root" / "0.bin" == confined(tmp_path / "root", "a/../0.bin")
    for name in ("../x", "/etc/passwd", "a/../../x", "out/x", "", ".", "a\0b", "x" * 5000 + "/" + "y" * 5000):
        with pytest.raises(ResultsError, match="path"):
            confined(tmp_path / "root", name)
