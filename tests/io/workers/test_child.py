"""A process of ours imports what this one does, and how it ended is told with its last words."""

import io
import subprocess
import sys

import pytest

from prism_bench.io.workers import MOST_STDERR, ending, environment


def test_a_child_imports_what_stands_at_a_root_and_what_this_process_does(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", ["", str(tmp_path / "own"), *sys.path])
    for folder in ("root", "own"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "stands_there.py").write_text(f"print({folder!r})")
    said = [
        subprocess.run([sys.executable, "-m", "stands_there"], env=environment(root), capture_output=True, text=True)
        for root in (tmp_path / "root", None)
    ]
    assert ["root\n", "own\n"] == [one.stdout for one in said]


@pytest.mark.parametrize(
    ("code", "stderr", "text"),
    [
        (1, b"Traceback\nMemoryError: none\n", "ended (exit status 1): MemoryError: none"),
        (-9, b"", "ended (killed by signal 9)"),
        (None, b"\xff", "ended (still runs): \N{REPLACEMENT CHARACTER}"),
    ],
)
def test_an_ending_is_told_with_the_last_line(code, stderr, text):
    assert text == ending(code, io.BytesIO(stderr))


def test_of_very_many_words_the_end_is_read():
    stderr = io.BytesIO(b"x" * (2 * MOST_STDERR) + b"\nthe last")
    assert "ended (exit status 1): the last" == ending(1, stderr)
