"""A kernel's page: it opens on the largest case, says why it takes its time, and folds what is not read at first."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from prism_bench.analysis.bounds import why
from prism_bench.compilation import listing
from prism_bench.compilation.cubin import Resources
from prism_bench.compilation.listing import CompiledEntry, read_listing
from prism_bench.record.measurement import Evidence
from prism_bench.report.site.cases import drawn_measurement, measurement_views
from prism_bench.workflows.profiling import why_of
from tests.compilation.test_code_difference import LISTINGS
from tests.report.languages import languages_record, operation_catalogue
from tests.report.site.pages import nights, read, site_of
from tests.report.site.unpacked import given_values
from tests.report.synthetic import case_result, gpu_record, record_of


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PRISM_BENCH_CACHE", str(tmp_path / "cache"))


def raw(site, name="kernels/k"):
    """The page as its file is: what a script makes later is not in it."""
    return (site / f"{name}.html").read_text("utf-8")


def article(text):
    """The case that the page shows before any script runs."""
    (shown,) = re.findall(r'<article class="case"[^>]*?(?<!hidden)>(.*?)</article>', text, re.DOTALL)
    return shown


def sizes(*bytes_of, **facts):
    return [case_result("k", label, times={"cold_time": 1e-5 * (n + 1)}, workload={"n": n}, bytes=size, **facts)
            for n, (label, size) in enumerate(bytes_of)]  # fmt: skip


def test_the_page_opens_on_the_largest_case_of_the_kernel_itself(tmp_path):
    own = sizes(("S0", 10), ("S2", 900), ("S1", 100))
    other = replace(own[1], variant="wide", name="k:wide[n=1]", bytes=9999)
    untimed = case_result("k", "S2", status="skipped", reason="no memory", workload={"n": 9}, bytes=99999)
    text = raw(site_of(tmp_path, record_of(*own, other, untimed)))
    assert "n=1" in article(text) and "S2" in article(text)
    assert 4 == len(re.findall(r"<article[^>]*hidden>", text)), "the others wait for a script"


def test_what_was_counted_at_another_workload_is_linked(tmp_path):
    values = {"dram_share": {"value": 0.91, "unit": "1"}, "profiler_duration": {"value": 1e-4, "unit": "s"}}
    small, large = sizes(("S1", 100), ("S2", 900))
    small = replace(small, profile={"tool": "ncu", "values": values})
    shown = article(raw(site_of(tmp_path, record_of(small, large))))
    assert re.search(r"Counters exist of <a [^>]*>S1</a>: bound by DRAM: DRAM 91 %", shown)
    assert "No profiler has counted it" in shown


def profiled(case, **more):
    shares = {"dram_share": 0.91, "l2_hit_rate": 0.02, "occupancy": 0.5, "profiler_duration": 1e-4}
    values = {name: {"value": value, "unit": "1"} for name, value in shares.items()}
    return replace(case, profile={"tool": "ncu", "values": values, **more})


COUNTERS = ["dram share 91 %", "l2 hit rate 2.0 %", "occupancy 50 %"]
LINES = [{"file": "k.cu", "line": n, "samples": samples, "text": "y[i] = x[i];", "stall": "long scoreboard"}
         for n, samples in ((7, 30), (4, 10))]  # fmt: skip


def counters_in(html):
    """The three counters of a page as a reader sees them."""
    plain = re.sub(r"<[^>]+>", " ", html)
    return [one for one in COUNTERS if one in re.sub(r"\s+", " ", plain.replace("\xa0", " ").replace("\u202f", " "))]


def test_three_counters_and_the_hottest_lines_are_shown(tmp_path):
    case = profiled(case_result("k", "S2", times={"cold_time": 1e-4}), lines=LINES)
    shown = article(raw(site_of(tmp_path, record_of(case))))
    assert COUNTERS == counters_in(shown)
    assert 3 == shown.partition('<dl class="counters">')[2].partition("</dl>")[0].count("<dt>")
    lines = re.findall(r'<code>(k\.cu:\d+)</code> <code>(.*?)</code>.*?<td><span class="q">(\d+)', shown)
    assert [("k.cu:7", "y[i] = x[i];", "75"), ("k.cu:4", "y[i] = x[i];", "25")] == lines


def test_a_case_without_counters_shows_those_of_its_neighbour_and_its_lines(tmp_path):
    small, large = sizes(("S1", 100), ("S2", 900))
    site = site_of(tmp_path, record_of(profiled(small, lines=LINES), large))
    shown = article(raw(site))
    assert "<h4>At S1</h4>" in shown and "k.cu:7" in shown
    assert COUNTERS == counters_in(shown.partition("<h4>At S1</h4>")[2])
    cases = json.loads((site / "kernels/k.json").read_text())["cases"]
    assert [None, {"case": small.name, "label": "S1"}] == [one["why"].get("near") for one in cases]


def test_why_has_its_counters_its_roof_and_its_fixes(tmp_path):
    shown = read(site_of(tmp_path, gpu_record()), "kernels/pixel_entropy").text
    assert re.search(r"It takes [\d.]+ ms; the compute limit of this run allows [\d.]+ µs", shown)
    assert re.search(r"reach the compute limit that this run measured: [\d.]+ µs at best, [\d.]+x as fast", shown)


def test_machine_code_is_compared_with_the_run_before(tmp_path):
    case = case_result("k", times={"cold_time": 1e-5}, code={"sass": "a", "registers": 32, "launches": 1})
    changed = replace(case, code={**case.code, "sass": "b", "registers": 40})
    first, second = nights(record_of(case), 2)
    text = read(site_of(tmp_path, first, replace(second, cases=(changed,))), "kernels/k").text
    assert "Changed since the run before, 2026-10-01 00000000. registers 32 → 40." in text
    same = read(site_of(tmp_path / "same", first, second), "kernels/k").text
    assert "The same as in the run before, 2026-10-01 00000000." in same


def test_facts_of_the_code_that_a_record_has_as_null_are_unknown(tmp_path):
    case = case_result("k", times={"cold_time": 1e-5}, code={"registers": None, "code_bytes": None, "launches": 1})
    text = read(site_of(tmp_path, record_of(case)), "kernels/k").text
    assert "unknown registers, unknown bytes spilled, 1 launch" in text


def test_machine_code_is_compared_with_the_newest_run_that_has_the_case(tmp_path):
    """As `show --why` does: a run that measured other kernels alone is passed over."""
    case, other = case_result("k", times={"cold_time": 1e-5}, code={"sass": "a"}), case_result("other", times={})
    first, second, third = nights(record_of(case, other), 3)
    site = site_of(tmp_path, first, replace(second, cases=(other,)), third)
    assert "The same as in 2026-10-01 00000000, the newest earlier run that has it." in read(site, "kernels/k").text
    code = why_of(third, "k", tmp_path / "runs", tmp_path / "profiles").code
    assert code.state == "same" and code.before.startswith("20261001T")


def test_a_case_of_an_older_run_is_compared_with_runs_before_that(tmp_path):
    catalogue = operation_catalogue(tmp_path / "kernels")
    first, second, third = nights(languages_record(), 3)
    rest = tuple(case for case in third.cases if case.kernel != "vector_add")
    site = site_of(tmp_path, first, second, replace(third, cases=rest), catalogue=catalogue)
    text = read(site, "kernels/vector_add").text
    assert "2026-10-02 00000000" not in text and "The same as in 2026-10-01 00000000, the newest earlier run" in text


def test_the_first_block_that_differs_is_on_the_page(tmp_path, monkeypatch):
    """Of code that the compiler's cache holds: the stored listings, by the digests of two runs."""
    texts = {"a": "scale.sass", "b": "scale_after.sass"}
    monkeypatch.setattr(why, "kept_entries", lambda kernel, architecture, sass: {
        "scale": CompiledEntry(Path(sass), "scale", Resources(registers=8))})  # fmt: skip
    monkeypatch.setattr(listing, "listing_of", lambda path: read_listing((LISTINGS / texts[path.name]).read_text()))
    case = case_result(
        "k", times={"cold_time": 1e-5}, code={"sass": "a", "architecture": "sm_90", "entries": ["scale"]}
    )
    first, second = nights(record_of(case), 2)
    changed = replace(case, code={**case.code, "sass": "b"})
    text = read(site_of(tmp_path, first, replace(second, cases=(changed,))), "kernels/k").text
    assert re.search(r"Kind of instruction .*fp32 1 2", text), "counts by kind"
    assert "The first block that differs is block 2." in text
    before, after = text.partition("The first block that differs")[2].split("After", 1)
    assert "FADD R3, R3, R2" in before and "FFMA R3, R3, R2, R2" in after


