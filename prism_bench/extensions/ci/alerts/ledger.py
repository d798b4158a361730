"""Alerts that were sent before: one small JSON file, by fingerprint and destination."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from prism_bench.errors import ResultsError
from prism_bench.io.documents import json_of, json_text
from prism_bench.io.files import write_atomically
from prism_bench.record.alert import Alert

# A current alert is sent again when it is worse by more than this than when it was sent last.
WORSE = 1.10
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
        return alert.severity is not None and before is not None and alert.severity > before * WORSE

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
    """Return the ledger at `path`; an empty one where there is none, a ResultsError where it cannot be read."""
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
