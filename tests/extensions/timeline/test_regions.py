"""Timelines of planted records: clocks, nesting, tracks, tables, overlaps, views."""

import json
from dataclasses import replace

import numpy as np
import pytest

from prism_bench.cli.options import plain_console
from prism_bench.errors import MeasurementInvalid
from prism_bench.extensions.timeline.recording import ProbeCost, Recording, RegionBuffer
from prism_bench.extensions.timeline.regions import RECORD, UNCLOSED, overlaps, rows, timeline_of
from prism_bench.extensions.timeline.report import cost_text, perfetto_trace, timeline_json, timeline_view

CLOCK = 2e9  # two cycles a nanosecond
NAMES = {1: "load", 2: "multiply", 3: "tile"}
STEP = 32  # ns of the device's clock
BEGAN = (1 << 32) - 500  # ns: the lower half wraps within the launch


def records(*regions):
    """Records of (region, begin, end, block, warp, multiprocessor), times in nanoseconds.

    Each multiprocessor began to count its cycles at another time; the device's clock moves in steps.
    """
    table = np.zeros(len(regions), RECORD)
    for place, (region, begin, end, block, warp, multiprocessor) in enumerate(regions):
        cycles = 2 * end + 10**15 + 10**12 * multiprocessor
        device = (BEGAN + end) // STEP * STEP % 2**32
        table[place] = (cycles, 2 * (end - begin), device, block, multiprocessor << 5 | warp, region, 77)
    return table


def in_two_roles(blocks=8, multiprocessors=4):
    """Warp 0 loads tiles of 300 ns, warp 1 multiplies for 200 ns each, of which half is during the next load."""
    for block in range(blocks):
        start = 37 * block
        for tile in range(4):
            begin = start + 300 * tile
            yield 1, begin, begin + 300, block, 0, block % multiprocessors
            yield 2, begin + 200, begin + 400, block, 1, block % multiprocessors


def test_multiprocessors_get_one_clock():
    planted = [*in_two_roles()]
    timeline = timeline_of(records(*planted), NAMES, CLOCK)
    wanted = sorted((block, warp, begin, end) for _, begin, end, block, warp, _ in planted)
    columns = zip(timeline.block, timeline.warp, timeline.begin, timeline.end, strict=True)
    assert timeline.mismatch <= STEP
    for (block, warp, begin, end), (*place, first, last) in zip(wanted, columns, strict=True):
        assert [block, warp] == place
        assert begin == pytest.approx(first, abs=STEP) and end == pytest.approx(last, abs=STEP)
        assert end - begin == pytest.approx(last - first)


def test_clocks_that_disagree_are_refused():
    with pytest.raises(MeasurementInvalid, match="clocks of the multiprocessors do not agree"):
        timeline_of(records(*((1, 10_000 * n, 10_000 * n + 100, n, 0, 0) for n in range(50))), NAMES, CLOCK / 2)


def test_regions_inside_of_others_are_their_own_time():
    timeline = timeline_of(
        records((3, 0, 1000, 0, 0, 0), (1, 100, 400, 0, 0, 0), (2, 400, 1000, 0, 0, 0), (1, 0, 1000, 0, 1, 0)),
        NAMES,
        CLOCK,
    )
    table = {row.name: row for row in rows(timeline)}
    assert ("", "tile", "tile") == (table["tile"].inside, table["load"].inside, table["multiply"].inside)
    shares = {name: round(row.share * 2000) for name, row in table.items()}
    assert {"tile": 100, "load": 1300, "multiply": 600} == shares
    assert (2, 1, 2) == (table["load"].count, table["load"].blocks, table["load"].warps)


def test_spread_is_over_totals_of_warps_and_multiprocessors():
    lengths = ((0, 0, 100), (0, 1, 100), (1, 0, 150), (2, 2, 300))
    timeline = timeline_of(
        records(*((1, 1000, 1000 + length, block, 0, multiprocessor) for block, multiprocessor, length in lengths)),
        NAMES,
        CLOCK,
    )
    (row,) = rows(timeline)
    totals = row.over_multiprocessors
    assert (100, 250, 300) == tuple(map(round, (totals.lowest, totals.median, totals.highest)))
    assert 4 == row.count


def test_producers_and_consumers_overlap():
    shares = overlaps(timeline_of(records(*in_two_roles()), NAMES, CLOCK))
    assert {("load", "multiply"), ("multiply", "load")} == set(shares)
    # A load is met by 100 ns of the product before, but the first one, and by 100 ns of its own.
    assert pytest.approx((3 * 200 + 100) / 1200, abs=0.05) == shares["load", "multiply"]
    assert pytest.approx((3 * 200 + 100) / 800, abs=0.05) == shares["multiply", "load"]


def test_groups_of_warps_that_take_turns_overlap():
    turns = [
        (1 + (turn + warp) % 2, 100 * turn, 100 * turn + 100, 0, warp, 0) for turn in range(6) for warp in range(2)
    ]
    shares = overlaps(timeline_of(records(*turns), NAMES, CLOCK))
    assert pytest.approx(1.0) == shares["load", "multiply"] == shares["multiply", "load"]


