"""The product from outside: every command, what it prints and writes, as it was when the golden files were written.

`python -m tests.contract.update` writes the golden files anew; git shows what changed. With PRISM_BENCH_COMMAND an
installed executable is tested.
"""

import difflib
import os
import re

import pytest

from tests.contract.commands import HERE
from tests.contract.transcript import replay, script

GOLDEN = HERE / "golden"
pytestmark = pytest.mark.thorough  # three minutes on two cores
UPDATE = "PRISM_BENCH_UPDATE_CONTRACT"
TRANSCRIPTS = sorted(path.stem for path in GOLDEN.glob("*.txt"))


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_commands_print_and_write_what_they_did(name, product, place, normaliser):
    path = GOLDEN / f"{name}.txt"
    expected = path.read_text(encoding="utf-8")
    folder = place()
    found = replay(script(expected), folder, product, normaliser(folder))
    if os.environ.get(UPDATE):
        path.write_text(found, encoding="utf-8")
    elif found != expected:
        lines = difflib.unified_diff(
            expected.splitlines(), found.splitlines(), f"golden/{path.name}", "found", lineterm="", n=2
        )
        pytest.fail("\n".join([*lines][:200]), pytrace=False)


def test_every_command_is_in_the_contract(product, tmp_path):
    listed = re.findall(r"^  (\w+)  +[A-Z]", product.run(tmp_path, ["prism-bench", "--help"]).out, re.MULTILINE)
    assert 20 <= len(listed)
    commands = "\n".join((GOLDEN / f"{name}.txt").read_text(encoding="utf-8") for name in TRANSCRIPTS)
    ran = re.findall(r"^[$~] (?:\S+=\S+ )*prism-bench (\w+) (.*)", commands, re.MULTILINE)
    assert set(listed) == {name for name, words in ran if words.startswith("--help")}
    # Some transcripts also run removed commands, which print what replaces them.
    assert set(listed) <= {name for name, words in ran if not words.startswith("--help")}


def test_golden_files_are_small():
    assert sum(path.stat().st_size for path in GOLDEN.iterdir()) < 1_500_000
