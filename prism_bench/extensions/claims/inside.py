"""The claim inside its page: written into a script element, and read back from it."""

import re

import msgspec

from prism_bench.errors import ResultsError
from prism_bench.extensions.claims.document import Claim, canonical, encoded

LARGEST_PAGE = 10_000_000  # bytes: a page also lists the sources, and JSON in it has longer words for some characters
_HTML = b"<!doctype html>"
_ELEMENT = re.compile(rb'<script type="application/json" id="claim">(.*?)</script>', re.DOTALL)


def written_inside(claim: Claim) -> str:
    """Return the claim's JSON for a script element, which ends at the first `</`; JSON has other words for `<`."""
    return encoded(claim).decode().strip().replace("<", "\\u003c").replace("\u2028", "\\u2028")


def read_inside(content: bytes, origin: str) -> bytes:
    """Return the bytes of the claim inside a page; the content itself where it is none.

    A ResultsError where a page holds no claim.
    """
    if not content.startswith(_HTML):
        return content
    element = _ELEMENT.search(content)
    try:
        return f"{canonical(msgspec.json.decode(element[1]))}\n".encode() if element else _no_claim(origin)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return _no_claim(origin)


def _no_claim(origin: str) -> bytes:
    raise ResultsError(f"{origin}: a page without a claim inside; `prism-bench claim --html` writes pages with one")
