"""Pictures: well-formed, coloured by the page, complete, absent where there is nothing to draw."""

import xml.etree.ElementTree as ElementTree

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from prism_bench.analysis.bounds.bottleneck import plotted
from prism_bench.analysis.run_analysis import compared, read
from prism_bench.report.charts import INK, place, roofline_chart, tick
from tests.report.synthetic import case_result, cpu_record, gpu_record, record_of


def titles(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("}title")]


@pytest.mark.parametrize("width", [1120, 400])
def test_the_roofline_has_a_titled_point_per_case(width):
    reading = read(gpu_record())
    found = titles(roofline_chart(reading, width, 420))
    assert len(found) == len(plotted(reading.frame)) > 30
    assert any(title.startswith("matmul[n=4096]: 46") for title in found)


def test_pictures_take_their_colours_from_the_page():
    svg = roofline_chart(read(gpu_record()), 800, 400)
    assert "var(--accent)" in svg
    assert not any(colour in svg for colour in INK.values())


def test_there_is_no_roofline_without_operations_or_cold_times():
    assert roofline_chart(read(cpu_record()), 800, 400) is None
    assert roofline_chart(read(record_of(case_result("k", times={"cold_time": 1e-3}))), 800, 400) is None


def test_a_roofline_without_ceilings_shows_its_points():
    record = record_of(case_result("k", times={"cold_time": 1e-3}, flops=1000))
    assert len(titles(roofline_chart(read(record), 800, 400))) == 1


def test_who_is_compared_has_a_rival():
    reading = read(gpu_record())
    assert "pixel_entropy:naive" not in set(compared(reading).query("label == 'S2'")["implementation"])
    assert compared(read(record_of(case_result("k", times={"cold_time": 1e-3})))).empty


def test_without_a_device_the_cpu_stands_alone():
    reading = read(cpu_record())
    assert len(compared(reading)) == len(reading.record.cases)


@pytest.mark.parametrize(
    ("text", "shown"), [("10.0 us", "10 µs"), ("1.00 ms", "1 ms"), ("1.50 T", "1.50 T"), ("100", "100")]
)
def test_axis_labels_have_no_empty_digits(text, shown):
    assert tick(text) == shown


def test_names_cover_no_point_and_no_other_name():
    figure = FigureCanvasAgg(Figure((6, 4), dpi=72)).figure
    axes = figure.add_subplot()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    points = [(0.1 + 0.01 * (index % 9), 0.2 + 0.08 * (index // 9), f"kernel {index}") for index in range(60)]
    boxes = [text.get_window_extent() for text in place(axes, points, [])]
    assert 5 < len(boxes) < 60
    assert not any(a.padded(-1).overlaps(b) for index, a in enumerate(boxes) for b in boxes[:index])
