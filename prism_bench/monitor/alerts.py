"""Alerts: rules with a limit, a duration and a value that ends the alert; the current alerts of a set of rules."""

import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from prism_bench.errors import UsageError, unknown

_SEVERITIES = ("warning", "critical")


@dataclass(frozen=True)
class AlertRule:
    """Rule of an alert: raised when `metric` has been above `above` for `seconds`, over when it is below `clear`.

    Values are shares, degrees Celsius and counts. `wording` is the message; its `{value}` is `scale` times the value.
    """

    name: str
    metric: str
    above: float
    clear: float
    wording: str
    severity: str = "warning"
    seconds: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True)
class ActiveAlert:
    """A current alert `since` a time (seconds of the epoch), with the worst `value` so far.

    `device` is a UUID, or None for an alert that concerns no single device.
    """

    rule: AlertRule
    device: str | None
    since: float
    value: float

    @property
    def message(self) -> str:
        """Return the rule's wording with the value."""
        return self.rule.wording.format(value=f"{self.value * self.rule.scale:.4g}")

    def plain(self) -> dict:
        """Return the alert as JSON shows it."""
        rule = self.rule
        return {
            "severity": rule.severity,
            "message": self.message,
            "metric": rule.metric,
            "value": self.value,
            "rule": rule.name,
            "device": self.device,
            "since": self.since,
        }


RULES = {
    rule.name: rule
    for rule in (
        AlertRule("utilization", "utilization", 0.90, 0.80, "utilisation at {value} %", seconds=30.0, scale=100),
        AlertRule("memory", "memory_share", 0.85, 0.80, "{value} % of the memory in use", scale=100),
        AlertRule(
            "memory_critical", "memory_share", 0.95, 0.90, "{value} % of the memory in use", "critical", scale=100
        ),
        AlertRule("temperature", "temperature", 83.0, 78.0, "the chip is at {value} C", seconds=5.0),
        AlertRule("failures", "failures", 10, 5, "{value} of the last 100 executions failed", "critical"),
        AlertRule(
            "throttling", "throttled", 0, 0, "the clock is held down by heat or the board's protection", seconds=2.0
        ),
        AlertRule("xid", "new_xids", 0, 0, "the driver reported {value} Xid errors", "critical"),
        AlertRule("ecc", "new_uncorrected", 0, 0, "{value} uncorrected memory errors", "critical"),
        AlertRule("lost", "lost", 0, 0, "the device does not answer any more", "critical"),
    )
}


@dataclass
class _State:
    """State of one rule on one device: since when the limit is exceeded, and the current alert."""

    passed_at: float | None = None
    active: ActiveAlert | None = None


class AlertWatch:
    """Current alerts of a set of rules, updated with values."""

    def __init__(self, rules: Mapping[str, AlertRule] = RULES, clock: Callable[[], float] = time.time) -> None:
        self._rules, self._clock = rules, clock
        self._states: dict[tuple[str, str | None], _State] = {}
        self._raised: list[float] = []

    def update(self, device: str | None, values: Mapping[str, float | None]) -> tuple[list, list]:
        """Return the alerts that `values` raise and those that they end; an unknown value (None) changes nothing."""
        raised, over = [], []
        for rule in self._rules.values():
            value = values.get(rule.metric)
            if value is None:
                continue
            state = self._states.setdefault((rule.name, device), _State())
            before, state.active = state.active, self._next(state, rule, device, value)
            if state.active and not before:
                raised.append(state.active)
                self._raised.append(self._clock())
            if before and not state.active:
                over.append(before)
        return raised, over

    @property
    def active(self) -> list[ActiveAlert]:
        """Return the current alerts, the gravest first, then the oldest."""
        alerts = [state.active for state in self._states.values() if state.active]
        return sorted(alerts, key=lambda alert: (-_SEVERITIES.index(alert.rule.severity), alert.since))

    def raised_today(self) -> int:
        """Return the number of alerts raised in the last 24 hours."""
        self._raised = [at for at in self._raised if at > self._clock() - 86400]
        return len(self._raised)

    def _next(self, state: _State, rule: AlertRule, device: str | None, value: float) -> ActiveAlert | None:
        now = self._clock()
        if state.active:
            if value < rule.clear or value <= rule.above == rule.clear:
                state.passed_at = None
                return None
            return replace(state.active, value=max(value, state.active.value))
        if value <= rule.above:
            state.passed_at = None
            return None
        if state.passed_at is None:
            state.passed_at = now
        if now - state.passed_at < rule.seconds:
            return None
        return ActiveAlert(rule, device, state.passed_at, value)


def configured(path: Path | None) -> dict[str, AlertRule]:
    """Return the rules, changed by a TOML file with a table per rule: `[temperature]`, `above = 75`, `enabled = false`.

    Raise UsageError for an unreadable file, an unknown rule or setting, or an invalid value.
    """
    if path is None:
        return dict(RULES)
    try:
        tables = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: not a readable TOML file of alert rules ({error})") from None
    rules = dict(RULES)
    for name, table in tables.items():
        if name not in RULES:
            raise unknown("alert rule", name, RULES)
        if not isinstance(table, dict):
            raise UsageError(f"{path}: '{name}' is a table, [{name}], and not {table!r}")
        rules[name] = _changed(RULES[name], table, path)
        if not table.get("enabled", True):
            del rules[name]
    return rules


def _changed(rule: AlertRule, table: Mapping[str, Any], path: Path) -> AlertRule:
    kinds = {field.name: type(getattr(rule, field.name)) for field in fields(rule)} | {"enabled": bool}
    for key, value in table.items():
        if key in ("name", "metric") or key not in kinds:
            raise unknown(f"setting of alert rule {rule.name}", key, [k for k in kinds if k not in ("name", "metric")])
        number = kinds[key] in (int, float)
        fits = isinstance(value, int | float) and not isinstance(value, bool) if number else type(value) is kinds[key]
        if not fits:
            raise UsageError(f"{path}: [{rule.name}] {key} is {value!r}; it is a {'number' if number else 'word'}")
    changed = replace(rule, **{key: value for key, value in table.items() if key != "enabled"})
    if changed.severity not in _SEVERITIES:
        raise unknown(f"severity of alert rule {rule.name}", changed.severity, _SEVERITIES)
    if changed.clear > changed.above:
        raise UsageError(f"{path}: [{rule.name}] clear is {changed.clear:g}, above the limit {changed.above:g}")
    return changed
