"""The pages that the program writes hold everything that it has."""

import re

import pytest

from docs.generated import attacks, catalogue, commands, pages, python, troubleshooting
from docs.generated.markdown import prose, table
from docs.generated.said import said
from prism_bench import errors
from prism_bench.extensions.judge.defences import DEFENCES
from prism_bench.profilers.tools import FAILURES
from prism_bench.spec.metric import MEASURED

pytestmark = pytest.mark.xdist_group("generated pages")  # one worker writes them

KINDS = errors.kinds()


@pytest.fixture(scope="module")
def written():
    """Every generated page by its path."""
    return pages()


def test_every_kernel_has_a_section_with_its_cases(written):
    found = catalogue.found()
    for spec in found.kernels.values():
        page = written[f"reference/catalogue/{spec.family}.md"]
        assert f"## `{spec.name}` {{ #{spec.name} }}" in page
        assert all(f"`{name}`" in page for name in (*spec.variants, *spec.aliases, *spec.peers))
        remarks = [remark for name in spec.peers for remark in (spec.peer(name).poor, spec.peer(name).work) if remark]
        assert all(remark in page for remark in (*remarks, *spec.looked_at.values())), spec.name
        assert all(f"`{case.workload}`" in page for case in found.cases([spec.name]) if case.variant is None)
    assert set(found.kernels) == set(re.findall(r"\[`(\w+)`\]\(\w+\.md#", written[catalogue.PATH]))


def test_every_command_has_its_options(written):
    page = written["reference/commands.md"]
    for name, command in commands.commands().items():
        assert f"## prism-bench {name} " in page
        assert all(f"`{spelling}`" in page for one in command.params for spelling in one.opts if spelling[0] == "-")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_has_cause_and_cure(kind, written):
    told = troubleshooting.paragraphs(kind)
    assert ["", "Cause", "Cure"] == list(told)
    assert all(paragraph.endswith(".") for paragraph in told.values())
    assert f"## {kind.__name__}\n" in written["reference/troubleshooting.md"]


def test_sentences_failures_and_findings_are_told(written):
    page = written["reference/troubleshooting.md"]
    assert "unknown &lt;kind&gt; '&lt;name&gt;'; &lt;hint&gt;" in page
    assert all(f"| `{one.name}` |" in page for one in FAILURES)
    assert r"a GPU driver is loaded and its library does not answer" in page


def test_most_errors_are_sentences():
    calls = list(said({kind.__name__ for kind in KINDS}))
    told = [one for one in calls if one.texts and not one.texts[0].startswith("<...>")]
    assert len(told) > 0.9 * len(calls) > 200


def test_every_public_name_is_in_the_index_and_the_reference(written):
    index, reference = written["reference/names.md"], written["reference/python.md"]
    for found in python.public().values():
        for name, path in found.items():
            assert f"[`{name}`](python.md#{path})" in index
            assert f"::: {path}\n" in reference


def test_every_metric_is_listed(written):
    assert all(f"| `{name}` |" in written["reference/metrics.md"] for name in MEASURED)


def test_markup_in_words_of_the_program_is_words():
    assert r"`a_b` is &lt;x&gt; \* 2" == prose("`a_b` is <x> * 2")
    assert "| a |\n| --- |\n| x\\|y |" == table(("a",), [("x|y",)])
    assert "" == table(("a",), [])


def test_every_attack_of_the_museum_has_its_defences(written):
    page, cards = written["reference/attacks.md"], list(attacks.FOLDER.glob("*.toml"))
    assert len(cards) > 60
    assert all(f"| `{card.stem}` |" in page for card in cards)
    assert all(f"| {name} | {words} |" in page for name, words in DEFENCES.items())
