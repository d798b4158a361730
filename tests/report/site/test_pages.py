"""Every page: whole, escaped, without a network, telling what there is and explaining what there is not."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from prism_bench.record import store
from prism_bench.record.measurement import Evidence, Measurement
from prism_bench.report.site import build_site
from prism_bench.report.site.page import MENU
from prism_bench.report.templating import ratio_path
from prism_bench.spec.metric import Budget
from tests.built_in import CATALOGUE
from tests.report.peered import peered_record
from tests.report.site.pages import nights, read, site_of
from tests.report.synthetic import case_result, cpu_record, gpu_record, record_of

NASTY = "<script>alert(1)</script>&\"'$x$"


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))


def pages_of(site):
    return {path.relative_to(site).as_posix()[:-5]: read(site, path.relative_to(site).as_posix()[:-5])
            for path in sorted(site.rglob("*.html"))}  # fmt: skip


def test_every_page_of_the_menu_is_there_and_links_resolve(site):
    pages = pages_of(site)
    assert set(MENU) <= set(pages)
    for name, page in pages.items():
        for target in page.linked:
            path = target.partition("#")[0]
            if path and not target.startswith(("#", "data:")):
                assert "//" not in target, f"{name} wants a network: {target}"
                assert (site / name).parent.joinpath(path).resolve().is_file(), f"{name} links {target}"


def test_headings_are_in_order(site):
    for name, page in pages_of(site).items():
        assert page.headings[0] == 1 and page.headings.count(1) == 1, name
        steps = [b - a for a, b in zip(page.headings, page.headings[1:], strict=False)]
        assert max(steps, default=0) <= 1, f"{name}: {page.headings}"


def test_the_figures_behind_each_page_lie_beside_it(site):
    for path in site.rglob("*.html"):
        view = json.loads(path.with_suffix(".json").read_text("utf-8"))
        assert isinstance(view, dict)
    assert 1.2 == pytest.approx(json.loads((site / "trend.json").read_text())["steps"][0]["ratio"], rel=0.02)


def test_the_overview_tells_what_got_worse_and_why(site):
    page = read(site, "index")
    assert "Untrusted: " in page.text
    assert "worse by" in page.text and "the machine code changed" in page.text
    for words in ("above the read ceiling", "it wanted 4.29 GB", "CUDA_ERROR_ILLEGAL_ADDRESS"):
        assert words in page.text


def attention(site, kernel):
    rows = json.loads((site / "index.json").read_text())["attention"]
    return [row for row in rows if any(case["case"].startswith(f"{kernel}[") for case in row["cases"])]


def test_a_row_that_needs_attention_has_a_chart_of_one_gpu_with_its_range(tmp_path):
    runs = nights(gpu_record(), slower="softmax")
    site = site_of(tmp_path / "one", *runs)
    lines = [row["line"] for row in attention(site, "softmax")]
    assert lines and {14} == {line["runs"] for line in lines}
    assert all(line["low"] < line["high"] and line["path"].startswith("M") for line in lines)
    assert "of the last 14 runs on this GPU" in read(site, "index").raw
    last = replace(runs[-1], machine={**runs[-1].machine, "uuid": "GPU-another"})
    moved = attention(site_of(tmp_path / "two", *runs[:-1], last), "softmax")
    assert moved and not any("line" in row for row in moved), "the other runs are of another GPU"
    assert "on a scale from 1/2 to 2" in read(tmp_path / "two" / "site", "index").raw


@pytest.mark.parametrize(("ratio", "end"), [(1.0, "48.0"), (0.5, "0.0"), (2.0, "96.0"), (1e9, "96.0"), (0.01, "0.0")])
def test_a_ratio_is_a_bar_from_one(ratio, end):
    assert f"M48 6H{end}" == ratio_path(ratio)


def test_columns_that_are_empty_throughout_are_left_out(tmp_path):
    one, several = site_of(tmp_path / "one", gpu_record()), site_of(tmp_path / "two", *nights(gpu_record(), 2))
    assert "one run" not in read(one, "catalogue").text and "Trend" in read(several, "catalogue").text
    assert 'data-key="trend"' in read(several, "catalogue").raw and 'data-key="trend"' not in read(one, "catalogue").raw
    untimed = replace(gpu_record(), cases=tuple(
        replace(case, measurements=tuple(m for m in case.measurements if m.metric != "end_to_end_time"))
        for case in gpu_record().cases))  # fmt: skip
    without = read(site_of(tmp_path / "three", untimed), "speedup").raw
    assert 'data-key="e2e"' not in without and 'data-key="e2e"' in read(one, "speedup").raw


def test_a_record_that_is_named_is_not_left_out_for_itself(tmp_path):
    site_of(tmp_path, gpu_record())
    (path,) = (tmp_path / "runs").rglob("*.json.gz")
    build_site(tmp_path / "runs", tmp_path / "site", record=path)
    assert "Left out" not in read(tmp_path / "site", "trend").text


def test_what_became_faster_is_told_as_better(tmp_path):
    text = read(site_of(tmp_path, *nights(gpu_record(), slower="softmax", by=0.8)), "index").text
    assert "better by" in text[text.index("Better") :]


def test_the_catalogue_has_a_row_for_every_implementation(site):
    page = read(site, "catalogue")
    kernels = {(case.kernel, case.variant) for case in gpu_record().cases}
    assert len(kernels) == page.raw.count("<tr data-family")
    assert "kernels/softmax.html" in page.linked


def test_the_catalogue_names_what_nobody_measured(tmp_path):
    site = site_of(tmp_path, gpu_record(), catalogue=CATALOGUE)
    rows = json.loads((site / "catalogue.json").read_text())["kernels"]
    assert set(CATALOGUE.kernels) <= {row["kernel"] for row in rows}
    assert "unmeasured" == next(row["state"] for row in rows if row["kernel"] == "digamma")
    assert "No record of this machine has timed it" in read(site, "kernels/digamma").text
    assert "__global__" in read(site, "kernels/digamma").text
    assert "kept to compare with vector_add_batch:full" in read(site, "kernels/vector_add_batch").text
    looked_at = CATALOGUE.kernels["conv2d"].looked_at
    assert looked_at and all(reason in read(site, "kernels/conv2d").text for reason in looked_at.values())


def test_a_kernel_tells_its_step_its_accuracy_and_how_to_see_it_again(site):
    text = read(site, "kernels/softmax").text
    assert "+20" in text and "the machine code changed" in text
    assert "6.2e-08" in text and "passed" in text
    assert "prism-bench run --backend cuda" in text


def test_peers_are_compared_by_class_and_listed_for_each_case(tmp_path):
    site = site_of(tmp_path, peered_record())
    overview, speedup, kernel = (read(site, name) for name in ("index", "speedup", "kernels/te_compute_distances"))
    assert "S1 and S2 library kernel 8 2.38x 4 0.40x matmul S1 torch_tf32" in overview.text
    assert "S2 best of all 6 – 3 0.40x" in speedup.text and "S2 best of all 6 –" not in overview.text
    assert "torch_compiled, unstable: 930 µs to 4.60 ms" in speedup.text
    assert "knn_distances_chebyshev, cdist (poor way): S1 80.0x" in speedup.text
    assert "poor way: cdist(p=inf) has no fast kernel (not counted)" in kernel.text
    assert json.loads((site / "index.json").read_text())["against_peers"][0]["peers"] == "library kernel"


def test_the_cpu_is_compared_by_label(tmp_path):
    cases = [case_result("k", label, times={"cold_time": 1e-5, "wall_time@cpu": 1e-3 * n, "end_to_end_time": 2e-3},
                         workload={"n": n}) for n, label in ((1, "S0"), (9, "S1"))]  # fmt: skip
    site = site_of(tmp_path, record_of(*cases))
    rows = json.loads((site / "speedup.json").read_text())["cpu"]
    assert [(row["label"], row["cold"], row["slower"]) for row in rows] == [
        ("S0", pytest.approx(100), 1), ("S1", pytest.approx(900), 0)
    ]  # fmt: skip
    assert "S0 1 100x 0.50x 1 of 1" in read(site, "speedup").text


def test_counters_and_evidence_are_shown_where_there_are_any(tmp_path):
    values = {"dram_share": {"value": 0.91, "unit": "1"}, "profiler_duration": {"value": 1e-4, "unit": "s"},
              "sectors": {"value": None, "unit": "1", "reason": "not on this chip"}}  # fmt: skip
    seen = Evidence(0.2, 4, {"sm_clock": (1.9e9, 1.98e9, 1.98e9), "power": (300.0, 400.0, 500.0)})
    case = case_result("k", times={"cold_time": 1e-4}, profile={"tool": "ncu", "values": values})
    case = replace(case, measurements=(replace(case.measurements[0], evidence=(seen,)),))
    site = site_of(tmp_path, record_of(case))
    text = read(site, "kernels/k").text
    assert "Bound by DRAM: DRAM 91 %" in text and "not on this chip" in text
    assert "400 W" in text
    assert [[300.0, 400.0, 500.0]] == json.loads((site / "machine.json").read_text())["telemetry"]["quantities"][
        "power"
    ]


def test_markup_in_names_is_only_text(tmp_path):
    case = case_result(
        NASTY, times={"cold_time": 1e-5, "cold_time@peer:<b>": 2e-5}, workload={"<i>": 1}, flops=100, family=NASTY,
        label="S1", reason=NASTY, verification=({"output": NASTY, "passed": False, "place": [0], "error": NASTY},),
    )  # fmt: skip
    wrong = case_result(NASTY, status="wrong", reason=NASTY, name=NASTY)
    record = record_of(case, wrong, machine={"id": "x", "device": {"name": NASTY}}, commit=NASTY, catalogue=NASTY)
    site = site_of(tmp_path, record)
    for path in site.rglob("*.html"):
        raw = path.read_text("utf-8")
        assert "<script>alert" not in raw and "<b>" not in raw and "<i>=" not in raw, path
    assert NASTY in read(site, "index").text
    (kernel,) = (site / "kernels").glob("*.html")
    assert NASTY in read(site, f"kernels/{kernel.stem}").text


def test_a_cpu_record_explains_its_gaps(tmp_path):
    site = site_of(tmp_path, cpu_record())
    assert "All 12 cases verified and timed" in read(site, "index").text
    assert "No roofline" in read(site, "roofline").text
    assert "so the time of the NumPy reference on the CPU is shown" in read(site, "speedup").text
    assert "no ceiling and no launch overhead" in read(site, "machine").text
    assert "Not measured: cold time" in read(site, "kernels/softmax").text


def test_one_record_says_what_it_cannot_tell(tmp_path):
    site = site_of(tmp_path, gpu_record())
    assert "There is no earlier record" in read(site, "compare").text
    assert "Too few records for a step" in read(site, "trend").text
    assert (
        "no record of this machine timed a chain"
        in read(site_of(tmp_path, gpu_record(), catalogue=CATALOGUE), "fusion").text
    )


SKIPPED = case_result("k", status="skipped", reason="no memory")


@pytest.mark.parametrize("record", [record_of(SKIPPED), record_of(SKIPPED, complete=False), gpu_record(complete=False)])
def test_untimed_and_partial_records_give_whole_pages(record, tmp_path):
    pages = pages_of(site_of(tmp_path, record))
    assert ("This run was cut short" in pages["index"].text) == (not record.complete)


def test_a_gap_points_at_its_reason(tmp_path):
    empty = Measurement("hot_time", "kernel", (), reason="graph capture refused")
    page = read(site_of(tmp_path, record_of(case_result("k", measurements=(empty,)))), "kernels/k")
    assert "#note-1" in page.linked and "note-1" in page.ids
    assert "graph capture refused" in page.text


def test_budgets_of_the_catalogue_are_judged(tmp_path):
    spec = SimpleNamespace(
        looked_at={},
        budgets=(Budget("cold_time", at_most=1e-9),),
        variants={},
        family="basic",
        source_path=None,
        file=None,
        chains=(),
        before=None,
        aliases=(),
    )
    catalogue = SimpleNamespace(kernels={"k": spec}, folder=tmp_path, budgets=None, cases=list)
    site = site_of(tmp_path, record_of(case_result("k", times={"cold_time": 1e-5})), catalogue=catalogue)
    assert "1 budget missed" in read(site, "index").text
    assert "1.00 ns" in read(site, "budgets").text


def test_a_case_that_the_newest_night_left_out_is_told_from_an_older_one(tmp_path):
    first, second = nights(gpu_record(), 2)
    part = replace(second, cases=tuple(case for case in second.cases if case.kernel != "softmax"))
    known = SimpleNamespace(kernels={}, folder=tmp_path, budgets=None, cases=lambda: first.cases)
    rows = json.loads((site_of(tmp_path, first, part, catalogue=known) / "catalogue.json").read_text())["kernels"]
    row = next(row for row in rows if row["kernel"] == "softmax")
    assert "older" == row["state"]
    assert {(first.created, "older")} == {
        (cell["elsewhere"]["created"], cell["elsewhere"]["origin"]) for cell in row["times"].values()
    }


def test_a_case_that_only_a_round_has_timed_is_told_as_that(tmp_path):
    record = gpu_record()
    part = replace(record, cases=tuple(case for case in record.cases if case.kernel != "softmax"))
    store.save(record, store.path_for(record, tmp_path / "rounds"))
    known = SimpleNamespace(kernels={}, folder=tmp_path, budgets=None, cases=lambda: record.cases)
    site = site_of(tmp_path, part, catalogue=known)
    rows = json.loads((site / "catalogue.json").read_text())["kernels"]
    assert "round" == next(row["state"] for row in rows if row["kernel"] == "softmax")
    assert "in a round of making it faster" in read(site, "kernels/softmax").text


def test_a_site_has_the_pages_of_one_machine_and_names_the_others_with_their_command(tmp_path):
    laptop = replace(cpu_record(), created="2026-12-01T00:00:00")
    site = site_of(tmp_path, gpu_record(), laptop)
    overview, files = read(site, "index"), {path.relative_to(site).as_posix() for path in site.rglob("*.*")}
    assert "Records of GPUs to look at: nvidia-h200, 2026-11-20" in overview.text
    assert not any(name.startswith("machines/") for name in files)
    assert json.loads((site / "compare.json").read_text())["shelves"][1:] == [], "a CPU and a GPU do not compare"
    (other,) = json.loads((site / "index.json").read_text())["others"]
    _, _, record, _, output, _, runs = shlex.split(other["command"])
    build_site(Path(runs), Path(output), record=Path(record))
    assert "NVIDIA H200" in read(Path(output), "index").text
    assert "machines/nvidia-h200-cuda/index.html" not in overview.linked
    build_site(tmp_path / "runs", site)
    assert "machines/nvidia-h200-cuda/index.html" in read(site, "index").linked
    assert (Path(output) / "index.html").is_file()


def test_the_menu_leaves_out_pages_without_content(tmp_path):
    def menu(site, name="index"):
        text = read(site, name).raw
        return re.findall(r'<li><a href="(\w+)\.html"', text[text.index('<nav class="menu"') : text.index("</nav>")])

    newcomer = site_of(tmp_path / "one", cpu_record())
    assert ["index", "catalogue", "machine", "method"] == menu(newcomer)
    assert "compare" in menu(newcomer, "compare"), "the page that is shown is named"
    assert {"compare", "trend", "roofline"} <= set(menu(site_of(tmp_path / "two", *nights(gpu_record(), 2))))


def test_a_record_that_cannot_be_read_harms_no_other(tmp_path):
    first, second = nights(gpu_record(), 2)
    site_of(tmp_path, first)
    (tmp_path / "runs" / "nvidia-h200" / "20261002T221405Z-00000000.json.gz").write_bytes(b"cut")
    text = read(site_of(tmp_path, first), "index").text
    assert "not a readable run record" in text


def test_nights_are_compared_with_intervals(site):
    pairs = json.loads((site / "compare.json").read_text())["against"]
    assert ["2026-10-13", "2026-10-07"] == [pair["created"][:10] for pair in pairs]
    softmax = [case for case in pairs[1]["cases"] if case["case"].startswith("softmax[") and "ratio" in case]
    assert all(case["low"] < case["ratio"] < case["high"] for case in softmax)
    assert ["slower"] * 2 == [case["verdict"] for case in softmax]