def test_a_region_around_another_one_is_no_overlap():
    nested = ((3, 0, 1000, 0, 0, 0), (1, 100, 400, 0, 0, 0), (2, 150, 200, 0, 0, 0), (2, 0, 500, 0, 1, 0))
    assert {} == overlaps(timeline_of(records(*nested), NAMES, CLOCK))


def test_blocks_of_different_blocks_do_not_overlap():
    apart = ((1, 0, 500, 0, 0, 0), (2, 0, 500, 1, 1, 0))
    assert {0.0} == {*overlaps(timeline_of(records(*apart), NAMES, CLOCK)).values()}


def test_blocks_that_follow_each_other_share_a_track():
    planted = ((1, 0, 1000, 0, 0, 0), (1, 0, 400, 1, 0, 0), (1, 450, 900, 2, 0, 0), (1, 0, 100, 3, 0, 1))
    timeline = timeline_of(records(*planted), NAMES, CLOCK)
    assert 2 == len({*timeline.slot}) and 4 == timeline.busiest_events
    assert timeline.slot[1] == timeline.slot[2] != timeline.slot[0]


def test_repeated_launches_are_told_apart():
    table = records((1, 0, 100, 0, 0, 0), (1, 0, 100, 0, 0, 0))
    table["grid"] = (8, 9)
    timeline = timeline_of(table, NAMES, CLOCK)
    assert [0, 1] == timeline.launch.tolist() and [-1, -1] == timeline.parent.tolist()


def test_a_name_by_a_macro_is_shown_by_its_id():
    table = records((99, 0, 100, 0, 0, 0))
    table["place"] |= UNCLOSED
    assert ("region 0x00000063",) == timeline_of(table, NAMES, CLOCK).names


# Views.


@pytest.fixture
def recording():
    timeline = timeline_of(records(*in_two_roles()), NAMES, CLOCK)
    cost = ProbeCost((10e-6,) * 9, (10.2e-6,) * 9, timeline.busiest_events)
    return Recording("k[n=8]", "cuda", "NVIDIA H200", RegionBuffer(8, 64), timeline, cost, ("a note",))


def shown(recording, width=200):
    console = plain_console(width=width)
    with console.capture() as text:
        console.print(timeline_view(recording))
    return text.get()


def test_the_table_is_followed_by_the_cost(recording):
    text = shown(recording)
    assert text.startswith("k[n=8] on NVIDIA H200: 64 regions")
    assert "load" in text and "58 % multiply" in text
    assert "the probes change the kernel by +2.0 % (at most 5 %): 10.0 us without, 10.2 us with them (9 pairs" in text
    assert f"{200 / recording.cost.events:.1f} ns an event" in text
    assert text.index("a note") > text.index("the probes")


def test_a_high_cost_comes_first(recording):
    high = replace(recording, cost=replace(recording.cost, probed=(10.6e-6,) * 9))
    assert shown(high).startswith("the probes change the kernel by +6.0 % (more than 5 %, so its regions are longer")


def test_a_cost_below_its_noise_has_no_figure_of_an_event(recording):
    noisy = ProbeCost((10e-6,) * 9, (9.6e-6, 10.1e-6, 9.9e-6) * 3, 8)
    assert not noisy.is_resolved and not noisy.is_high
    assert cost_text(noisy).endswith(", which is within the noise")


def test_json_has_what_the_table_has(recording):
    document = json.loads(json.dumps(timeline_json(recording)))
    assert ("ns", {"regions": 512, "used": 64}) == (document["unit"], document["buffer"])
    assert pytest.approx(0.02) == document["cost"]["share"]
    assert ["load", "multiply"] == [row["name"] for row in document["regions"]]
    assert 2 == len(document["overlaps"])


def test_perfetto_has_a_process_for_each_multiprocessor(recording):
    trace = json.loads(perfetto_trace(recording))
    events = trace["traceEvents"]
    regions = [event for event in events if event["ph"] == "X"]
    named = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert {"SM 0", "SM 1", "SM 2", "SM 3"} == named and 64 == len(regions)
    assert all(event["ts"] >= 0 and event["dur"] > 0 for event in regions)
    assert pytest.approx(0.3, abs=1e-3) == regions[0]["dur"], "microseconds"
    threads = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in regions} == threads
    by_thread = {thread: sorted((e["ts"], e["ts"] + e["dur"]) for e in regions if (e["pid"], e["tid"]) == thread) for thread in threads}  # noqa: E501  # fmt: skip
    for spans in by_thread.values():
        assert all(before[1] <= after[0] + 1e-3 for before, after in zip(spans, spans[1:], strict=False))


def test_a_column_is_computed_once(recording):
    """Whoever reads one region after the other takes as long as there are regions, not their square."""
    timeline = recording.timeline
    columns = [name for name in dir(timeline) if isinstance(getattr(timeline, name), np.ndarray)]
    assert {"begin", "length", "block_key"} <= {*columns}
    assert not [name for name in columns if getattr(timeline, name) is not getattr(timeline, name)]


def test_the_cost_names_the_interval_only_with_enough_pairs():
    assert "interval" not in cost_text(ProbeCost((1e-5,) * 3, (1.01e-5,) * 3, 4))
