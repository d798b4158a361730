"""What pages show of kept claims: their rows, what became stale, answers by device, and the sentence on peers."""

from dataclasses import replace

import pytest
from lab.claims.agreement import agreement_lines, answered
from lab.claims.own_files import FOLDER, answer_file

from docs.claims import KeptClaims
from prism_bench.extensions.claims.document import ClaimRatio, canonical, encoded
from prism_bench.extensions.claims.replaying import FORMAT, SCHEMA, Replay, answer
from tests.extensions.claims.planted import NULL_DEVICE, claim_in, plant, record

CASE, OWN_BOARD, OTHER_BOARD = "triple[n=1000]", "GPU-aaaaaaaa-0", "GPU-bbbbbbbb-0"


def replay_of(claim, ratio, board, device):
    """An answer of a board that measured this ratio, give or take a hundredth."""
    here = ClaimRatio(ratio, ratio - 0.01, ratio + 0.01)
    return Replay(
        FORMAT, SCHEMA, claim.digest, claim.sentence, answer(claim.ratio, here), claim.ratio, here, "cuda", device,
        "2026-11-26T10:00:00", {}, (), board,
    )  # fmt: skip


@pytest.fixture
def kept(tmp_path):
    """A function that keeps a claim of a peer with answers `(ratio, board, device)`."""
    catalogue = plant(tmp_path / "kernels")
    made = record()
    claim = claim_in(
        catalogue, replace(made, machine={**made.machine, "uuid": OWN_BOARD}), baseline=CASE, subject="peer:torch"
    )
    path = tmp_path / FOLDER / "planted" / "tripled.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(encoded(claim))

    def keep(*answers):
        for ratio, board, device in answers:
            answer_file(path, "planted", board).write_text(canonical(replay_of(claim, ratio, board, device)))
        return KeptClaims(tmp_path, catalogue)

    return keep


def test_a_claim_is_a_row_with_its_answers(kept):
    page = kept((3.0, OWN_BOARD, NULL_DEVICE), (3.0, OTHER_BOARD, NULL_DEVICE), (9.0, "GPU-c", "other GPU")).page()
    (row,) = [line for line in page.splitlines() if "tripled" in line]
    for words in ("[tripled](planted/tripled.json)", "`triple[n=1000]`", "3.00x", "| current |",
                  f"{NULL_DEVICE}: 2 of 2 reproduced", "other GPU: partly reproduced"):  # fmt: skip
        assert words in row


def test_agreement_is_counted_by_where_the_board_is(kept, tmp_path):
    kept((3.0, OWN_BOARD, NULL_DEVICE), (9.0, OTHER_BOARD, NULL_DEVICE), (3.0, "GPU-c", "other GPU"))
    lines = list(agreement_lines(tmp_path / FOLDER))
    assert "the same board: the intervals meet in 1 of 1 replay (100 %) on 1 board" in lines
    assert "another board of the same kind: the intervals meet in 0 of 1 replay (0 %) on 1 board" in lines
    assert "another kind of GPU: the intervals meet in 1 of 1 replay (100 %) on 1 board" in lines
    assert any("tripled.replayed-on-planted-bbbbbbbb.json: " in line for line in lines)
    assert 3 == len(list(answered(tmp_path / FOLDER)))


def test_a_claim_of_changed_code_is_shown_as_such(kept):
    claims = kept()
    source = claims.catalogue.folder / "arith" / "triple.cu"
    source.write_text(f"{source.read_text()}// changed\n")
    assert "| changed since unknown |" in claims.page()
    assert "| none yet |" in claims.page()


def test_a_line_of_the_peers_is_a_claim_where_its_ratio_is_in_the_interval(kept):
    claims = kept()
    assert claims.sentence({CASE: "3.00x"}).startswith("Each line is among the claims of `reports/claims/README.md`")
    assert "1 line (triple) is among the" in claims.sentence({CASE: "3.00x", "other[n=1]": "1.00x"})
    assert "" == claims.sentence({CASE: "2.50x"})
    assert claims.chains() == "No claim about a chain is kept yet."


def test_without_claims_the_page_says_so(tmp_path):
    assert "None is kept yet" in KeptClaims(tmp_path, plant(tmp_path / "kernels")).page()
