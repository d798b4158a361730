"""Deliver what is new to every destination, and remember it."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from prism_bench.errors import ResultsError
from prism_bench.extensions.ci.alerts import ledger as ledgers
from prism_bench.extensions.ci.alerts.forms import FORMS
from prism_bench.extensions.ci.alerts.webhook import Destination, destinations, post
from prism_bench.record.alert import Alert, Occasion


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

    def deliver(
        self, alerts: Sequence[Alert], occasion: Occasion, path: Path, *, send: bool = True
    ) -> list[Outcome]:
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


def _opened(path: Path) -> tuple[ledgers.Ledger, list[Outcome]]:
    try:
        return ledgers.read(path), []
    except ResultsError as error:
        try:
            path.replace(path.with_name(f"{path.name}.unreadable"))
        except OSError:
            return ledgers.Ledger(), [Outcome(str(path), reason=str(error))]
        return ledgers.Ledger(), [Outcome(str(path), reason=f"{error}; put aside, everything is sent again")]


def _kept(ledger: ledgers.Ledger, path: Path) -> list[Outcome]:
    try:
        ledgers.write(ledger, path)
    except ResultsError as error:
        return [Outcome(str(path), reason=f"{error}; the same alerts will be sent again")]
    return []
