"""`prism-bench show` and `report`: a record read again; one that cannot be read is named, never a traceback."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from prism_bench.record import store
from tests.report.synthetic import cpu_record, gpu_record

COMMANDS = ("show", "report")


@pytest.fixture
def record(tmp_path):
    """The path of a record of a GPU."""
    return store.save(gpu_record(), tmp_path / "gpu.json.gz")


def test_a_record_is_shown(shell, record):
    found = shell("show", record)
    assert 0 == found.code
    assert "Needs attention" in found.out
    assert "\x1b" not in found.out


def test_a_record_is_shown_as_json(shell, record):
    plain = shell("show", record, "--json").json
    assert {case.name for case in gpu_record().cases} == {case["name"] for case in plain["cases"]}


def test_a_record_becomes_a_site(shell, record):
    found = shell("report", record, "--output", "site")
    assert 0 == found.code
    assert found.out.endswith("page: site/index.html\n")
    assert Path("site/index.html").read_text().startswith("<!doctype html>")
    assert "vector_add" in Path("site/catalogue.html").read_text()


def test_where_the_site_is_can_be_read_by_programs(shell, record):
    found = shell("report", record, "--output", "site", "--json").json
    assert (str(record), "site/index.html") == (found["record"], found["page"])
    assert found["files"] == len(found["changed"])
    again = shell("report", record, "--output", "site", "--json").json
    assert [] == again["changed"] + again["removed"]


def test_a_site_is_no_single_page(shell, record):
    found = shell("report", record, "--output", "page.html")
    assert (2, "") == (found.code, found.out)
    assert "name a folder" in found.err


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_name_the_newest_record_is_taken(shell, command, tmp_path):
    for kind in (gpu_record(), cpu_record()):
        store.save(kind, store.path_for(kind, tmp_path / "reports" / "runs"))
    newest = store.newest(tmp_path / "reports" / "runs")
    found = shell(command, "--json").json
    told = Path(found["record"]).name if command == "report" else store.path_for(store.read(newest), Path()).name
    assert newest.name == told


@pytest.mark.parametrize("command", COMMANDS)
def test_without_any_record_the_next_step_is_said(shell, toys, command):
    found = shell(command, *toys)
    assert 2 == found.code
    assert "prism-bench: no run record below reports/runs; 'prism-bench run' makes one\n" == found.err


def cut(data):
    return data[: len(data) // 2]


def scrambled(data):
    return data[:100] + b"\x00\xff\x13" * 20 + data[160:]


def newer(data):
    plain = json.loads(gzip.decompress(data))
    return json.dumps({**plain, "schema": 99}).encode()


def with_field(name, value):
    def damage(data):
        return json.dumps({**json.loads(gzip.decompress(data)), name: value}).encode()

    return damage


DAMAGE = {
    "missing": None,
    "empty": lambda data: b"",
    "cut": cut,
    "scrambled": scrambled,
    "cut json": lambda data: cut(gzip.decompress(data)),
    "not utf-8": lambda data: b'{"caf\xe9": 1}',
    "a list": lambda data: b"[]",
    "foreign": lambda data: b'{"benchmarks": []}',
    "newer": newer,
    "no machine": with_field("machine", None),
    "cases of another kind": with_field("cases", [7]),
    "no cases": with_field("cases", None),
    "no protocol": with_field("protocol", []),
    "no software": with_field("software", 7),
    "no time": with_field("created", None),
    "a schema in words": with_field("schema", "one"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", DAMAGE)
def test_a_record_that_cannot_be_read_is_named(shell, toys, record, command, name):
    if DAMAGE[name]:
        record.write_bytes(DAMAGE[name](record.read_bytes()))
    else:
        record.unlink()
    found = shell(command, record, *toys)
    assert 2 == found.code
    assert found.err.startswith(f"prism-bench: {record}: ")
    assert 1 == found.err.count("\n")
    assert "" == found.out


def test_a_folder_is_no_record(shell, tmp_path):
    found = shell("show", tmp_path)
    assert 2 == found.code
    assert f"{tmp_path} is a folder, not a readable run record: name a file" in found.err


def test_a_page_that_cannot_be_written_is_named(shell, record):
    Path("file").write_text("in the way")
    found = shell("report", record, "--output", "file/site")
    assert 2 == found.code
    assert "--output file/site: file is no folder" in found.err
    assert "Traceback" not in found.err


def test_a_run_can_be_shown_and_reported_again(shell, toys):
    assert 0 == shell("run", "--backend", "null", "--processes", "1", *toys, "--filter", "triple").code
    assert "triple" in shell("show", *toys).out
    assert 0 == shell("report", *toys).code
    assert Path("reports/site/index.html").is_file()


def test_a_record_of_kernels_that_are_gone_is_still_shown(shell, toys, tmp_path):
    mine = shutil.copytree(toys[1], tmp_path / "mine")
    shell("run", "--backend", "null", "--processes", "1", "--catalogue", mine, "--filter", "triple")
    (mine / "arith" / "triple.py").unlink()
    (mine / "arith" / "triple.cu").unlink()
    assert "triple" in shell("show", "--catalogue", mine).out


@pytest.mark.parametrize("command", ["show", "check", "compare", "report", "export"])
def test_a_profilers_file_in_place_of_a_record_names_profile(shell, record, command):
    Path("counted.csv").write_text('"ID","Kernel Name","Metric Name"\n"0","scale","x"\n')
    more = {"compare": [record], "export": ["--output", "x.csv"]}.get(command, [])
    found = shell(command, "counted.csv", *more)
    assert (2, True) == (found.code, "this is ncu's CSV: prism-bench profile counted.csv" in found.err), found.err
