"""Requests to the API of a forge: in time, tried again within bounds, and never with the token in an error."""

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from typing import Any
from urllib.parse import urlsplit

from prism_bench.errors import ForgeError
from prism_bench.io.documents import json_text

TIMEOUT = 20.0  # seconds of one attempt
ATTEMPTS = 4
LONGEST_WAIT = 120.0  # seconds in all; a limit that is reset later is an error
LARGEST = 20_000_000  # bytes of an answer
_LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class ApiAnswer:
    """What the API answered: its `status`, the parsed JSON, and its headers."""

    status: int
    json: Any = None
    headers: Message = field(default_factory=Message, repr=False)

    @property
    def limited(self) -> bool:
        """Whether a rate limit refused the request."""
        remaining = self.headers.get("X-RateLimit-Remaining") or self.headers.get("RateLimit-Remaining")
        return self.status == 429 or (self.status == 403 and (remaining == "0" or "Retry-After" in self.headers))

    def wait(self, now: float) -> float | None:
        """Return after how many seconds the limit allows the next request; None where no header names a time."""
        after = (self.headers.get("Retry-After") or "").strip()
        if after.isdecimal():
            return float(after)
        reset = (self.headers.get("X-RateLimit-Reset") or self.headers.get("RateLimit-Reset") or "").strip()
        return max(float(reset) - now, 1.0) if reset.isdecimal() else None


class Api:
    """One forge's API at `url`; `headers` hold the token, which leaves this class in requests alone."""

    def __init__(self, url: str, headers: Mapping[str, str], sleep: Callable[[float], None] = time.sleep) -> None:
        parts = urlsplit(url)
        if not parts.hostname or not (parts.scheme == "https" or parts.hostname in _LOCAL):
            raise ForgeError(f"the API's address has to begin with https://, and is {parts.scheme}://{parts.hostname}")
        self._url, self._headers, self._sleep = url.rstrip("/"), dict(headers), sleep
        self.host = parts.hostname

    def __repr__(self) -> str:
        return f"Api({self.host})"

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> ApiAnswer:
        """Return the answer, whatever its status; a ForgeError where there is none, or a limit takes too long."""
        waited, reason = 0.0, ""
        for attempt in range(ATTEMPTS):
            answer, reason = self._once(method, path, body)
            if answer is not None and not answer.limited and answer.status < 500:
                return answer
            wait = (answer.wait(time.time()) if answer is not None and answer.limited else None) or 2.0**attempt
            if waited + wait > LONGEST_WAIT:
                raise ForgeError(f"{self.host}: rate limit for {wait:.0f} s more; run the command again after that")
            if attempt < ATTEMPTS - 1:
                self._sleep(wait)
                waited += wait
        raise ForgeError(f"{self.host}: {reason}, {ATTEMPTS} attempts; run the command again when it answers")

    def _once(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[ApiAnswer | None, str]:
        """Return the answer of one attempt and what was wrong with it, without a word that may hold the token."""
        data = None if body is None else json_text(body).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "prism-bench", **self._headers}
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            with urllib.request.build_opener(_RedirectsRefused).open(request, timeout=TIMEOUT) as response:
                return ApiAnswer(response.status, json.loads(response.read(LARGEST) or b"null"), response.headers), ""
        except urllib.error.HTTPError as error:
            with error:
                answer = ApiAnswer(error.code, None, error.headers)
            return answer, "rate limit" if answer.limited else f"HTTP {error.code}"
        except (OSError, http.client.HTTPException, ValueError) as error:
            return None, f"no answer ({type(error).__name__})"


class _RedirectsRefused(urllib.request.HTTPRedirectHandler):
    """A redirect would take the token along to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None
