"""A claim is fetched from a file, from its page or from an address, and never by an unsafe way."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from prism_bench.errors import ResultsError, UsageError
from prism_bench.extensions.claims.checks import fetched, fetched_next_to
from prism_bench.extensions.claims.document import encoded
from prism_bench.extensions.claims.page import claim_page
from tests.cli.conftest import shell  # noqa: F401


@pytest.fixture
def served(claim):
    """The address of a server that has the claim, its signature, and redirects."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            places = {
                "/claim.json": encoded(claim),
                "/claim.json.minisig": b"signed",
                "/c.html": claim_page(claim).encode(),
            }
            redirects = {"/moved": "/claim.json", "/away": "http://192.0.2.1/claim.json", "/file": "file:///etc/passwd"}
            if self.path in redirects:
                self.send_response(302)
                self.send_header("Location", redirects[self.path])
            else:
                self.send_response(200 if self.path in places else 404)
            self.end_headers()
            self.wfile.write(places.get(self.path, b""))

        def log_message(self, *_):
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("place", ["/claim.json", "/moved", "/c.html"])
def test_an_address_gives_the_claim(served, claim, place):
    assert encoded(claim) == fetched(f"{served}{place}")


def test_a_signature_is_next_to_an_address(served):
    assert b"signed" == fetched_next_to(f"{served}/claim.json", ".minisig")
    assert fetched_next_to(f"{served}/c.html", ".minisig") is None
    with pytest.raises(ResultsError, match="Not Found"):
        fetched(f"{served}/none.json")


@pytest.mark.parametrize("place", ["/away", "/file"])
def test_a_redirect_to_an_unsafe_address_is_not_followed(served, place):
    with pytest.raises((UsageError, ResultsError), match="https:// alone|not allowed"):
        fetched(f"{served}{place}")


@pytest.mark.parametrize("place", ["http://example.org/c", "HTTP://example.org/c", "ftp://example.org/c", "file:///c"])
def test_an_address_that_is_not_safe_is_refused(place):
    with pytest.raises(UsageError, match="https:// alone"):
        fetched(place)


def test_a_page_is_replayed_as_its_claim(shell, claim, catalogue, tmp_path):  # noqa: F811
    (tmp_path / "c.html").write_text(claim_page(claim))
    assert encoded(claim) == fetched(str(tmp_path / "c.html"))
    (tmp_path / "forged.html").write_text(claim_page(claim).replace(claim.sentence, claim.sentence.replace("2.", "9.")))
    (tmp_path / "other.html").write_text("<!doctype html><p>No claim.</p>")
    for place, words in (("forged.html", "digest"), ("other.html", "a page without a claim")):
        found = shell("claim", place, "--catalogue", catalogue.folder)
        assert (2, True) == (found.code, words in found.err), found.err
