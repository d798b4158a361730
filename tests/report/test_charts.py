"""Pictures: well-formed, coloured by the page, complete, absent where there is nothing to draw."""

import xml.etree.ElementTree as ElementTree

import pytest

from prism_bench.analysis.reading import read
from prism_bench.report.rivals_chart import compared, rivals_charts
from prism_bench.report.roofline_chart import plotted, roofline_chart
from prism_bench.report.svg import INK, tick
from tests.report.synthetic import case_result, cpu_record, gpu_record, record_of


def titles(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("}title")]


@pytest.mark.parametrize("width", [1120, 400])
def test_the_roofline_has_a_titled_point_per_case(width):
    reading = read(gpu_record())
    found = titles(roofline_chart(reading, width, 420))
    assert len(found) == len(plotted(reading)) > 30
    assert any(title.startswith("matmul[n=4096]: 46") for title in found)


def test_pictures_take_their_colours_from_the_page():
    reading = read(gpu_record())
    for svg in (roofline_chart(reading, 800, 400), *rivals_charts(reading, 800).values()):
        assert "var(--accent)" in svg
        assert not any(colour in svg for colour in INK.values())


def test_there_is_no_roofline_without_operations_or_cold_times():
    assert roofline_chart(read(cpu_record()), 800, 400) is None
    assert roofline_chart(read(record_of(case_result("k", times={"cold_time": 1e-3}))), 800, 400) is None


def test_a_roofline_without_ceilings_shows_its_points():
    record = record_of(case_result("k", times={"cold_time": 1e-3}, flops=1000))
    assert len(titles(roofline_chart(read(record), 800, 400))) == 1


def test_bars_come_by_label_and_need_a_rival():
    reading = read(gpu_record())
    assert list(rivals_charts(reading, 800)) == ["S0", "S1", "S2"]
    assert "pixel_entropy:naive" not in set(compared(reading).query("label == 'S2'")["implementation"])
    assert rivals_charts(read(record_of(case_result("k", times={"cold_time": 1e-3}))), 800) == {}


def test_without_a_device_the_cpu_stands_alone():
    reading = read(cpu_record())
    assert len(compared(reading)) == len(reading.record.cases)
    assert list(rivals_charts(reading, 400)) == ["S0"]


@pytest.mark.parametrize(
    ("text", "shown"), [("10.0 us", "10 µs"), ("1.00 ms", "1 ms"), ("1.50 T", "1.50 T"), ("100", "100")]
)
def test_axis_labels_have_no_empty_digits(text, shown):
    assert tick(text) == shown
