"""Committed run records still show the numbers that they showed before the packages were moved and retyped.

`kept_views.json` holds a digest of every part of `show --json` for each record. Texts of findings may be reworded, so
only what a finding is about is compared. Nine tenths of a large record are edges, which have no times and no derived
numbers: every tenth of them is shown. After a deliberate change of a derived value, run this file as a program.
"""

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prism_bench.analysis import peers
from prism_bench.analysis.run_analysis import read
from prism_bench.io.documents import json_text
from prism_bench.record import store
from prism_bench.record.run_record import RunRecord
from prism_bench.report.plain import view
from tests.built_in import CATALOGUE

ROOT = Path(__file__).resolve().parents[2]
KEPT = Path(__file__).with_name("kept_views.json")
FOLDERS = ("memory", "pipelines", "rounds", "runs")
# Findings and budgets that repeat the figures of a design document are checked with the extension that shows them.
# So are those on the device's baseline, which changes.
CLAIMED_KINDS = {"high variance", "outlier", "degraded", "slow", "host"}
CLAIMED_BUDGETS = "performance profiling guide"
# What `show` prints since the digests were taken: they compare the numbers from before.
NEW_PARTS, NEW_DERIVED = {"headline", "timed", "window_seconds"}, {"peers"}
# What the fastest process of an unstable peer may change.
OF_PEERS = {"best_peer", "best_peer_time", "peer_ratio", "peers"}


def records() -> list[str]:
    """Return the committed run records that `show` prints, by path below the repository."""
    folders = [ROOT / "reports" / name for name in FOLDERS]
    found = [path for folder in folders for path in folder.rglob("*.json.gz") if path.name[:8].isdigit()]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def parts(shown: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a shown record by part; those of the cases by field, then by case."""
    found = {name: value for name, value in shown.items() if name not in {"cases", "findings", *NEW_PARTS}}
    for case in shown["cases"]:
        derived = case["derived"]
        own = [one for one in derived["budgets"] if not one["from"].startswith(CLAIMED_BUDGETS)]
        left_out = {"guide", "budgets", *NEW_DERIVED}
        rest = {f"derived {name}": value for name, value in derived.items() if name not in left_out}
        for name, value in {**case, **rest, "derived budgets": own}.items():
            if name != "derived":
                found.setdefault(f"case {name}", []).append([case["name"], value])
    about = ("gravity", "kind", "case", "metric", "ratio")
    kept = [one for one in shown["findings"] if one["kind"] not in CLAIMED_KINDS]
    found["findings"] = sorted(json_text({name: one[name] for name in about}) for one in kept)
    return found


def rounded(value: Any) -> Any:
    """Return a JSON value whose numbers have ten digits: another order of operations changes the last of sixteen."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def few_edges(path: str) -> RunRecord:
    """Return the record with all of its workloads and every tenth of the edges."""
    record = store.read(ROOT / path)
    edges = [case.name for case in record.cases if case.is_edge]
    kept = set(edges[::10])
    return replace(record, cases=tuple(case for case in record.cases if not case.is_edge or case.name in kept))


def digests(path: str) -> dict[str, str]:
    """Return a digest of each part of what `show --json` prints of the record."""
    shown = json.loads(json_text(view(read(few_edges(path), CATALOGUE))))
    texts = {name: json.dumps(rounded(value), sort_keys=True) for name, value in parts(shown).items()}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in sorted(texts.items())}


def test_every_committed_record_is_covered():
    assert len(records()) >= 9
    assert set(records()) == set(json.loads(KEPT.read_text()))


@pytest.mark.parametrize("path", records())
def test_it_shows_the_same_numbers(path, monkeypatch):
    """The digests are older than the rule that the fastest process of an unstable peer counts: it is off here."""
    monkeypatch.setattr(peers, "UNSTABLE", math.inf)
    kept = json.loads(KEPT.read_text())[path]
    assert kept == digests(path)


def test_the_fastest_process_counts_for_unstable_peers_and_changes_nothing_else(monkeypatch):
    record = few_edges("reports/runs/nvidia-h200/20261123T070904Z-f63d9242.json.gz")
    after = view(read(record, CATALOGUE))
    monkeypatch.setattr(peers, "UNSTABLE", math.inf)
    before = view(read(record, CATALOGUE))
    changed = 0
    for old, new in zip(before["cases"], after["cases"], strict=True):
        names = {name for name, value in new["derived"].items() if value != old["derived"][name]}
        assert names <= {*OF_PEERS, "budgets"}, new["name"]
        assert not names or any(peer["unstable"] for peer in new["derived"]["peers"]), new["name"]
        assert not names or (new["derived"]["best_peer_time"] or 0) <= (old["derived"]["best_peer_time"] or 0)
        changed += bool(names)
    assert changed > 20


if __name__ == "__main__":
    peers.UNSTABLE = math.inf
    KEPT.write_text(json.dumps({path: digests(path) for path in records()}, indent=1) + "\n")
