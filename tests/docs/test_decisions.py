"""DECISIONS.md: an index of questions, and for each the choice and its cost."""

import re

from tests.docs.blocks import ROOT

TEXT = (ROOT / "DECISIONS.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+)\n\n((?:(?!^## ).*\n)+)", TEXT, re.MULTILINE))


def anchor(title: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_the_index_lists_every_decision_in_order():
    listed = re.findall(r"^- \[(.+)\]\(#(.+)\)$", TEXT, re.MULTILINE)
    assert len(SECTIONS) == TEXT.count("\n## ") > 100
    assert [(title, anchor(title)) for title in SECTIONS] == listed


def test_every_decision_is_a_question_with_its_cost():
    assert [] == [title for title, text in SECTIONS.items() if not title.endswith("?") or "Cost:" not in text]
