"""`prism-bench comment --since`: a digest is printed, written, refused."""

from pathlib import Path

import pytest

from prism_bench.record import store
from tests.record.store.test_records import empty_record
from tests.report.synthetic import gpu_record


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))
    store.save(gpu_record(), store.path_for(gpu_record(), tmp_path / "reports" / "runs"))


def test_it_is_printed_as_markdown(shell, toys):
    found = shell("comment", "--since", "2026-11-01", *toys)
    assert 0 == found.code
    assert found.out.startswith("# Prism Bench, 2026-11-01 to ")
    assert "CUDA\\_ERROR\\_ILLEGAL\\_ADDRESS" in found.out


def test_it_is_written_as_both(shell, toys):
    found = shell("comment", "--since", "7d", "--output", "week.md", "--output", "week.html", *toys)
    assert (0, "") == (found.code, found.out)
    assert Path("week.md").read_text().startswith("# Prism Bench")
    assert Path("week.html").read_text().startswith("<!doctype html>")


def test_it_is_json_for_programs(shell, toys):
    (machine,) = shell("comment", "--since", "7d", "--json", *toys).json["machines"]
    assert ("NVIDIA H200", "cuda") == (machine["machine"], machine["backend"])


def test_a_day_that_is_none_is_refused(shell, toys):
    found = shell("comment", "--since", "yesterday", *toys)
    assert 2 == found.code
    assert "--since yesterday" in found.err and "7d" in found.err


def test_without_records_the_next_step_is_said(shell, toys):
    found = shell("comment", "--since", "7d", "--runs", "elsewhere", *toys)
    assert (2, "prism-bench: no run record below elsewhere; 'prism-bench run' makes one\n") == (found.code, found.err)


def test_a_file_in_the_way_is_named(shell, toys):
    Path("file").write_text("in the way")
    found = shell("comment", "--since", "7d", "--output", "file/week.html", *toys)
    assert 2 == found.code
    assert "--output file/week.html: file is no folder" in found.err


def test_a_newest_record_without_cases_ends_it_with_2(shell, toys):
    """The digest of what is known is still printed; that the newest run is unknown is an error, not a quiet week."""
    empty_record(Path("reports/runs/nvidia-h200/20991231T000000Z-7471611d.json.gz"))
    found = shell("comment", "--since", "2026-11-01", *toys)
    assert 2 == found.code
    assert found.out.startswith("# Prism Bench, 2026-11-01 to ") and "Left out" in found.out
    assert "20991231T000000Z-7471611d.json.gz: a run record without cases: nothing was measured" in found.err


def test_an_older_record_that_cannot_be_used_is_only_told(shell, toys):
    empty_record(Path("reports/runs/nvidia-h200/20200101T000000Z-7471611d.json.gz"))
    found = shell("comment", "--since", "2026-11-01", *toys)
    assert (0, "") == (found.code, found.err)
    assert "without cases" in found.out


@pytest.mark.parametrize("more", [("--post",), ("--pull-request", "5")])
def test_what_posts_a_comparison_is_refused_with_a_digest(shell, toys, more):
    found = shell("comment", "--since", "7d", *more, *toys)
    message = f"prism-bench: {more[0]}: leave it out without a comparison\n"
    assert (2, "", message) == (found.code, found.out, found.err)


def test_digest_names_what_replaces_it(shell):
    found = shell("digest", "--since", "2w")
    message = "prism-bench: 'digest' is no command any more; use 'prism-bench comment --since 7d'\n"
    assert (2, message) == (found.code, found.err)
