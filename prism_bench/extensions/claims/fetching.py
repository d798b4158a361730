"""Fetching of a claim and its signature from a file or an address."""

import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from prism_bench.errors import ResultsError, UsageError
from prism_bench.extensions.claims.document import LARGEST, read_bytes

SECONDS = 30.0
_LOCAL = ("localhost", "127.0.0.1", "::1")


def is_address(place: str) -> bool:
    """Return whether a place is an address of the web."""
    return place.startswith(("https://", "http://"))


def fetched(place: str) -> bytes:
    """Return the bytes of a claim; a ResultsError where there are none, a UsageError for an unsafe address."""
    return _downloaded(place) if is_address(place) else read_bytes(Path(place))


def fetched_next_to(place: str, suffix: str) -> bytes | None:
    """Return the bytes of the file next to a claim that has another suffix added; None where there is none."""
    try:
        return fetched(f"{place}{suffix}")
    except ResultsError:
        return None


def _downloaded(address: str) -> bytes:
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise UsageError(f"{address}: no address ({error})") from None
    if parts.scheme != "https" and parts.hostname not in _LOCAL:
        raise UsageError(f"{address}: a claim is fetched by https:// alone")
    try:
        with urllib.request.urlopen(address, timeout=SECONDS) as answer:  # noqa: S310
            return answer.read(LARGEST + 1)
    except (OSError, ValueError, urllib.error.URLError) as error:
        raise ResultsError(f"{address}: {getattr(error, 'reason', None) or error}") from None
