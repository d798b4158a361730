"""One message to one address: in time, tried again, and never with its secret in an error.

Addresses and tokens are secrets, so they come from the environment and from nowhere else:

    PRISM_BENCH_WEBHOOK         address that is sent the plain JSON form
    PRISM_BENCH_WEBHOOK_TOKEN   sent to it as `Authorization: Bearer ...`, where set
    PRISM_BENCH_SLACK_WEBHOOK   address that is sent Slack's form
"""

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import urlsplit

from prism_bench.io.documents import json_text
from prism_bench.units import count_text

_AGAIN = (408, 425, 429)  # and every 5xx: the receiver's trouble, not the message's


@dataclass(frozen=True)
class Destination:
    """Where messages of one `form` go; neither its address nor its token is ever printed."""

    form: str
    url: str = field(repr=False)
    token: str | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        """The address without what is secret in it: `https://hooks.example.org`."""
        try:
            parts = urlsplit(self.url)
            return f"{parts.scheme}://{parts.hostname}" if parts.hostname else "an address without a host"
        except ValueError:
            return "an address that is none"


@dataclass(frozen=True)
class RetryPolicy:
    """Seconds that one attempt may take, how many attempts, and the seconds before the second (doubled each time)."""

    timeout: float = 10.0
    attempts: int = 3
    wait: float = 1.0
    longest_wait: float = 30.0


def destinations(environment: Mapping[str, str]) -> list[Destination]:
    """Those that the environment names; none where it names none."""
    found = []
    if url := environment.get("PRISM_BENCH_WEBHOOK"):
        found.append(Destination("json", url, environment.get("PRISM_BENCH_WEBHOOK_TOKEN") or None))
    if url := environment.get("PRISM_BENCH_SLACK_WEBHOOK"):
        found.append(Destination("slack", url))
    return found


def post(
    destination: Destination, body: dict, patience: RetryPolicy | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> str | None:  # fmt: skip
    """Send `body`; None when the receiver took it, else why not. Raises nothing."""
    patience = patience or RetryPolicy()
    if urlsplit(destination.place).scheme not in ("http", "https"):
        return "not an http or https address"
    reason, wait = None, patience.wait
    for attempt in range(patience.attempts):
        if attempt:
            sleep(min(wait, patience.longest_wait))
        reason, again, asked = _attempt(destination, body, patience.timeout)
        if not again:
            return reason
        wait = asked or patience.wait * 2**attempt
    return f"{reason}, {count_text(patience.attempts, 'attempt')}"


# Why it failed (None if it did not), whether to try again, and after how many seconds, if the receiver names a time.
_Answer = tuple[str | None, bool, float | None]


def _attempt(destination: Destination, body: Any, timeout: float) -> _Answer:
    """Return why it failed (None if it did not), whether to try again, and after how many seconds if known.

    In a thread, because a socket's timeout covers neither the look-up of the name nor an answer that comes in drops.
    """
    answer: list[_Answer] = [(f"no answer within {timeout:g} s", True, None)]
    thread = threading.Thread(target=lambda: answer.append(_send(destination, body, timeout)), daemon=True)
    thread.start()
    thread.join(timeout)
    return answer[-1]


def _send(destination: Destination, body: Any, timeout: float) -> _Answer:
    headers = {"Content-Type": "application/json", "User-Agent": "prism-bench"}
    if destination.token:
        headers["Authorization"] = f"Bearer {destination.token}"
    try:
        data = json_text(body).encode()
        request = urllib.request.Request(destination.url, data, headers, method="POST")
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=timeout):
            return None, False, None
    except urllib.error.HTTPError as error:
        with error:
            return f"HTTP {error.code}", error.code in _AGAIN or error.code >= 500, _seconds(error.headers)
    except OSError as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return _words(reason, timeout), True, None
    except Exception as error:  # http.client's own errors quote the address or the token: only their kind is reported
        return type(error).__name__, False, None


def _words(reason: object, timeout: float) -> str:
    """Return the system's words for an error of the network, which hold no secret; else its kind."""
    if isinstance(reason, TimeoutError):
        return f"no answer within {timeout:g} s"
    return getattr(reason, "strerror", None) or type(reason).__name__


def _seconds(headers: Message) -> float | None:
    """Return what `Retry-After` asks for, where it is a number."""
    asked = (headers.get("Retry-After") or "").strip()
    return float(asked) if asked.isdigit() else None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST becomes a GET, and would take the token along to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None
