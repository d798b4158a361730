"""Alerts by webhook: what is new is sent once, tried again, and remembered."""

import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prism_bench.errors import ResultsError
from prism_bench.io.documents import json_of, json_text
from prism_bench.io.files import write_atomically
from prism_bench.record.alert import Alert, Occasion
from prism_bench.units import count_text

# The bodies that a webhook is sent: a plain JSON document, and the form that Slack shows.

VERSION = 1
# Slack refuses a message of more than 50 blocks, or a block of more than 3,000 characters.
_MOST_BLOCKS, _LONGEST_BLOCK = 48, 3000


def plain(heading: str, alerts: Sequence[Alert]) -> dict:
    """`version`, `heading`, and every field of every alert with its `fingerprint`."""
    return {
        "version": VERSION,
        "heading": heading,
        "alerts": [{"fingerprint": alert.fingerprint, **vars(alert)} for alert in alerts],
    }


def slack(heading: str, alerts: Sequence[Alert]) -> dict:
    """One block for the heading and one for each alert; what does not fit is counted in the last."""
    shown = alerts[:_MOST_BLOCKS]
    left = len(alerts) - len(shown)
    texts = [f"*{_escaped(heading)}*", *map(_slack_text, shown), *([f"and {left} more"] if left else [])]
    return {"text": _escaped(heading), "blocks": [_block(text) for text in texts]}


def _slack_text(alert: Alert) -> str:
    subject = f"`{_escaped(alert.subject)}` " if alert.subject else ""
    said = f"*{_escaped(alert.kind)}* {subject}{_escaped(alert.message)}"
    command = f"\n```{_escaped(alert.reproduce)}```" if alert.reproduce else ""
    command = command if len(command) < _LONGEST_BLOCK / 2 else ""
    return said[: _LONGEST_BLOCK - len(command)] + command


