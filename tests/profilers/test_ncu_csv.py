"""ncu's CSV in all layouts, ours written here and others' read where they lie."""

import pytest

from prism_bench.errors import ResultsError
from prism_bench.profilers import ncu
from prism_bench.profilers.metrics import ProfiledValue

LONG = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC"'
)
WHERE = '"0","7","python","127.0.0.1","void f<1, 2>(int)","1","7","(64, 1, 1)","(9, 32, 1)","0","9.0"'
METRIC = '"Section Name","Metric Name","Metric Unit","Metric Value"'
RULES = '"Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"'


def current(*cells, rules=""):
    """A long table of the current layout; `cells` are its rows after the launch's own fields."""
    return "\n".join([f"{LONG},{METRIC}{',' + rules if rules else ''}", *(f"{WHERE},{row}" for row in cells)])


def only(text):
    (launch,) = ncu.parse(text, "here")
    return launch


def test_the_long_layout():
    launch = only(current('"","dram__bytes.sum","byte","134,221,568"', '"","gpu__time_duration.sum","ns","1,292,928"'))
    assert (0, "void f<1, 2>(int)", "9.0") == (launch.id, launch.kernel, launch.capability)
    assert ((9, 32, 1), (64, 1, 1)) == (launch.grid, launch.block)
    assert ProfiledValue(134221568.0, "B", "134,221,568") == launch.metrics["dram__bytes.sum"]
    assert 0.001292928 == pytest.approx(launch.value("gpu__time_duration.sum"))


def test_labels_of_the_details_page_keep_section_and_unit_because_they_collide():
    rows = ('"Speed","Memory Throughput","%","61.84",', '"Memory","Memory Throughput","byte/s","196461046022.93",')
    launch = only(current(*rows, rules=RULES))
    assert 0.6184 == pytest.approx(launch.value("Speed: Memory Throughput [%]"))
    assert 196461046022.93 == launch.value("Memory: Memory Throughput [byte/s]")


def test_rules_are_the_tools_opinion():
    rows = (
        '"Speed","x__y.sum","","1",',
        '"Speed","","","","Bottleneck","OPT","Use ""fewer"" bytes,\nplease.","global","45.14"',
    )
    launch = only(current(*rows, rules=RULES))
    assert ["x__y.sum"] == list(launch.metrics)
    (rule,) = launch.rules
    assert ("Bottleneck", "OPT", "global", 45.14) == (rule.name, rule.kind, rule.speedup_kind, rule.speedup)
    assert 'Use "fewer" bytes,\nplease.' == rule.text


def test_the_older_layout_has_a_time_and_no_device():
    header = '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream"'
    row = '"3","7","a.out","127.0.0.1","f","2020-Jan-01 00:00:00","1","7","","gpu__time_duration.sum","usecond","12.5"'
    launch = only(f"{header},{METRIC}\n{row}")
    assert (3, None, ()) == (launch.id, launch.capability, launch.grid)
    assert 12.5e-6 == pytest.approx(launch.value("gpu__time_duration.sum"))


def test_the_layout_with_ranges():
    header = LONG.replace(
        '"Kernel Name"', '"Id:Domain:Start/Stop_Range:Msg","Id:Domain:Push/Pop_Range:Msg","Kernel Name"'
    )
    where = WHERE.replace('"void', '""," ""0:<default domain>:softmax[rows=8,cols=4]:none:none"" ","void')
    launch = only(f'{header},{METRIC}\n{where},"","x__y.sum","","1"')
    assert "void f<1, 2>(int)" == launch.kernel
    assert ('"0:<default domain>:softmax[rows=8,cols=4]:none:none"',) == launch.ranges


def test_the_wide_layout_has_a_row_of_units():
    text = f'{LONG},"dram__bytes.sum","sm__x.pct","policy"\n' + '"",' * 11 + '"byte","%",""\n'
    launch = only(text + f'{WHERE},"181,216","13.02","Spread"')
    assert (181216.0, 0.1302, None) == tuple(
        launch.value(name) and pytest.approx(launch.value(name)) for name in ("dram__bytes.sum", "sm__x.pct", "policy")
    )
    assert "Spread" == launch.metrics["policy"].text


def test_words_around_the_table_do_not_matter():
    text = '\ufeff==PROF== Connected to process 7\nhis own: 5" of, words\n'
    assert 1 == only(text + current('"","x__y.sum","","1"')).value("x__y.sum")


