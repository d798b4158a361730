"""What `--json` prints: the encoded record, with derived values next to what was measured."""

from collections.abc import Mapping
from typing import Any

from prism_bench.analysis.peer_rows import peer_rows
from prism_bench.analysis.reading import Reading, read
from prism_bench.analysis.summary import DERIVED, number, summary_rows
from prism_bench.analysis.time_spent import time_spent, window_seconds
from prism_bench.catalogue import Catalogue
from prism_bench.record.run_record import RunRecord, encode
from prism_bench.spec.metric import MEASURED, timed_on

_TEXT = ("bound", "best_peer", "invalid")


def view(record: RunRecord, catalogue: Catalogue | None = None, *, must_be_held: bool = True) -> dict[str, Any]:
    """Return the record as plain JSON values; `must_be_held` as in `read`.

    `timed` is whose the times are: `kernel`, or what the backend times in its place, such as `NumPy reference`.
    `headline` has a row for each group of labels and class of peers (`HeadlineRow`), `limits` holds the measured launch
    overhead and ceilings, `findings` what is wrong or worth knowing, `time_spent` the seconds of the run by phase and
    `window_seconds` those within measurement windows of kernels and of peers, if the record keeps them. Every case has
    a `derived` object: medians and spreads of its valid times, rates, shares, ratios, peers and budgets. Unknown values
    are null.
    """
    reading, plain = read(record, catalogue, must_be_held=must_be_held), encode(record)
    for case, result, row in zip(plain["cases"], record.cases, summary_rows(record), strict=True):
        budgets = _budgets(reading, result.name)
        case["derived"] = {**_derived(row), "peers": peer_rows(result), "budgets": budgets}
    limits = {name: dict(getattr(reading.limits, name)) for name in ("floors", "ceilings", "sources")}
    found = [vars(finding) for finding in reading.findings]
    derived = {"headline": reading.against_peers, "limits": limits, "findings": found}
    spent = time_spent(record)
    windows = dict(zip(("kernels", "peers"), window_seconds(record), strict=True))
    return {
        **plain,
        "timed": timed_on(record.backend),
        **derived,
        **({"time_spent": spent, "window_seconds": windows} if spent else {}),
    }


def _derived(row: Mapping[str, Any]) -> dict[str, Any]:
    times = {metric: _time(row, metric) for metric in MEASURED}
    rest = {name: row[name] if name in _TEXT else number(row[name]) for name in DERIVED}
    known = {metric: time for metric, time in times.items() if time}
    return {"times": known, **rest, "throttled": int(row["throttled"])}


def _time(row: Mapping[str, Any], metric: str) -> dict[str, Any] | None:
    median = number(row[metric])
    return None if median is None else {"median": median, "spread": number(row[f"{metric}_spread"])}


def _budgets(reading: Reading, case: str) -> list[dict[str, Any]]:
    return [
        {"from": one.source, "metric": one.budget.metric, "at_most": one.budget.at_most,
         "at_least": one.budget.at_least, "value": one.value, "interval": one.interval, "verdict": one.verdict}
        for one in reading.budgets if one.case == case
    ]  # fmt: skip
