"""`python -m tests.contract.update [NAMES]`: write golden files anew, as commands print now."""

import os
import sys

import pytest

from tests.contract.test_contract import UPDATE


def main(words: list[str]) -> int:
    """Run the transcripts of these names, all by default, and keep what they print."""
    os.environ[UPDATE] = "1"
    chosen = " or ".join(f"[{name}]" for name in words) or "commands_print"
    return pytest.main(["-q", "tests/contract/test_contract.py", "-k", chosen, "--thorough"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