def test_several_processes_may_number_launches_alike():
    rows = [f"{WHERE.replace(',7,', f',{process},', 1)}" for process in ('"7"', '"8"')]
    text = f"{LONG},{METRIC}\n" + "\n".join(
        f'{WHERE.replace(chr(34) + "7" + chr(34), p, 1)},"","x__y.sum","","1"' for p in ('"7"', '"8"')
    )
    assert rows
    assert [7, 8] == [launch.process for launch in ncu.parse(text, "here")]


def test_what_is_not_supported_is_null_with_the_tools_word():
    assert ProfiledValue(None, "", "n/a") == only(current('"","x__y.sum","","n/a"')).metrics["x__y.sum"]


@pytest.mark.parametrize(
    ("duration", "read", "seconds"),
    [
        ("12 345,67", "8 388 608", 12345.67e-9),
        ("12\u202f345,67", "8\u202f388\u202f608", 12345.67e-9),
        ("12\u2019345.67", "8\u2019388\u2019608", 12345.67e-9),
        ("1,23,45,678.90", "83,88,608", 12345678.9e-9),
    ],
    ids=["French", "French with narrow spaces", "Swiss", "Indian"],
)
def test_numbers_of_other_locales_are_read(duration, read, seconds):
    launch = only(current(f'"","gpu__time_duration.sum","ns","{duration}"', f'"","dram__bytes.sum","byte","{read}"'))
    assert (pytest.approx(seconds), 8388608.0) == (
        launch.value("gpu__time_duration.sum"),
        launch.value("dram__bytes.sum"),
    )


@pytest.mark.parametrize("word", ["n/a", "nan", "-nan", "NaN", "-nan(ind)", "inf", ""])
def test_a_counter_without_a_value_is_missing(word):
    quantity = only(current(f'"","x__y.sum","byte","{word}"')).metrics["x__y.sum"]
    assert (None, word, True) == (quantity.value, quantity.text, quantity.is_missing)


def test_a_word_is_not_missing():
    assert not only(current('"","launch__policy","","PolicySpread"')).metrics["launch__policy"].is_missing


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no table of kernels"),
        ("==ERROR== ERR_NVGPUCTRPERM - no permission", "no table of kernels"),
        (f"{LONG},{METRIC}", "table of kernels is empty"),
        (f"{LONG},{METRIC}\n{WHERE}", "row of launch 0 is cut"),
        (f'{LONG},"dram__bytes.sum"\n{WHERE},"1"', "without its row of units"),
        (f'{LONG},"a__b.sum"\n' + '"",' * 11 + '"byte"\n' + f'{WHERE},"1","2"', "row of launch 0 is cut"),
        (current('"","x__y.sum","ns","117.344"'), "a fraction or a thousand times"),
    ],
)
def test_what_holds_no_launches_is_an_error(text, complaint):
    with pytest.raises(ResultsError, match=f"here: .*{complaint}"):
        ncu.parse(text, "here")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ResultsError, match="none.csv"):
        ncu.read(tmp_path / "none.csv")


def test_a_wide_capture_of_an_h200(samples):
    launches = ncu.read(samples / "ncu_raw_wide_h200_2025.3.1.csv")
    added = [launch for launch in launches if launch.kernel == "vector_add"]
    assert (12, 3) == (len(launches), len(added))
    assert 134_229_248.0 == added[0].value("dram__bytes_read.sum")
    assert 59.328e-6 == pytest.approx(added[0].value("gpu__time_duration.sum"))
    assert 10 == added[0].value("profiler__replayer_passes")


def test_a_details_page_of_a_t4_agrees_with_its_datasheet(samples):
    (launch,) = ncu.read(samples / "ncu_details_t4_rules.csv")
    assert (72, 11) == (len(launch.metrics), len(launch.rules))
    share = launch.value("GPU Speed Of Light Throughput: DRAM Throughput [%]")
    rate = launch.value("Memory Workload Analysis: Memory Throughput [byte/s]")
    assert 317.7e9 == pytest.approx(rate / share, rel=1e-3)


def test_a_details_page_of_a_b200(samples):
    (launch,) = ncu.read(samples / "ncu_details_b200_rules_baseunits.csv")
    assert (50, 8, "10.0") == (len(launch.metrics), len(launch.rules), launch.capability)
    assert 406.24e-6 == pytest.approx(launch.value("GPU Speed Of Light Throughput: Duration [ns]"))


def test_metrics_alone_from_windows(samples):
    (launch,) = ncu.read(samples / "ncu_cmdline_rtx5070_windows_2026.2.1.csv")
    assert 134_221_568.0 == launch.value("dram__bytes_op_read.sum")
    assert 292.928e-6 == pytest.approx(launch.value("gpu__time_duration.sum"))
