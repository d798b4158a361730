"""`prism-bench published`: a record next to what the design documents claim."""

from prism_bench.record import store
from tests.report.synthetic import gpu_record


def test_a_record_is_compared_with_what_is_published(shell, tmp_path):
    path = store.save(gpu_record(), tmp_path / "record.json.gz")
    found = shell("published", path)
    assert (0, True) == (found.code, "published workload" in found.out)
    plain = shell("published", path, "--json").json
    assert {"figures", "rules", "cases", "findings", "choices"} <= set(plain)
    assert "matmul" in {one["kernel"] for one in plain["figures"]}


def test_a_record_that_is_not_there_is_refused(shell, tmp_path):
    found = shell("published", tmp_path / "none.json.gz")
    assert (2, True) == (found.code, "none.json.gz" in found.err)
