"""Fetching of a claim and its signature from a file or an address."""

import http.client
import re
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from prism_bench.errors import ResultsError, UsageError
from prism_bench.extensions.claims.inside import LARGEST_PAGE, read_inside

SECONDS = 30.0
_LOCAL = ("localhost", "127.0.0.1", "::1")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_address(place: str) -> bool:
    """Return whether a place is an address of the web, and no file."""
    return bool(_ADDRESS.match(place))


def fetched(place: str) -> bytes:
    """Return the bytes of a claim, or of the one inside a page.

    A ResultsError where there are none, a UsageError for an unsafe address.
    """
    return read_inside(_content(place), place)


def fetched_next_to(place: str, suffix: str) -> bytes | None:
    """Return the bytes of the file next to a claim that has another suffix added; None where there is none."""
    try:
        return _content(f"{place}{suffix}")
    except ResultsError:
        return None


def _content(place: str) -> bytes:
    if is_address(place):
        return _downloaded(place)
    try:
        with Path(place).open("rb") as file:
            return file.read(LARGEST_PAGE + 1)
    except OSError as error:
        raise ResultsError(f"{place}: {error.strerror or error}") from error


class _LocalHandler(urllib.request.HTTPHandler):
    """Opens http:// on this machine alone, also where an address redirects to it."""

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Return the answer of a safe address."""
        _require_safe(req.full_url)
        return super().http_open(req)


def _require_safe(address: str) -> None:
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise UsageError(f"{address}: no address ({error})") from None
    if parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in _LOCAL):
        raise UsageError(f"{address}: a claim is fetched by https:// alone")


def _downloaded(address: str) -> bytes:
    _require_safe(address)
    try:
        with urllib.request.build_opener(_LocalHandler).open(address, timeout=SECONDS) as answer:
            return answer.read(LARGEST_PAGE + 1)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ResultsError(f"{address}: {getattr(error, 'reason', None) or error}") from None
