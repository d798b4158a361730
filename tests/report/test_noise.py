"""Noise floors as people and programs read them."""

import json

from rich.console import Console

from prism_bench.analysis.compare.noise import Floor, Noise
from prism_bench.report.plain import noise_json
from prism_bench.report.terminal.comparison import noise_view

QUIET = Floor(2e-5, 0.001, 0.0005, 8, 5, 0.004, 0, 20, "2026-11-20T22:14:05")
LOUD = Floor(4e-6, 0.02, 0.004, 8, 5, 0.07, 1, 20, "2026-11-20T22:14:05")
NOISE = Noise(
    "nvidia-h200", "NVIDIA H200", "cuda", 1, {("quiet[n=1]", "cold_time"): QUIET, ("loud[n=1]", "cold_time"): LOUD}
)


def printed(noise, width=160):
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(noise_view(noise))
    return captured.get().splitlines()


def test_what_can_hardly_be_told_apart_comes_first():
    head, _, first, second = printed(NOISE)
    words = "2 noise floors; of verdicts on the build against itself, 2.5 % called a change"
    assert f"NVIDIA H200, cuda backend: {words}" == head
    assert "loud[n=1] cold time 4.00 us 2.0 % 0.4 % 7.0 % 1 of 20" == " ".join(first.split())
    assert "quiet[n=1]" == second.split()[0]


def test_in_a_narrow_terminal_every_floor_is_one_line():
    name = "softmax:two_reads[rows=8192,cols=32768]"
    _, _, header, row, *_ = printed(Noise("m", "d", "cuda", 1, {(name, "cold_time"): LOUD}), 80)
    assert ["case", "metric", "time", "smallest", "change"] == header.split()[:5]
    assert ("softmax:two_rea", "7.0 %") == (row[:15], row.rstrip()[-5:])


def test_no_floor_is_said():
    assert ["no case was timed validly in two processes a side"] == printed(Noise("m", "d", "null", 1))


def test_the_plain_values_are_json():
    plain = json.loads(json.dumps(noise_json(NOISE), allow_nan=False))
    assert ("nvidia-h200", 0.025) == (plain["machine"], plain["false_share"])
    assert ["quiet[n=1]", "loud[n=1]"] == [floor["case"] for floor in plain["floors"]]