def _block(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _escaped(text: str) -> str:
    """Slack's three: a name with `<!channel>` in it must not wake a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


FORMS = {"json": plain, "slack": slack}


# Alerts that were sent before: one small JSON file, by fingerprint and destination.

# A current alert is sent again when it is worse by more than this than when it was sent last.
_WORSE = 1.10
_VERSION = 1


@dataclass(frozen=True)
class Ledger:
    """Ledger: `entries` maps a fingerprint to {source, subject, `told`: {form: {when, state, severity}}}."""

    entries: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def news(self, alerts: Iterable[Alert], form: str) -> list[Alert]:
        """Return the alerts never sent there, sent in another state, or clearly worse now; each once."""
        alone = {alert.fingerprint: alert for alert in alerts}
        return [alert for alert in alone.values() if self._is_news(alert, form)]

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
        """Return the ledger without what a change corrected: absent now, checked, in another state than when sent.

        What is absent in the state it was sent in remains: it flickers, and its return is no news.
        """
        standing = {alert.fingerprint for alert in alerts}
        kept = {
            fingerprint: entry
            for fingerprint, entry in self.entries.items()
            if fingerprint in standing or entry["source"] != source or not _changed(entry, states)
        }
        return replace(self, entries=kept)


def _changed(entry: Mapping[str, Any], states: Mapping[str | None, str]) -> bool:
    state = states.get(entry["subject"])
    return state is not None and all(sent["state"] != state for sent in entry["told"].values())


def merged(base: Ledger, ours: Ledger, theirs: Ledger) -> Ledger:
    """Return the entries of both; what one of them removed since `base` and the other left alone is removed.

    Of an alert that both sent to one destination the later time counts.
    """
    entries: dict[str, dict[str, Any]] = {}
    for fingerprint in {**theirs.entries, **ours.entries}:
        here, there = ours.entries.get(fingerprint), theirs.entries.get(fingerprint)
        before = base.entries.get(fingerprint)
        if here is not None and there is not None:
            entries[fingerprint] = _later(here, there)
        elif (alone := here or there) is not None and alone != before:
            entries[fingerprint] = alone
    return Ledger(entries)


def _later(here: dict[str, Any], there: dict[str, Any]) -> dict[str, Any]:
    first, second = sorted(
        (here, there), key=lambda entry: max((one["when"] for one in entry["told"].values()), default="")
    )
    sent = dict(first["told"])
    for form, one in second["told"].items():
        if form not in sent or one["when"] >= sent[form]["when"]:
            sent[form] = one
    return {**second, "told": sent}


def read(path: Path) -> Ledger:
    """Return the ledger at `path`; an empty one where there is none, ResultsError if it cannot be read."""
    try:
        plain: Any = json_of(path, "a readable ledger of alerts")
        if plain["version"] != _VERSION:
            raise ResultsError(f"{path}: a ledger of version {plain['version']}; this program knows {_VERSION}")
        return Ledger({fingerprint: _entry(entry) for fingerprint, entry in plain["entries"].items()})
    except FileNotFoundError:
        return Ledger()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ResultsError(f"{path}: not a readable ledger of alerts ({type(error).__name__}: {error})") from error


def _entry(plain: Mapping[str, Any]) -> dict[str, Any]:
    sent = {form: {key: one[key] for key in ("when", "state", "severity")} for form, one in plain["told"].items()}
    return {**{key: plain[key] for key in ("source", "kind", "subject", "message")}, "told": sent}


def write(ledger: Ledger, path: Path) -> None:
    """Put the ledger at `path`, whole or not at all; sorted, so that a change of it reads well."""
    text = json_text({"version": _VERSION, "entries": dict(sorted(ledger.entries.items()))}, indent=1)
    try:
        write_atomically(path, text.encode() + b"\n")
    except OSError as error:
        raise ResultsError(f"cannot write {path}: {error.strerror}") from error


# One message to one address: in time, tried again, and never with its secret in an error.
#
# Addresses and tokens are secrets, so they come from the environment and from nowhere else:
#
#     PRISM_BENCH_WEBHOOK         address that is sent the plain JSON form
#     PRISM_BENCH_WEBHOOK_TOKEN   sent to it as `Authorization: Bearer ...`, where set
#     PRISM_BENCH_SLACK_WEBHOOK   address that is sent Slack's form

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
    destination: Destination,
    body: dict,
    patience: RetryPolicy | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> str | None:
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


# Deliver what is new to every destination, and remember it.


@dataclass(frozen=True)
class Outcome:
    """What became of a message: alerts `sent`, `known` ones left out, or the `reason` why not."""

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
        """Return what became of the alerts; without `send` only the ledger at `path` learns which are over."""
        return tell(alerts, occasion, path, self._to if send else ())


def tell(
    alerts: Sequence[Alert],
    occasion: Occasion,
    path: Path,
    to: Sequence[Destination],
    send: Callable[[Destination, dict], str | None] = post,
) -> list[Outcome]:
    """Send each destination what is new to it, by the ledger at `path`; what did not arrive is sent again next time.

    Never fails: what went wrong is in the outcomes. A ledger that cannot be read is put aside as `<name>.unreadable`
    and everything is sent: twice is better than never.
    """
    ledger, outcomes = _opened(path)
    before, ledger = ledger, ledger.settled(alerts, occasion.source, occasion.states)
    for destination in to:
        news = ledger.news(alerts, destination.form)
        known = len({alert.fingerprint for alert in alerts}) - len(news)
        reason = send(destination, FORMS[destination.form](occasion.heading, news)) if news else None
        if reason is None:
            ledger = ledger.with_sent(news, destination.form, datetime.now(UTC).isoformat(timespec="seconds"))
        outcomes.append(_outcome(destination, len(news), known, reason))
    return outcomes + (_kept(ledger, path) if ledger != before else [])


def _outcome(destination: Destination, news: int, known: int, reason: str | None) -> Outcome:
    if reason:
        return Outcome(destination.place, 0, known, f"{news} not delivered: {reason}")
    return Outcome(destination.place, news, known)


def _opened(path: Path) -> tuple[Ledger, list[Outcome]]:
    try:
        return read(path), []
    except ResultsError as error:
        try:
            path.replace(path.with_name(f"{path.name}.unreadable"))
        except OSError:
            return Ledger(), [Outcome(str(path), reason=str(error))]
        return Ledger(), [Outcome(str(path), reason=f"{error}; put aside, everything is sent again")]


def _kept(ledger: Ledger, path: Path) -> list[Outcome]:
    try:
        write(ledger, path)
    except ResultsError as error:
        return [Outcome(str(path), reason=f"{error}; the same alerts will be sent again")]
    return []
