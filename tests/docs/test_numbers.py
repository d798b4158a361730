"""Numbers of the front pages are tied to their sources, and the claims among these are sound and fresh."""

import pytest
from lab.claims.agreement import answered
from lab.claims.own_files import FOLDER, REPLAYED, answer_files, answer_in, claim_files, listed

from docs.numbers import NumberTie, faults, numbers, ties
from docs.readme import BEGIN, END, LINES, ROOT
from prism_bench.catalogue import discover
from prism_bench.extensions.claims.checks import checked
from prism_bench.extensions.claims.document import read_bytes


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


def test_kept_claims_are_sound_and_listed():
    """Whether their code is still the catalogue's is on the page of claims, which test_readme.py compares."""
    names = {one.name for one in listed(ROOT / FOLDER)}
    for path in claim_files(ROOT / FOLDER):
        claim, _ = checked(read_bytes(path), str(path))
        assert claim.kernel.files and claim.baseline.files, f"{path}: without code nobody can replay it"
        assert path.stem in names, f"{path}: list.toml does not name it"


def test_answers_are_about_kept_claims():
    """An answer about an earlier version of a claim says nothing: `scripts/claims` asks anew."""
    kept = {path: checked(read_bytes(path), str(path))[0] for path in claim_files(ROOT / FOLDER)}
    answers = {file for path in kept for file in answer_files(path)}
    assert answers == {file for file in (ROOT / FOLDER).glob("*/*.json") if REPLAYED in file.name}
    for path, claim in kept.items():
        assert [] == [file for file in answer_files(path) if not answer_in(file, claim)]


def test_replays_on_other_boards_agree_as_often_as_claims_state():
    found = [
        one for one in answered(ROOT / FOLDER) if one.where == "another board of the same kind" and one.replay.here
    ]
    missed = [str(one.path) for one in found if not one.meets]
    assert found, "no other board has answered"
    assert len(missed) <= 0.05 * len(found), missed


def test_lines_of_peers_and_chains_are_listed():
    """What `scripts/claims` makes is every line of the table of peers, and chains for the page on fusion."""
    found = {(one.kernel, one.case) for one in listed(ROOT / FOLDER) if not one.baseline}
    assert set(LINES) <= found
    assert [one for one in listed(ROOT / FOLDER) if one.baseline]


def test_listed_claims_are_of_the_catalogue():
    catalogue, found = discover(), listed(ROOT / FOLDER)
    assert len({one.name for one in found}) == len(found) > 5
    for one in found:
        for word in filter(None, (one.kernel, one.baseline)):
            cases = [case for case in catalogue.cases([word]) if one.case in (case.label, case.name)]
            assert any(case.kernel == word for case in cases), f"{one.name}: no case {one.case} of {word}"


def test_no_answer_is_no_answer(tmp_path):
    assert answer_in(tmp_path / "none.json", None) is None
