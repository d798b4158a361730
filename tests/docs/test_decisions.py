"""DECISIONS.md and CHANGELOG.md: short enough to be read, and each decision with what would reverse it."""

import re

from tests.docs.blocks import ROOT

DECISIONS, CHANGELOG = ROOT / "DECISIONS.md", ROOT / "CHANGELOG.md"
ENTRIES = dict(re.findall(r"^## (.+)\n\n((?:(?!^## ).*\n)+)", DECISIONS.read_text(), re.MULTILINE))


def test_both_files_stay_within_their_ceilings():
    assert DECISIONS.stat().st_size <= 20_000
    assert CHANGELOG.stat().st_size <= 12_000
    assert 0 < len(ENTRIES) == DECISIONS.read_text().count("\n## ") <= 25


def test_every_decision_has_its_reason_and_what_would_reverse_it():
    parts = ("- **Decision**: ", "- **Why**: ", "- **Reverse if**: ")
    assert [] == [title for title, text in ENTRIES.items() if any(text.count(part) != 1 for part in parts)]
