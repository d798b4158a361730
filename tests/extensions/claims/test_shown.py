"""A claim's page and badge, its signature, and the commands."""

import json
import os
import re
import stat
from threading import Thread
from xml.etree import ElementTree

import pytest

from prism_bench.errors import BackendUnavailable, ResultsError, UsageError
from prism_bench.extensions.claims import making
from prism_bench.extensions.claims.checks import require_signature, sign
from prism_bench.extensions.claims.document import encoded
from prism_bench.extensions.claims.page import badge, claim_page
from prism_bench.record import store
from tests.cli.conftest import TOYS, shell  # noqa: F401
from tests.extensions.claims.planted import record
from tests.extensions.claims.test_imported import claims as imported_claims

MINISIGN = """#!/bin/sh
# Signs with the words "by KEY"; the public key is the name of the key's file.
while [ $# -gt 0 ]; do
  case $1 in -S) do=sign;; -V) do=verify;; -s|-P) key=$2; shift;; -m) file=$2; shift;; -x) out=$2; shift;; esac; shift
done
if [ $do = sign ]; then echo "$key $(cksum < "$file")" > "$out"; exit; fi
[ "$(cat "$out")" = "$key $(cksum < "$file")" ] || { echo "Signature verification failed" >&2; exit 1; }
"""


