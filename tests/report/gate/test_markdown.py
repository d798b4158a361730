"""Markdown for a pull request: the mark, what is wrong first, nothing dropped in silence, no markup from names."""

from dataclasses import replace

from prism_bench.analysis.gate.checks import GatePart
from prism_bench.report.gate import MARK, gate_markdown
from tests.report.gate.planted import AWKWARD, BAD, DOUBT, MET, NOTE, OK, gate_of, many


def rows(text):
    return [line for line in text.splitlines() if line.startswith("| ")]


def test_the_mark_the_sentence_and_what_is_wrong_come_first():
    text = gate_markdown(gate_of(MET, NOTE, BAD, DOUBT))
    assert text.startswith(f"{MARK}\n\n## Untrusted: 1 case cannot be trusted, 1 budget missed.\n")
    assert text.index("cold time is 9 us") < text.index("<details>") < text.index("registers is 32")


def test_the_gravest_comes_first():
    near, far = replace(BAD, ratio=1.1, message="near"), replace(BAD, ratio=0.2, message="far")
    text = gate_markdown(gate_of(near, DOUBT, far))
    assert text.index("far") < text.index("near") < text.index("below the floor")


def test_a_concern_has_its_command():
    assert "<code>git checkout 7471611d0c9b &amp;&amp; prism-bench run" in gate_markdown(gate_of(BAD))


def test_parts_say_what_they_answered_or_why_not():
    text = gate_markdown(gate_of(MET, MET, NOTE, more=[GatePart("baseline", silent="no baseline for box")]))
    assert "| Budgets | 2 met, 1 unmeasured |" in text
    assert "| Against the baseline | no baseline for box |" in text


def test_what_is_merely_well_has_no_row():
    assert "<details>" not in gate_markdown(gate_of(OK, OK))


def test_names_and_messages_are_only_text():
    text = gate_markdown(gate_of(replace(BAD, message=AWKWARD)))
    (row,) = [row for row in rows(text) if row.startswith("| missed |")]
    assert r"50 % of \<b\> \| \`it\` :, \& @&#8203;all \[x\](y)" in row
    assert 6 == row.replace(r"\|", "").count("|") + 1


def test_a_comment_fits_and_counts_what_it_leaves_out():
    text = gate_markdown(gate_of(*many(2000), *many(3000, NOTE)))
    assert len(text.encode()) < 65_536
    shown = sum(row.startswith("| missed |") for row in rows(text))
    assert 0 < shown < 2000
    assert f"and {2000 - shown} more: `prism-bench check --json`" in text
    assert "and 3000 more" in text
