"""Files from anywhere cost little: sizes, bombs and nesting are limited, and what is refused is named."""

import gzip
import subprocess
import sys
import zlib

import pytest

from prism_bench.errors import ResultsError
from prism_bench.io.documents import content_of, json_of, text_of

MEMORY = 300_000_000  # bytes that a bomb may cost at most, Python and its libraries included


def test_plain_and_compressed_files_are_read(tmp_path):
    plain, packed = tmp_path / "plain.json", tmp_path / "packed.json.gz"
    plain.write_text('{"a": [1]}')
    packed.write_bytes(gzip.compress(b'{"a": [1]}'))
    assert {"a": [1]} == json_of(plain, "a readable note") == json_of(packed, "a readable note")
    assert '{"a": [1]}' == text_of(packed, "a readable note")


def test_a_missing_file_is_left_to_the_caller(tmp_path):
    with pytest.raises(FileNotFoundError):
        content_of(tmp_path / "none", "a readable note")


PACKED = gzip.compress(b'{"a": "' + b"b" * 5000 + b'"}')
DAMAGED = {
    "cut": PACKED[:-9], "only a header": PACKED[:10], "two members": PACKED + PACKED,
    "another size": PACKED[:-4] + b"\1\0\0\0",
    "another checksum": PACKED[:-8] + bytes(4) + PACKED[-4:], "something after it": PACKED + b"x" * 20,
    "not JSON": b"\x00\x01", "NaN": b"[NaN]", "no text": b"\xff\xfe\x80", "nested": b"[" * 100_000 + b"]" * 100_000,
    "a number beyond all": b"[1e999]", "nothing": b"",
}  # fmt: skip


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_is_named(data, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(ResultsError, match="file: not a readable note"):
        json_of(path, "a readable note")


def test_a_folder_is_named(tmp_path):
    with pytest.raises(ResultsError, match="is a folder, not a readable note: name a file"):
        content_of(tmp_path, "a readable note")


def test_the_limit_of_size_is_said_and_can_be_set(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b'"' + b"x" * 2_000_000 + b'"')
    monkeypatch.setenv("PRISM_BENCH_LARGEST_JSON", "1")
    with pytest.raises(ResultsError, match="2 MB of text or more; the limit is 1 MB .PRISM_BENCH_LARGEST_JSON"):
        content_of(path, "a readable note")
    monkeypatch.setenv("PRISM_BENCH_LARGEST_JSON", "3")
    assert 2_000_002 == len(content_of(path, "a readable note"))


def bomb(inside: bytes, repeats: int, before: bytes = b"", after: bytes = b"") -> bytes:
    """A gzip file of very many times the same."""
    packing, parts = zlib.compressobj(9, wbits=31), []
    parts.append(packing.compress(before))
    block = inside * 10_000
    parts += [packing.compress(block) for _ in range(repeats // 10_000)]
    return b"".join([*parts, packing.compress(after), packing.flush()])


RECORD = b'{"schema": 1, "created": "2026-01-01T00:00:00", "backend": "b", "machine": {"id": "m"}, "software": {}, '
RECORD += b'"protocol": {}, "cases": [{"name": "k", "kernel": "k", "family": "f", "label": "S0", "workload": {}, '
RECORD += b'"bytes": 0, "status": "ok", "measurements": [{"metric": "cold_time", "subject": "kernel", "processes": '
BOMBS = {
    "spaces": (b" ", 1_000_000_000, b"", b"[]"),
    "empty lists": (b"[],", 100_000_000, b"[", b"[]]"),
    "counts": (b"1,", 30_000_000, RECORD + b'[{"unit": 1, "counts": [', b"1]}]}]}]}"),
    "large counts": (b"123456,", 8_000_000, RECORD + b'[{"unit": 1, "counts": [', b"1]}]}]}]}"),
    "processes": (b'{"unit":1,"counts":[]},', 4_000_000, RECORD + b"[", b'{"unit":1,"counts":[]}]}]}]}'),
    "clocks": (b"[],", 30_000_000, RECORD + b'[], "clocks": [', b"[]]}]}]}"),
    "just below the limit": (b"[],", 400_000, RECORD + b'[], "clocks": [', b"[]]}]}]}"),
    "notes": (b'"",', 30_000_000, RECORD + b'[], "notes": [', b'""]}]}]}'),
    "many members of a table": (b'"a":1,', 30_000_000, b'{"schema":1,"cases":[],"machine":{', b'"b":1}}'),
}
_READER = """
import sys, time
from pathlib import Path
from prism_bench.record import store
from prism_bench.errors import ResultsError
before = time.process_time()
try:
    store.read(sys.argv[1])
    print("read", end=" ")
except ResultsError as error:
    print("refused", end=" ")
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(time.process_time() - before, int(peak.split()[1]) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_costs_little(name, tmp_path):
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(bomb(*BOMBS[name]))
    assert path.stat().st_size < 3_000_000
    found = subprocess.run([sys.executable, "-c", _READER, str(path)], capture_output=True, text=True, check=True)
    outcome, seconds, memory = found.stdout.split()
    print(name, path.stat().st_size, outcome, seconds, memory)
    assert int(memory) < MEMORY
    assert outcome == ("read" if name == "just below the limit" else "refused")
