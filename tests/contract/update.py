"""`python -m tests.contract.update [NAMES] [--thorough]`: write golden files anew, as commands print now."""

import os
import sys

import pytest

from tests.contract.test_contract import UPDATE


def main(words: list[str]) -> int:
    """Run the transcripts of these names, all by default, and keep what they print."""
    os.environ[UPDATE] = "1"
    names = [word for word in words if not word.startswith("-")]
    options = ["--thorough", *(word for word in words if word.startswith("-"))]
    chosen = " or ".join(f"[{name}]" for name in names) or "commands_print"
    return pytest.main(["-q", "tests/contract/test_contract.py", "-k", chosen, *options])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
