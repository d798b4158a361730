"""Measured policies on disk: kept part by part, refused where damaged."""

import pytest

from prism_bench.errors import ResultsError
from prism_bench.workflows.tuning.crossover import (
    Batch,
    CrossoverRow,
    Measured,
    Window,
    path_for,
    read_measured,
    write_measured,
)

ROW = CrossoverRow({"m": 1, "k": 2, "n": 3}, {"fp32": 1e-6}, 0.0, 0.0, {"fp32": 1e-7})
WINDOW = Window(20, 30, 8, 1e-6, 4.0, 0.5, 0.25)
BATCH = Batch(8, 4, 1e-6, 1e-7)


def measured(device="NVIDIA H200", **parts):
    return Measured("h200", device, "cuda", {"driver": "580.1"}, "2026-01-02T03:04:05", **parts)


def test_what_is_written_is_read_again(tmp_path):
    whole = measured(matmul=(ROW,), windows=(WINDOW,), batches=(BATCH,))
    path = write_measured(whole, path_for("h200", tmp_path))
    assert tmp_path / "h200-policies.json" == path
    assert whole == read_measured(path)


def test_a_part_leaves_the_others_of_its_device_alone(tmp_path):
    path = write_measured(measured(matmul=(ROW,)), tmp_path / "p.json")
    write_measured(measured(windows=(WINDOW,)), path)
    assert measured(matmul=(ROW,), windows=(WINDOW,)) == read_measured(path)
    write_measured(measured("NVIDIA A100", batches=(BATCH,)), path)
    assert measured("NVIDIA A100", batches=(BATCH,)) == read_measured(path)


def test_no_file_is_nothing_measured(tmp_path):
    assert None is read_measured(tmp_path / "p.json")


@pytest.mark.parametrize(
    "damage, complaint",
    [
        (lambda text: text[:40], "not readable"),
        (lambda text: text.replace('"schema": 1', '"schema": 3'), "schema is 3, not 1"),
        (lambda text: text.replace('"narrow"', '"norrow"'), "damaged as measured policies .ValidationError: .*narrow"),
        (lambda text: text.replace('"device"', '"devise"'), "damaged as measured policies .ValidationError: .*device"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, damage, complaint):
    path = write_measured(measured(matmul=(ROW,)), tmp_path / "p.json")
    path.write_text(damage(path.read_text()))
    with pytest.raises(ResultsError, match=f"p.json.*{complaint}"):
        read_measured(path)