def test_languages_are_side_by_side_at_the_workload_that_the_page_opens_on(tmp_path):
    record = languages_record()
    own = tuple(case for case in record.cases if case.kernel != "vector_add" or case.label == "S1")
    catalogue = operation_catalogue(tmp_path / "kernels")
    text = raw(site_of(tmp_path, replace(record, cases=own), catalogue=catalogue), "kernels/vector_add")
    section = text.partition('<section id="languages">')[2].partition("</section>")[0]
    rows = re.findall(r'<tr><th scope="row" class="text">(?:<a [^>]*>)?([^<]+)<', section)
    assert ["Numba-CUDA", "cuTile", "Triton", "CUDA C++", "CuTe DSL", "Warp"] == rows
    assert "At S1" in section and re.search(r">4\.[678]\d<", section) and "not installed" in section


def test_evidence_is_one_line_and_its_windows_are_folded(tmp_path):
    seen = [Evidence(0.2, 4, {"sm_clock": (1.5e9, 1.9e9, 1.98e9), "power": (300.0, 400.0, watts)}, {"power cap": 0.5})
            for watts in (450.0, 512.0)]  # fmt: skip
    case = case_result("k", times={"cold_time": 1e-4})
    case = replace(case, measurements=(replace(case.measurements[0], evidence=tuple(seen)),))
    shown = article(raw(site_of(tmp_path, record_of(case))))
    assert "SM clock 1.50 GHz to 1.98 GHz, power 300 to 512 W, clock held down: power cap, 0 samples" in shown
    assert "0 samples repeated for it." in shown
    assert "<details><summary>By measurement</summary><template" in shown