def test_the_page_holds_the_claim_and_needs_nothing_else(claim):
    page = claim_page(claim, file="https://example.org/c.json")
    inside = re.search(r'<script type="application/json" id="claim">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(encoded(claim)) == json.loads(inside)
    assert "prism-bench claim https://example.org/c.json" in page
    assert "What would refute it" in page
    assert not re.search(r'(src|href)="(?!#)', page), "it opens from disk"
    for picture in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(picture)


def test_the_page_of_other_tools_results_promises_no_replay(tmp_path, catalogue):
    (made,) = [one for tool, one in imported_claims(tmp_path, catalogue).items() if tool == "kernelbench"]
    page = claim_page(made)
    for words in ("No interval is known: the times are of 1 process of each side.", "kernelbench measured this",
                  "Nothing that a replay finds", "<dd>kernelbench</dd>"):  # fmt: skip
        assert words in page
    for words in ("95 % interval comes from", "verifies both sides", "An output of either side", 'id="sources"',
                  "by the same compiler"):  # fmt: skip
        assert words not in page


def test_the_page_says_what_its_claim_has(claim):
    page = claim_page(claim)
    assert "comes from the medians of 5 processes of each side." in page
    assert ("by the same compiler" in page) == bool(claim.kernel.code)


def test_a_badge_is_an_image_of_its_own(claim):
    root = ElementTree.fromstring(badge(claim))
    assert "{http://www.w3.org/2000/svg}svg" == root.tag
    assert "triple: 2.00x of triple:naive: claimed" == root.get("aria-label")


@pytest.fixture
def minisign(tmp_path, monkeypatch):
    """A stand-in for minisign on the path."""
    program = tmp_path / "bin" / "minisign"
    program.parent.mkdir()
    program.write_text(MINISIGN)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_a_signature_is_made_and_required(minisign, claim, tmp_path):
    path = tmp_path / "claim.json"
    path.write_bytes(encoded(claim))
    assert "not signed" == require_signature(str(path), encoded(claim), None)
    with pytest.raises(ResultsError, match=r"no signature \.minisig"):
        require_signature(str(path), encoded(claim), "minisign:ann")
    sign(path, "minisign:ann")
    assert "signed by ann" == require_signature(str(path), encoded(claim), "minisign:ann")
    assert "unchecked" in require_signature(str(path), encoded(claim), None)
    for content, by in ((encoded(claim), "minisign:bob"), (encoded(claim) + b" ", "minisign:ann")):
        with pytest.raises(ResultsError, match="verification failed"):
            require_signature(str(path), content, by)


def test_signers_that_are_none_are_refused(claim, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "claim.json"
    path.write_bytes(encoded(claim))
    for how in ("minisign", "gpg:me"):
        with pytest.raises(UsageError, match="write minisign:KEY_FILE"):
            sign(path, how)
        with pytest.raises(UsageError, match="write minisign:PUBLIC_KEY"):
            require_signature(str(path), b"", how)
    with pytest.raises(BackendUnavailable, match="minisign is not installed"):
        sign(path, "minisign:key")


@pytest.fixture
def kept(catalogue, tmp_path):
    """Words that name a kept record and the catalogue of its code."""
    return store.save(record(), tmp_path / "record.json.gz"), ("--catalogue", catalogue.folder)


def test_a_record_makes_a_claim_with_page_and_badge(shell, kept, tmp_path):  # noqa: F811
    path, words = kept
    found = shell(
        "claim", path, *words, "--filter", "triple[n=1000]", "--output", "c.html", "--output", "c.svg", "--json"
    )
    assert 0 == found.code, found.err
    assert found.json["sentence"] == json.loads((tmp_path / "claim.json").read_text())["sentence"]
    assert (tmp_path / "c.html").is_file() and (tmp_path / "c.svg").is_file()
    other = shell("claim", path, *words, "--filter", "triple[n=1000]", "--against", "triple:naive")
    assert "of triple:naive, 2.00 to 2.0" in other.out
    both = shell("claim", path, path, "triple[n=1000]", *words)
    assert (0, True) == (both.code, "1.00x of triple at " in both.out), both.err


def test_two_kernels_are_measured_and_make_a_claim(shell, tmp_path):  # noqa: F811
    words = ("--catalogue", TOYS, "--backend", "null", "--processes", "2", "--json")
    found = shell("claim", "double", "double:by_adding", "S0", *words)
    assert "of double" in found.json["sentence"], found.err
    assert (tmp_path / "claim.json").is_file()


@pytest.mark.parametrize(
    ("more", "words"),
    [(("--filter", "tripel"), "unknown case 'tripel'"), ((), "2 cases chosen"),
     (("--filter", "triple[n=1000]", "--against", "x"), "unknown peer"),
     (("--filter", "triple[n=1000]", "--signature", "x"), "--signature x: write"),
     (("--metric", "hot"), "did you mean hot_time"), (("-o", "x.txt"), "its ending is none of .json, .html, .svg"),
     (("-o", "a.json", "a", "b", "c"), "a claim is about one case"), (("-o", "folder.svg"), "it is a folder")],
)  # fmt: skip
def test_a_claim_that_cannot_be_made_is_one_sentence(shell, kept, more, words):  # noqa: F811
    path, catalogue = kept
    (path.parent / "folder.svg").mkdir()
    found = shell("claim", path, *catalogue, *more)
    assert (2, True) == (found.code, words in found.err), found.err
    assert not list(path.parent.glob("claim.json*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [(("triple",), "times no peer of it"), (("triple", "triple"), "both sides are triple[n=1000]"),
     (("triple:naive", "triple", "--against", "torch"), "the baseline is triple:naive"),
     (("triple:naive", "triple", "--signature", "sigstore"), "sigstore is not installed"),
     (("triple:naive", "triple", "--backend", "numpy_reference"), "times references, not kernels")],
)  # fmt: skip
def test_what_no_measurement_can_mend_is_refused_before_it(shell, kept, monkeypatch, words, message):  # noqa: F811
    monkeypatch.setattr(making.ClaimMeasurement, "builds", None)
    monkeypatch.setattr(making.ClaimMeasurement, "peers", None)
    monkeypatch.setenv("PATH", "/nowhere")
    found = shell("claim", "--filter", "S0", "--backend", "null", *kept[1], *words)
    assert (2, True) == (found.code, message in found.err), found.err


def test_a_replay_does_not_write_over_its_claim(shell, claim, tmp_path):  # noqa: F811
    (tmp_path / "claim.json").write_bytes(encoded(claim))
    found = shell("claim", "claim.json", "--output", "claim.json")
    assert (2, True) == (found.code, "--output claim.json: the command reads this file" in found.err), found.err


def test_the_page_of_a_replay_names_the_file_and_not_its_folder(shell, claim, catalogue, tmp_path):  # noqa: F811
    path = tmp_path / "private" / "claim.json"
    path.parent.mkdir()
    path.write_bytes(encoded(claim))
    shell("claim", path, "--catalogue", catalogue.folder, "--backend", "emulator", "--output", "c.html")
    page = (tmp_path / "c.html").read_text()
    assert "prism-bench claim claim.json" in page and "private" not in page


@pytest.mark.parametrize(
    ("place", "words"),
    [("x.json", "x.json: neither a claim nor a readable run record: none of asv"),
     ("text.json", "text.json: neither a claim nor a readable run record: not readable JSON"),
     ("none.json", "none.json: No such file"), ("http://example.org/c", "https://"),
     ("other.html", "a page without a claim")],
)  # fmt: skip
def test_what_is_no_claim_is_not_replayed(shell, tmp_path, place, words):  # noqa: F811
    (tmp_path / "x.json").write_text('{"format": "prism-bench replay"}')
    (tmp_path / "text.json").write_text("text")
    (tmp_path / "other.html").write_text("<!doctype html>")
    found = shell("claim", place)
    assert (2, "", True) == (found.code, found.out, words in found.err), found.err


@pytest.mark.parametrize("more", [("--filter", "S0"), ("--against", "x"), ("--metric", "hot_time")])
def test_what_makes_a_claim_is_refused_with_a_claim_to_replay(shell, claim, tmp_path, more):  # noqa: F811
    (tmp_path / "c.json").write_bytes(encoded(claim))
    found = shell("claim", "c.json", *more)
    message = f"prism-bench: {more[0]}: leave it out with c.json, which is a claim to replay\n"
    assert (2, "", message) == (found.code, found.out, found.err)


@pytest.mark.parametrize("more", [("--trust-source",)])
def test_what_guards_a_replay_is_refused_where_a_claim_is_made(shell, kept, more):  # noqa: F811
    for operand in ("record.json.gz", "triple"):
        found = shell("claim", operand, *kept[1], *more)
        message = f"prism-bench: {more[0]}: leave it out with {operand}, which is no claim to replay\n"
        assert (2, "", message) == (found.code, found.out, found.err)


def test_a_claim_is_replayed_alone_and_writes_no_answer_by_itself(shell, claim, catalogue, tmp_path):  # noqa: F811
    (tmp_path / "c.json").write_bytes(encoded(claim))
    for words in (("c.json", "triple"), ("triple", "c.json")):
        found = shell("claim", *words)
        assert (2, "prism-bench: c.json: it is a claim; name it alone to replay it\n") == (found.code, found.err)
    found = shell("claim", "c.json", "--catalogue", catalogue.folder, "--backend", "emulator")
    assert (3, True) == (found.code, "cannot be decided here" in found.out), found.err
    assert [tmp_path / "c.json"] == list(tmp_path.glob("*.json"))


def test_a_claim_is_replayed_from_a_pipe(shell, claim, tmp_path):  # noqa: F811
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(encoded(claim),))
    writer.start()
    found = shell("claim", pipe, "--signature", "x")
    writer.join()
    assert "--signature x: write minisign:PUBLIC_KEY" in found.err


def test_replay_names_what_replaces_it(shell):  # noqa: F811
    found = shell("replay", "claim.json")
    message = "prism-bench: 'replay' is no command any more; use 'prism-bench claim CLAIM'\n"
    assert (2, message) == (found.code, found.err)
