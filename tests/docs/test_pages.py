"""Every block and every command of the documentation, as a reader would try them."""

import re
import shlex

import pytest

from tests.docs.blocks import PAGES, ROOT, blocks, flattened, pattern
from tests.docs.conftest import parsed

WRITTEN, TUTORIAL = sorted(PAGES.rglob("*.md")), PAGES / "tutorial.md"


def _needs_a_compiler():
    from prism_bench.backends import open_backend
    from prism_bench.errors import BackendUnavailable

    try:
        open_backend("emulator")
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page, reader):
    _needs_a_compiler()
    if page != TUTORIAL:  # guides go on with the kernel that stands there
        for block in filter(lambda one: one.is_file, blocks(TUTORIAL)):
            reader.follow(block)
    for block in blocks(page):
        reader.follow(block)


def test_commands_next_to_those_of_other_tools_exist():
    text = (PAGES / "guides" / "coming_from.md").read_text()
    commands = re.findall(r"`prism-bench ([^`]+)`", text)
    assert len(commands) > 15
    for command in commands:
        words = shlex.split(command)
        parsed(words if len(words) > 1 else [*words, "--help"], command)


def test_every_fence_is_seen():
    for page in WRITTEN:
        fences = re.findall(r"^ *```", page.read_text(), re.MULTILINE)
        assert len(fences) == 2 * len(blocks(page)), page


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "DECISIONS.md", "CHANGELOG.md"])
def test_links_of_the_front_pages_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / page).read_text())
    dead = [link for link in links if not link.startswith("https://") and not (ROOT / link).exists()]
    assert [] == dead


def test_an_output_is_held_against_what_was_printed():
    printed = flattened("┃ kernel ┃  cold ┃\n│ copy   │ 3 us  │\nrecord: a/b.json")
    assert pattern("kernel cold\ncopy ...\nrecord: ...").search(printed)
    assert not pattern("kernel cold\nread ...").search(printed)
    assert not pattern("record: ...\nkernel").search(printed)
