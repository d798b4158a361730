"""A reader who does what a page says, in an empty folder."""

import re
import shlex
import subprocess
import sys
import tomllib
from itertools import dropwhile
from pathlib import Path

import pytest
import typer

from prism_bench.cli import app, main
from tests.docs.blocks import ROOT, flattened, pattern

ENDS = re.compile(r"# ends with (\d)")


class Reader:
    """Goes through the blocks of a page; what one leaves behind (files, names) is there for the next."""

    def __init__(self, monkeypatch, capsys):
        self._monkeypatch, self._capsys, self._names, self._printed = monkeypatch, capsys, {}, ""

    def follow(self, block):
        """Do what the block says, or hold it against what was printed."""
        if block.is_output:
            assert pattern(block.text).search(flattened(self._printed)), f"{block.place}: printed {self._printed}"
        elif block.is_file:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(block.text)
        elif block.is_only_read:
            read(block)
        else:
            getattr(self, f"_{block.language}")(block)
            self._printed = "".join(self._capsys.readouterr())

    def _python(self, block):
        exec(compile(block.text, block.place, "exec"), self._names)

    def _bash(self, block):
        for line in block.commands:
            words = shlex.split(line, comments=True)
            if words[0] in ("mkdir", "sed"):
                subprocess.run(words, check=True)
            else:
                assert words[0] == "prism-bench", f"{block.place}: a test cannot run '{line}'"
                self._command(words, int((ENDS.search(line) or [0, 0])[1]), block.place)

    def _command(self, words, code, place):
        self._monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            main()
            raise SystemExit(0)
        assert code == (ended.value.code or 0), f"{place}: {' '.join(words)}: {self._capsys.readouterr()}"

    def _toml(self, block):
        tomllib.loads(block.text)

    def _text(self, block):
        """Only shown."""

    def _yaml(self, block):
        import yaml

        yaml.safe_load(block.text)


def read(block):
    """The block's syntax, the options of its commands, and the files of ours that it names."""
    if block.language == "python":
        compile(block.text, block.place, "exec")
        return
    assert block.language == "bash", f"{block.place}: {block.language} cannot need anything"
    subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)
    for line in block.commands:
        for words in _simple_commands(line):
            if words[0] == "prism-bench":
                parsed(words[1:], block.place)
            if words[0].startswith("scripts/"):
                assert (ROOT / words[0]).is_file(), f"{block.place}: {words[0]}"


def _simple_commands(line):
    """The words of each command in a line of several, without what is put before a command into its environment."""
    words = shlex.split(line, comments=True)
    cuts = [-1, *(place for place, word in enumerate(words) if word in ("&&", "||", "|", ";", "&")), len(words)]
    for begin, end in zip(cuts, cuts[1:], strict=False):
        if end > begin + 1:  # behind a closing & stands nothing
            yield list(dropwhile(re.compile(r"[A-Z_]+=").match, words[begin + 1 : end]))


def parsed(words, place):
    """Whether there are such a command and such options; nothing is called."""
    commands = typer.main.get_command(app).commands
    assert words[0] in commands, f"{place}: prism-bench {words[0]}"
    if words[1:] != ["--help"]:
        commands[words[0]].make_context(words[0], words[1:])


@pytest.fixture
def reader(monkeypatch, capsys, tmp_path):
    """A reader in a folder of its own."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    return Reader(monkeypatch, capsys)
