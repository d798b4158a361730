"""`prism-bench compare --fleet`: one comparison on two workers, and what is refused."""

import json
import shutil

import pytest

from prism_bench.backends.null import SCRIPT
from tests.extensions.fleet.test_fleet import TOYS


def test_a_slower_side_is_found_on_two_workers(shell, tmp_path, monkeypatch):
    for side in "AB":
        shutil.copytree(TOYS, tmp_path / side)
    (source,) = (tmp_path / "B").rglob("triple.cu")
    source.write_text("// changed\n" + source.read_text())
    script = tmp_path / "script.json"
    slower = {"noise": 0.001, "with_source": {"// changed": {"seconds": 1.2e-6, "sass": "other"}}}
    script.write_text(json.dumps({"triple*": slower, "*": {"noise": 0.001}}))
    monkeypatch.setenv(SCRIPT, str(script))
    found = shell(
        "compare", tmp_path / "A", tmp_path / "B", "double", "triple", "--backend", "null", "--processes", "3",
        "--all", "--fleet", "local", "--workers", "2", "--records", tmp_path / "kept", "--json",
    )  # fmt: skip
    assert 1 == found.code
    verdicts = {case["case"]: case["verdict"] for case in found.json["cases"]}
    assert {"triple[n=1000]": "slower", "double[n=1000]": "same", "double:by_adding[n=1000]": "same"} == verdicts
    assert {"a.json.gz", "b.json.gz"} == {path.name for path in (tmp_path / "kept").iterdir()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--workers", "2"), "--workers 2: it is for --fleet"),
        (("--fleet", "banana"), "--fleet banana: it is local, an address"),
        (("--fleet", "local", "--tuned"), "--tuned: leave it out with --fleet"),
    ],
)
def test_what_has_no_meaning_is_refused(shell, tmp_path, words, message):
    for side in "AB":
        shutil.copytree(TOYS, tmp_path / side)
    found = shell("compare", tmp_path / "A", tmp_path / "B", "--backend", "null", *words)
    assert 2 == found.code
    assert message in found.err
