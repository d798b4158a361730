"""`prism-bench timeline`: its table, its files, and what it refuses."""

import json

import pytest
from lab.timelines import KERNELS
from PIL import Image

from prism_bench.backends import open_backend
from prism_bench.errors import BackendUnavailable
from prism_bench.extensions.timeline.picture import COLOURS
from tests.extensions.timeline.placed import write


@pytest.fixture
def catalogue(tmp_path):
    """The words that choose a catalogue of one kernel with regions, on the emulator."""
    try:
        open_backend("emulator")
    except BackendUnavailable as error:
        pytest.skip(str(error))
    write(tmp_path / "kernels", "roles")
    return "--catalogue", tmp_path / "kernels", "--backend", "emulator"


def test_the_emulator_shows_order_and_counts_and_no_times(shell, catalogue, tmp_path):
    answer = shell("timeline", "roles", *catalogue, "--output", tmp_path / "trace.json")
    assert 0 == answer.code, answer.err
    assert "roles[n=6] on emulated on" in answer.out and "96 regions" in answer.out
    assert "no times: the emulator runs warps in its own order" in answer.out
    assert "ns" not in answer.out.split() and "us" not in answer.out.split()
    assert f"trace: {tmp_path}/trace.json" in answer.err
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert ("events", 96) == (trace["otherData"]["unit"], sum(event["ph"] == "X" for event in trace["traceEvents"]))


def test_a_picture_has_a_line_for_each_warp(shell, catalogue, tmp_path):
    picture = tmp_path / "new" / "roles.png"
    answer = shell("timeline", "roles", *catalogue, "--output", picture)
    assert (0, True) == (answer.code, f"picture: {picture}" in answer.err)
    with Image.open(picture) as image:
        colours = dict(map(reversed, image.convert("RGB").getcolors(1 << 20)))
    regions = [tuple(bytes.fromhex(colour[1:])) for colour in COLOURS[:3]]
    assert all(colours.get(region, 0) > 300 for region in regions), "half, load and store"
    assert not any(colours.get(tuple(bytes.fromhex(colour[1:]))) for colour in COLOURS[3:])


def test_json_is_all_of_the_output(shell, catalogue):
    document = shell("timeline", "roles", *catalogue, "--json").json
    assert (None, "events", []) == (document["cost"], document["unit"], document["overlaps"])
    assert ["half", "load", "store"] == [row["name"] for row in document["regions"]]
    assert [48, 24, 24] == [row["count"] for row in document["regions"]]


def test_without_a_gpu_the_emulator_is_used_and_the_reason_printed(shell, catalogue, monkeypatch):
    def opened(name):
        if name == "cuda":
            raise BackendUnavailable("no device here")
        return open_backend(name)

    monkeypatch.setattr("prism_bench.backends.open_backend", opened)
    answer = shell("timeline", "roles", *catalogue[:2])
    assert (0, True) == (answer.code, answer.out.startswith("backend emulator: "))
    assert "because no device here" in answer.out
    refused = shell("timeline", "roles", *catalogue[:2], "--backend", "cuda")
    assert (2, "", "prism-bench: no device here\n") == (refused.code, refused.out, refused.err)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["roles", "--backend", "numpy_reference"],
            "--backend numpy_reference: no kernel's code runs there; use cuda or",
        ),
        (["roles", "--output", "trace.svg"], "its ending is none of .json"),
        (["planted"], "planted names 2 cases with S0; name one: "),
        (["rules"], "unknown kernel, family or case 'rules'; did you mean roles"),
        (["vector_add:triton", "--catalogue", str(KERNELS)], "regions are for kernels whose source is CUDA C++"),
        (["tensor_core_matmul", "--catalogue", str(KERNELS)], "has no region; add #include <prism_bench/regions.cuh>"),
    ],
)
def test_what_cannot_be_recorded_ends_with_2_and_one_sentence(shell, catalogue, tmp_path, words, sentence):
    write(tmp_path / "kernels", "bare")
    output = [] if "--output" in words else ["--output", tmp_path / "trace.json"]
    answer = shell("timeline", *catalogue, *words, *output)
    assert (2, "") == (answer.code, answer.out.partition("backend emulator")[0])
    assert sentence in answer.err and "Traceback" not in answer.err
    assert not (tmp_path / "trace.json").exists()


def test_a_kernel_is_needed(shell):
    assert 2 == shell("timeline").code
