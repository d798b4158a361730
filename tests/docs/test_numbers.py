"""Numbers of the front pages are tied to their sources, and the claims among these are sound and fresh."""

import pytest

from docs.numbers import NumberTie, faults, numbers, ties
from docs.readme import BEGIN, END, ROOT
from prism_bench.catalogue import discover
from prism_bench.extensions.claims.own_files import FOLDER, answer_in, claim_files, listed, stale_files


def test_every_number_has_a_source():
    assert [] == list(faults(ties()))


@pytest.fixture
def root(tmp_path):
    """A repository with two pages: a number that is tied, one that is not, and ones that are not read."""
    (tmp_path / "docs/pages/guides").mkdir(parents=True)
    (tmp_path / "README.md").write_text(f"1.48x, 12 us.\n{BEGIN}\n9.9x\n{END}\n```\n3 ms\n```\nin 7 steps, sm_90\n")
    (tmp_path / "docs/pages/guides/fusion.md").write_text("No number, and 64-bit words.\n")
    return tmp_path


def test_a_number_without_a_source_is_found(root):
    assert ["1.48x", "12 us"] == numbers("README.md", root)
    known = (NumberTie("README.md", "1.48x", "README.md"), NumberTie("README.md", "5 %", "none.json"))
    found = list(faults(known, root))
    for words in ("12 us is tied to nothing", "5 % is not on README.md", "comes from none.json, which is not there"):
        assert any(words in one for one in found), found


def test_kept_claims_are_sound_and_fresh():
    """Those that are kept; `scripts/claims` makes them on a GPU machine, and again when their code changed."""
    catalogue = discover()
    for path in claim_files(ROOT / FOLDER):
        assert [] == stale_files(path, catalogue), f"{path}: made of other files: scripts/claims makes it again"


def test_listed_claims_are_of_the_catalogue():
    catalogue, found = discover(), listed(ROOT / FOLDER)
    assert len({one.name for one in found}) == len(found) > 5
    for one in found:
        for word in filter(None, (one.kernel, one.baseline)):
            cases = [case for case in catalogue.cases([word]) if one.case in (case.label, case.name)]
            assert any(case.kernel == word for case in cases), f"{one.name}: no case {one.case} of {word}"


def test_no_answer_is_no_answer(tmp_path):
    assert answer_in(tmp_path / "none.json", None) is None
