"""Every committed record reads with the numbers that it had before files were held to a schema."""

import hashlib
import json
from pathlib import Path

import pytest

from prism_bench.record import store
from prism_bench.record.run_record import RunRecord, encode

REPORTS = Path(__file__).resolve().parents[3] / "reports"
# Of all that the reader gave before there was a schema (2026-11-22): `digest_of` at the commit before it.
DIGESTS = {
    "memory/async/nvidia-h200/20261122T061900Z-a0baace6.json.gz": "508cbdc39550322e",
    "memory/cupy/nvidia-h200/20261122T061900Z-a0baace6.json.gz": "728e688e0ddd7803",
    "memory/none/nvidia-h200/20261122T061900Z-a0baace6.json.gz": "52b44af0a8ddbe81",
    "memory/size_class/nvidia-h200/20261122T061900Z-a0baace6.json.gz": "66a596aa0cb2c6d7",
    "pipelines/nvidia-h200/20261122T061809Z-a0baace6.json.gz": "861bd33c61771731",
    "profiles/nvidia-h200/20261122T004120Z-0051c064.json.gz": "e98772f14f36a848",
    "profiles/nvidia-h200/20261122T101333Z-aad8442a.json.gz": "0d36dbc2aa2d5e52",
    "profiles/nvidia-h200/20261122T101414Z-aad8442a.json.gz": "de3c8808baf06906",
    "rounds/nvidia-h200/20261121T222851Z-df039a57.json.gz": "15d8470ceed6ce00",
    "runs/nvidia-h200/20261120T232125Z-fd4cb4b0.json.gz": "58cbfd760e29d64b",
    # Read through the schema on 2026-11-29; they have parts and boards.
    "runs/nvidia-h100-80gb-hbm3/20261123T072436Z-f63d9242.json.gz": "e3be155ad0aaeb0b",
    "runs/nvidia-h200/20261123T070904Z-f63d9242.json.gz": "659a99370fb010d9",
}


def digest_of(record: RunRecord) -> str:
    """A digest of everything that is read: all fields, and the medians, spreads and clocks that follow from samples."""
    medians = [
        [case.name, one.metric, one.subject, one.median, one.spread, one.clock]
        for case in record.cases
        for one in case.measurements
    ]
    text = json.dumps([encode(record), medians], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", DIGESTS)
def test_a_committed_record_reads_as_before(name):
    assert DIGESTS[name] == digest_of(store.read(REPORTS / name))


def test_every_committed_record_can_be_read():
    for path in REPORTS.rglob("*Z-*.json.gz"):
        record = store.read(path)
        assert record.cases
        assert not [one.reason for case in record.cases for one in case.measurements if "none is" in (one.reason or "")]
