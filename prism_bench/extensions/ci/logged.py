"""Processes of our own that exchange no messages: what they print goes to files, which others read as they grow."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def logged_process(
    program: str, words: Sequence[str], variables: Mapping[str, str], files: tuple[Path, Path]
) -> "subprocess.Popen[bytes]":
    """Start the module with the words; `files` get its standard output and standard error, `variables` is all it has.

    It leads its own process group, so that a terminal's Ctrl-C reaches only its parent. Its standard input is a pipe
    that nobody writes to: where it ends, the parent has ended.
    """
    with files[0].open("wb") as output, files[1].open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", program, *words], stdin=subprocess.PIPE, stdout=output, stderr=log, env=variables,
            process_group=0,
        )  # fmt: skip
