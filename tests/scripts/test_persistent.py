"""`scripts/persistent` on the emulator: served, verified, timed, and found by the ledger."""

import subprocess
import sys
import time
from pathlib import Path

from prism_bench.extensions.persistent import FORMS
from prism_bench.extensions.persistent.records import EMPTY, newest, read_latencies

HOUSE = Path(__file__).resolve().parents[2]


def script(*words):
    command = [sys.executable, HOUSE / "scripts" / "persistent", "--backend", "emulator", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=HOUSE)


def test_a_chain_and_the_empty_item_are_timed_in_every_form(tmp_path):
    done = script("transfer_entropy", "--rounds", "1", "--answers", "2", "--output", tmp_path)
    assert 0 == done.returncode, done.stderr
    found = read_latencies(newest(tmp_path))
    (chain,) = {row.case for row in found.rows} - {EMPTY}
    assert chain.startswith("transfer_entropy_chain:")
    assert {(case, form) for case in (EMPTY, chain) for form in FORMS} == {(row.case, row.form) for row in found.rows}
    assert all(found.row(chain, form).error < 1e-4 for form in FORMS)
    assert f"record: {newest(tmp_path)}" in done.stdout


def test_an_unknown_chain_ends_with_what_is_near():
    done = script("transfer_entrpy")
    assert 2 == done.returncode
    assert "scripts/persistent: unknown chain 'transfer_entrpy'; did you mean transfer_entropy" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_chain_begins_when_the_time_is_over(tmp_path):
    done = script("transfer_entropy", "--limit-seconds", "0", "--output", tmp_path)
    assert 3 == done.returncode, done.stderr
    assert "record: nothing was measured" in done.stdout
    assert newest(tmp_path) is None


def test_a_polite_end_keeps_what_was_measured(tmp_path):
    words = ["transfer_entropy", "--rounds", "1000", "--answers", "2", "--output", tmp_path]
    command = [sys.executable, HOUSE / "scripts" / "persistent", "--backend", "emulator", *words]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=HOUSE)
    with running:
        until(lambda: newest(tmp_path) or running.poll() is not None)
        running.terminate()
        said, _ = running.communicate(timeout=60)
    assert 2 == running.returncode, said
    assert f"record: {newest(tmp_path)}" in said
    assert FORMS[0] in {row.form for row in read_latencies(newest(tmp_path)).rows}


def until(true, seconds=60.0):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
