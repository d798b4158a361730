"""Files that we keep beside records: whatever is damaged in one is named, and names in it lead to no other folder."""

import gzip
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from lab.record_mutations import mutations

from prism_bench.analysis.compare import noise
from prism_bench.analysis.gate.budgets import read_baseline
from prism_bench.errors import ResultsError
from prism_bench.extension import installed
from prism_bench.extensions.ci import alerts
from prism_bench.workflows.tuning import choice, crossover

REPORTS = Path(__file__).resolve().parent.parent / "reports"
CEILING = 12_000_000  # bytes of all committed files below reports/
ALERTS = {
    "version": 1,
    "entries": {"f": {"source": "check", "kind": "speed", "subject": "k", "message": "slow",
                      "told": {"slack": {"when": "2026-01-01", "state": "bad", "severity": "error"}}}},
}  # fmt: skip


def test_committed_reports_stay_small():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPORTS, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = [REPORTS / name for name in filter(None, listed.stdout.split("\0"))]
    assert paths
    assert CEILING >= sum(path.stat().st_size for path in paths if path.is_file())


def plain_of(pattern: str) -> dict:
    """The JSON of the first committed file of that name, its longest lists cut."""
    data = sorted(REPORTS.glob(pattern))[0].read_bytes()
    plain = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    if "cases" in plain:
        plain["cases"] = dict(list(plain["cases"].items())[:5])
    return {key: value[:5] if isinstance(value, list) and key != "events" else value for key, value in plain.items()}


FILES = {
    "noise": (noise.read_noise, "noise/*.json"), "choices": (choice.read_kept, "tuning/nvidia-h200.json"),
    "policies": (crossover.read_measured, "tuning/*-policies.json"),
    "alerts": (alerts.read, None),
}  # fmt: skip
OF_EXTENSIONS = {
    "persistent": ("latencies", "records:read_latencies", "persistent/*/*.json"),
    "memory": ("trace", "trace:read", "memory/traces/pipelines.json.gz"),
}
for extension in installed():
    if extension.name in OF_EXTENSIONS:
        name, reader, pattern = OF_EXTENSIONS[extension.name]
        FILES[name] = extension.function(reader), pattern


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_read_or_named(name, tmp_path):
    read, pattern = FILES[name]
    sound = plain_of(pattern) if pattern else ALERTS
    path, refused = tmp_path / "file.json", 0
    path.write_text(json.dumps(sound))
    assert read(path)
    for mutation in mutations(sound, 7, 250):
        path.write_bytes(mutation.data)
        try:
            hash(str(read(path)))
        except ResultsError as error:
            refused += 1
            assert str(path) in str(error), mutation.place
    assert 50 < refused < 250


@pytest.mark.parametrize(
    "text", ["", "a = [", "device = 3", "\x00", "[seconds.cold_time]\n'k' = -1", "a = " + "[" * 5000]
)
def test_a_damaged_baseline_is_named(text, tmp_path):
    (tmp_path / "b.toml").write_text(text)
    with pytest.raises(ResultsError, match="b.toml"):
        read_baseline(tmp_path / "b.toml")


HOSTILE = ["../../x", "/etc/x", "..", "", "a/b", "a\0b", "a\nb", "x" * 300]


@pytest.mark.parametrize("machine", HOSTILE, ids=repr)
def test_a_machines_name_is_one_part_of_a_path(machine, tmp_path):
    for path_for in (noise.path_for, choice.path_for, crossover.path_for):
        path = path_for(machine, tmp_path)
        assert tmp_path == path.parent
        path.write_bytes(b"")


@pytest.mark.parametrize("machine", HOSTILE, ids=repr)
def test_a_record_of_any_machine_is_found_again_by_it(machine, tmp_path):
    from prism_bench.record import store
    from tests.report.synthetic import gpu_record

    record = gpu_record()
    path = store.RecordPlace(tmp_path).save(replace(record, machine={**record.machine, "id": machine}))
    assert path.parent.parent == tmp_path
    if machine:
        assert [path] == [found for found, _ in store.readable(tmp_path, machine)]


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_no_name_of_a_record_leads_the_site_or_asv_elsewhere(name, tmp_path):
    from prism_bench.report.asv.results import write
    from prism_bench.report.site.page import file_name
    from tests.report.synthetic import gpu_record

    assert "/" not in file_name(name) and file_name(name) not in ("", ".", "..")
    record = gpu_record(backend=name, commit=f"{name}x")
    path = write(replace(record, machine={**record.machine, "id": name}), tmp_path / "asv")
    assert path.parent.parent == tmp_path / "asv"
    assert ["asv"] == [one.name for one in tmp_path.iterdir()]
