"""Alerts by webhook: new alerts are sent once, with retries, and recorded in a ledger."""

import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prism_bench.errors import ResultsError
from prism_bench.io.documents import json_of, json_text
from prism_bench.io.files import write_atomically
from prism_bench.record.alert import Alert, Occasion
from prism_bench.units import count_text

# Bodies of messages: a plain JSON document, and Slack's form.

VERSION = 1
# Slack refuses a message of more than 50 blocks, or a block of more than 3,000 characters.
_MOST_BLOCKS, _LONGEST_BLOCK = 48, 3000


def plain(heading: str, alerts: Sequence[Alert]) -> dict:
    """Return `version`, `heading`, and every field of every alert with its `fingerprint`."""
    return {
        "version": VERSION,
        "heading": heading,
        "alerts": [{"fingerprint": alert.fingerprint, **vars(alert)} for alert in alerts],
    }


def slack(heading: str, alerts: Sequence[Alert]) -> dict:
    """Return a block for the heading and one for each alert; the last counts the alerts that do not fit."""
    shown = alerts[:_MOST_BLOCKS]
    left = len(alerts) - len(shown)
    texts = [f"*{_escaped(heading)}*", *map(_slack_text, shown), *([f"and {left} more"] if left else [])]
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": text}} for text in texts]
    return {"text": _escaped(heading), "blocks": blocks}


def _slack_text(alert: Alert) -> str:
    subject = f"`{_escaped(alert.subject)}` " if alert.subject else ""
    message = f"*{_escaped(alert.kind)}* {subject}{_escaped(alert.message)}"
    command = f"\n```{_escaped(alert.reproduce)}```" if alert.reproduce else ""
    command = command if len(command) < _LONGEST_BLOCK / 2 else ""
    return message[: _LONGEST_BLOCK - len(command)] + command