def test_processes_are_bands_and_peers_a_number(tmp_path):
    case = case_result("k", times={"cold_time": 1e-4, "cold_time@peer:lib": 2e-4})
    views, (own, _) = measurement_views(case.measurements), (drawn_measurement(one) for one in case.measurements)
    assert [3, -7, 1000, 1000, 1000, 1000, 1000] == own["processes"][0]
    assert [1e-4] * 3 == views["kernel"]["cold_time"]["processes"]
    peer = views["peer:lib"]["cold_time"]
    assert 9 == peer["samples"] and "processes" not in peer


def test_only_what_the_pictures_draw_is_loaded_with_the_page(tmp_path):
    site = site_of(tmp_path, gpu_record())
    (script,) = (site / "data" / "pages" / "kernels").glob("softmax-*.js")
    view = given_values(script.read_bytes())["view"]
    assert view["largest"] == "softmax[rows=32768,cols=4096]", "S2 had no memory"
    metrics = [[one["metric"] for one in case["measurements"]] for case in view["cases"]]
    assert any(metrics) and all(len(found) == len(set(found)) for found in metrics), "those of peers are not drawn"


def test_a_page_of_many_variants_is_light(tmp_path):
    first = sizes(("S0", 10), ("S1", 100), ("S2", 900))
    many = [replace(one, variant=f"v{n}", name=one.name.replace("k[", f"k:v{n}[")) for n in range(12) for one in first]
    text = raw(site_of(tmp_path, record_of(*first, *many)))
    assert len(text) < 300_000 and len(re.findall(r"<[a-z]", text)) < 5_000