def _escaped(text: str) -> str:
    """Escape Slack's three characters: a name with `<!channel>` in it must not notify a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


FORMS = {"json": plain, "slack": slack}


# The ledger of sent alerts: a small JSON file, by fingerprint and destination.

_WORSE = 1.10  # an alert is sent again if its severity grew by more than this factor
_VERSION = 1


@dataclass(frozen=True)
class Ledger:
    """Ledger: `entries` maps a fingerprint to {source, subject, `told`: {form: {when, state, severity}}}."""

    entries: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def news(self, alerts: Iterable[Alert], form: str) -> list[Alert]:
        """Return the alerts never sent there, sent in another state, or clearly worse now; each once."""
        unique = {alert.fingerprint: alert for alert in alerts}
        return [alert for alert in unique.values() if self._is_news(alert, form)]

    def _is_news(self, alert: Alert, form: str) -> bool:
        sent = self.entries.get(alert.fingerprint, {}).get("told", {}).get(form)
        if sent is None or sent["state"] != alert.state:
            return True
        before = sent["severity"]
        return alert.severity is not None and before is not None and alert.severity > before * _WORSE

    def with_sent(self, alerts: Iterable[Alert], form: str, when: str) -> "Ledger":
        """Return the ledger after these were sent there."""
        entries = dict(self.entries)
        for alert in alerts:
            entry = entries.get(alert.fingerprint, {})
            sent = {**entry.get("told", {}), form: {"when": when, "state": alert.state, "severity": alert.severity}}
            facts = {"source": alert.source, "kind": alert.kind, "subject": alert.subject, "message": alert.message}
            entries[alert.fingerprint] = {**facts, "told": sent}
        return replace(self, entries=entries)

    def settled(self, alerts: Iterable[Alert], source: str, states: Mapping[str | None, str]) -> "Ledger":
        """Return the ledger without corrected alerts: absent now, checked, and in another state than when sent.

        Keep an alert that vanished in the state in which it was sent, so that its return is not reported again.
        """
        current = {alert.fingerprint for alert in alerts}

        def is_corrected(entry: Mapping[str, Any]) -> bool:
            state = states.get(entry["subject"])
            return state is not None and all(sent["state"] != state for sent in entry["told"].values())

        kept = {
            fingerprint: entry
            for fingerprint, entry in self.entries.items()
            if fingerprint in current or entry["source"] != source or not is_corrected(entry)
        }
        return replace(self, entries=kept)


def merged(base: Ledger, ours: Ledger, theirs: Ledger) -> Ledger:
    """Return the entries of both, without those that one removed since `base` and the other did not change.

    If both sent an alert to the same destination, the later time counts.
    """
    entries: dict[str, dict[str, Any]] = {}
    for fingerprint in {**theirs.entries, **ours.entries}:
        here, there = ours.entries.get(fingerprint), theirs.entries.get(fingerprint)
        before = base.entries.get(fingerprint)
        if here is not None and there is not None:
            entries[fingerprint] = _later(here, there)
        elif (entry := here or there) is not None and entry != before:
            entries[fingerprint] = entry
    return Ledger(entries)


def _later(here: dict[str, Any], there: dict[str, Any]) -> dict[str, Any]:
    first, second = sorted(
        (here, there), key=lambda entry: max((sent["when"] for sent in entry["told"].values()), default="")
    )
    sent = dict(first["told"])
    for form, sent_there in second["told"].items():
        if form not in sent or sent_there["when"] >= sent[form]["when"]:
            sent[form] = sent_there
    return {**second, "told": sent}


def read(path: Path) -> Ledger:
    """Return the ledger at `path`, empty if the file is missing; ResultsError if it cannot be read."""
    try:
        plain: Any = json_of(path, "a readable ledger of alerts")
        if plain["version"] != _VERSION:
            raise ResultsError(f"{path}: a ledger of version {plain['version']}; this program knows {_VERSION}")
        entries: dict[str, dict[str, Any]] = {}
        for fingerprint, entry in plain["entries"].items():
            facts = {key: entry[key] for key in ("source", "kind", "subject", "message")}
            keys = ("when", "state", "severity")
            sent = {form: {key: sent_to[key] for key in keys} for form, sent_to in entry["told"].items()}
            entries[fingerprint] = {**facts, "told": sent}
        return Ledger(entries)
    except FileNotFoundError:
        return Ledger()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ResultsError(f"{path}: not a readable ledger of alerts ({type(error).__name__}: {error})") from error


def write(ledger: Ledger, path: Path) -> None:
    """Write the ledger to `path` atomically; sorted, so that its differences are readable."""
    text = json_text({"version": _VERSION, "entries": dict(sorted(ledger.entries.items()))}, indent=1)
    try:
        write_atomically(path, text.encode() + b"\n")
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error


# Messages: with time limits and retries; errors never contain a secret.
#
# Addresses and tokens are secrets, so they come only from the environment:
#
#     PRISM_BENCH_WEBHOOK         address that is sent the plain JSON form
#     PRISM_BENCH_WEBHOOK_TOKEN   sent to it as `Authorization: Bearer ...`, where set
#     PRISM_BENCH_SLACK_WEBHOOK   address that is sent Slack's form

_AGAIN = (408, 425, 429)  # and every 5xx: the receiver's trouble, not the message's


@dataclass(frozen=True)
class Destination:
    """Destination of messages of a `form`; neither its address nor its token is ever printed."""

    form: str
    url: str = field(repr=False)
    token: str | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        """The address without its secret part: `https://hooks.example.org`."""
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
    """Return the destinations that the environment names."""
    named: list[Destination] = []
    if url := environment.get("PRISM_BENCH_WEBHOOK"):
        named.append(Destination("json", url, environment.get("PRISM_BENCH_WEBHOOK_TOKEN") or None))
    if url := environment.get("PRISM_BENCH_SLACK_WEBHOOK"):
        named.append(Destination("slack", url))
    return named


def post(
    destination: Destination,
    body: dict,
    patience: RetryPolicy | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> str | None:
    """Send `body`; return None if the receiver took it, else the reason. Never raises."""
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
            asked = (error.headers.get("Retry-After") or "").strip()
        seconds = float(asked) if asked.isdigit() else None
        return f"HTTP {error.code}", error.code in _AGAIN or error.code >= 500, seconds
    except OSError as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, TimeoutError):
            return f"no answer within {timeout:g} s", True, None
        # The system's message for an error of the network holds no secret.
        return getattr(reason, "strerror", None) or type(reason).__name__, True, None
    except Exception as error:  # http.client's own errors quote the address or the token: only their kind is reported
        return type(error).__name__, False, None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST becomes a GET, and would take the token along to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


# Delivery of new alerts to every destination.


@dataclass(frozen=True)
class Outcome:
    """Outcome of a message: alerts `sent`, `known` ones left out, or the `reason` of a failure."""

    place: str
    sent: int = 0
    known: int = 0
    reason: str | None = None

    def __str__(self) -> str:
        if self.reason:
            return f"alerts: {self.place}: {self.reason}"
        return f"alerts: {self.place}: {self.sent} sent, {self.known} known before"


class AlertDelivery:
    """Delivery to the webhooks that the environment names, of each alert once."""

    def __init__(self) -> None:
        self._to = destinations(os.environ)

    @property
    def has_webhook(self) -> bool:
        """Whether the environment names a webhook."""
        return bool(self._to)

    def deliver(self, alerts: Sequence[Alert], occasion: Occasion, path: Path, *, send: bool = True) -> list[Outcome]:
        """Return the outcomes; without `send` only the ledger at `path` is updated."""
        return tell(alerts, occasion, path, self._to if send else ())


def tell(
    alerts: Sequence[Alert],
    occasion: Occasion,
    path: Path,
    to: Sequence[Destination],
    send: Callable[[Destination, dict], str | None] = post,
) -> list[Outcome]:
    """Send each destination its new alerts, by the ledger at `path`; undelivered alerts are sent again next time.

    Never fails: failures are in the outcomes. A ledger that cannot be read is renamed to `<name>.unreadable` and
    everything is sent: twice is better than never.
    """
    ledger, outcomes = _opened(path)
    before, ledger = ledger, ledger.settled(alerts, occasion.source, occasion.states)
    for destination in to:
        news = ledger.news(alerts, destination.form)
        known = len({alert.fingerprint for alert in alerts}) - len(news)
        reason = send(destination, FORMS[destination.form](occasion.heading, news)) if news else None
        if reason is None:
            ledger = ledger.with_sent(news, destination.form, datetime.now(UTC).isoformat(timespec="seconds"))
        failure = f"{len(news)} not delivered: {reason}" if reason else None
        outcomes.append(Outcome(destination.place, 0 if reason else len(news), known, failure))
    if ledger != before:
        try:
            write(ledger, path)
        except ResultsError as error:
            outcomes.append(Outcome(str(path), reason=f"{error}; the same alerts will be sent again"))
    return outcomes


def _opened(path: Path) -> tuple[Ledger, list[Outcome]]:
    try:
        return read(path), []
    except ResultsError as error:
        try:
            path.replace(path.with_name(f"{path.name}.unreadable"))
        except OSError:
            return Ledger(), [Outcome(str(path), reason=str(error))]
        return Ledger(), [Outcome(str(path), reason=f"{error}; put aside, everything is sent again")]
